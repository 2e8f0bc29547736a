"""Probe sets for the tests of sets made of other sets."""

from __future__ import annotations

import attrs
import numpy as np
from PIL import Image

from geoframe.probeset import ProbeSet, Record
from geoframe.probesets.tensor import TensorSet


def tensors(counts, size=4, channels=3):
    """A tensor set with `counts[label]` images of each label, labels mixed."""
    labels = np.repeat(list(counts), list(counts.values()))
    order = np.random.default_rng(0).permutation(len(labels))
    x = np.random.default_rng(1).random((len(labels), channels, size, size), dtype=np.float32)
    return TensorSet(x, labels=labels[order].tolist(), ids=[f"x/{i:03d}" for i in range(len(labels))], name="toy")


@attrs.frozen(kw_only=True)
class Pictures(ProbeSet):
    """PIL images of noise, one by one; counts how often a picture is made."""

    n: int = 6
    size: tuple[int, int] = (32, 32)
    made: list = attrs.field(factory=list, metadata={"keyed": False})

    def records(self):
        for i in range(self.n):
            self.made.append(i)
            values = np.random.default_rng(i).integers(0, 256, (*self.size, 3), dtype=np.uint8)
            yield Record(f"p/{i}", i % 3, Image.fromarray(values))


def same(one, other):
    """Whether two loaded sets are equal in every bit."""
    return (one.ids, one.labels, one.digest) == (other.ids, other.labels, other.digest)
