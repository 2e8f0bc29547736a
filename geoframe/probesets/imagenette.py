"""Imagenette under ImageNet's class indices, for classifiers that keep their 1000 classes (*Neural Expansion*, I.3)."""

from __future__ import annotations

from geoframe.probeset import ProbeSet
from geoframe.probesets.imagenet import class_index
from geoframe.probesets.relabelled import MappedLabels
from geoframe.probesets.torchvision import TorchvisionSet

#: tench, springer, cassette player, chain saw, church, French horn, garbage truck, gas pump, golf ball, parachute: the
#: order of the sorted ids, which is that of Imagenette's labels.
WNIDS = (
    "n01440764",
    "n02102040",
    "n02979186",
    "n03000684",
    "n03028079",
    "n03394916",
    "n03417042",
    "n03425413",
    "n03445777",
    "n03888257",
)


def imagenette(split: str = "val") -> ProbeSet:
    """Return a split of Imagenette, labelled by ImageNet's class indices (0 … 999).

    Parameters
    ----------
    split : {"val", "train"}
    """
    return MappedLabels(TorchvisionSet("Imagenette", split=split), labels=tuple(class_index()[w] for w in WNIDS))
