"""The response profile of one model: the study that `geoframe profile` runs. Imports no torch."""

from __future__ import annotations

import hashlib
import re
from typing import ClassVar

from geoframe.encoder import Encoder, Shape
from geoframe.encoders.lite0 import EfficientNetLite0
from geoframe.figures.profiles import RatioProfiles
from geoframe.loading import FoundStudy
from geoframe.probes.ratio import CIFAR_SCALES, IMAGENET_SCALES, RatioProbe
from geoframe.probeset import ProbeSet
from geoframe.probesets.photos import Photos
from geoframe.study import Study
from geoframe.summaries.bump import BumpSummary
from geoframe.summaries.profile_table import ProfileSummary

SCALES = {"imagenet": IMAGENET_SCALES, "cifar": CIFAR_SCALES}
SMALL = 64  # pixels a side up to which CIFAR's ladder is meant
TARGET_SE = 0.05
REGISTERED = "profile"


class Profile(Study):
    """Response profile of one model, to a chosen standard error."""

    encoders: ClassVar[tuple[Encoder, ...]] = (EfficientNetLite0(),)
    probesets: ClassVar[tuple[ProbeSet, ...]] = (Photos(),)
    probes: ClassVar[tuple[RatioProbe, ...]] = (RatioProbe(estimator="adaptive", target_se=TARGET_SE),)
    summaries = (ProfileSummary(), BumpSummary())
    figures = (RatioProfiles(name="profiles"), RatioProfiles(name="medians", median=True))
    presets = {"quick": {}}


def ladder(choice: str, shape: Shape | None) -> str:
    """Which of `SCALES` is meant: "auto" goes by the input's size."""
    if choice != "auto":
        return choice
    return "cifar" if shape is not None and max(shape[1:]) <= SMALL else "imagenet"


def profile_study(
    called: str, encoder: Encoder, images: ProbeSet, probe: RatioProbe, control: Encoder | None = None
) -> FoundStudy:
    """Make the study that profiles an encoder on a set of images, beside its random copy where one is given.

    Parameters
    ----------
    called : str
        What the user calls the model; with the images' name it names the study, and so its folder.
    encoder, images, probe : Encoder, ProbeSet, RatioProbe
        What is measured.
    control : Encoder, optional
        The random copy.
    """
    parts = ("profile", called, *(() if type(images) is Photos else (images.label,)))
    body = {
        "__module__": __name__,
        "name": "-".join(map(_plain, parts)),
        "title": f"Response profile of {encoder.label} on {images.label}, relative standard error {probe.target_se:g}",
        "encoders": (encoder,) if control is None else (encoder, control),
        "probesets": (images,),
        "probes": (probe,),
    }
    return FoundStudy(type("Profile", (Profile,), body), REGISTERED)


def _plain(text: str) -> str:
    """Return text that can name a folder anywhere; where letters are lost, a digest keeps two names apart.

    >>> _plain("vit_small_patch16_224.augreg_in1k"), _plain("my net.py:build"), _plain("фото")
    ('vit_small_patch16_224.augreg_in1k', 'my-net.py-build', '3ec17775')
    """
    plain = re.sub(r"[^A-Za-z0-9_.+-]+", "-", text).strip("-")
    if text.isascii():
        return plain
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return "-".join(filter(None, (plain, digest)))
