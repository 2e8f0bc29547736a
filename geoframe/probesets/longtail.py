"""A class-imbalanced part of another set (*Neural Expansion*, I.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from geoframe.encoder import Coord
from geoframe.errors import BadInput
from geoframe.probeset import Listing
from geoframe.probesets.drawing import is_seed
from geoframe.probesets.subset import by_class, draw_by_class
from geoframe.probesets.wrapped import Part, number

Band = Literal["head", "medium", "tail"]
PAPER_BANDS = {"head": "H", "medium": "M", "tail": "L"}
"""The bands' names in table 8 of *Neural Expansion*: high, medium and low frequency."""


def frequency_bands(counts: Mapping[int, int]) -> dict[int, Band]:
    """Band of each class by its number of images: above the 66th percentile of all classes, below the 33rd, or between.

    The percentiles are the paper's (table 8). Ours: they interpolate linearly, and a class that lies on one is medium,
    so that classes of equal size are all medium. Ten classes of different sizes are 4 head, 3 medium and 3 tail.
    """
    import numpy as np

    low, high = np.percentile(list(counts.values()), (33, 66))
    return {label: "head" if n > high else "tail" if n < low else "medium" for label, n in counts.items()}


def long_tail_counts(held: Mapping[int, int], ratio: float) -> dict[int, int]:
    """How many images to keep of each class, exponentially fewer from the first class of `held` to the last.

    Class k of K keeps n₀ · ratio^(−k/(K−1)) images, rounded. They are as many as the classes allow, with n₀ set such
    that the first and the last count have the ratio as nearly as whole numbers can: n₀ = round(ratio · n_last).

    Raises
    ------
    BadInput
        Where there is one class only, or the last one would be left without an image.
    """
    last = len(held) - 1
    if last < 1:
        raise BadInput(f"LongTail needs two classes or more, and there is {len(held)}")
    shares = {label: ratio ** (-place / last) for place, label in enumerate(held)}
    most = min(held[label] / shares[label] for label in held)
    least = math.floor(most / ratio * (1 + 1e-12))  # the factor undoes what rounding took from a whole number
    if least < 1:
        raise BadInput(f"LongTail: ratio={ratio:g} leaves class {[*held][-1]} without an image: lower it")
    first = math.floor(ratio * least + 0.5)
    kept = {label: math.floor(first * share + 0.5) for label, share in shares.items()}
    return {label: min(kept[label], held[label]) for label in held}


def _is_ratio(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise BadInput(f"LongTail: ratio={value!r} should be a number, 1 or more: the largest class over the smallest")


@attrs.frozen(slots=False, eq=False)
class LongTail(Part):
    """A part of another set whose classes are exponentially smaller from label to label.

    *Neural Expansion* (A.1, I.2): MNIST-LT1 is `LongTail(mnist_train, 6.5)`, MNIST-LT2 `LongTail(mnist_train, 78.6)`.
    The ratios are the paper's; its class sizes (table 8) are not in the text. Ours: the exponential profile, usual for
    such sets, classes in the order of their labels, as many images as that allows, and the seeded draw: of a class that
    keeps fewer images, the fewer are some of the more.

    Attributes
    ----------
    of : ProbeSet
        The labelled set (may be given by position).
    ratio : float
        Images of the largest class over those of the smallest (may be given by position).
    seed : int
        Seed of the draw.
    """

    ratio: float = attrs.field(converter=number, validator=_is_ratio)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)

    def default_name(self) -> str:
        """Name of the other set, and the ratio: mnist-train-lt6.5."""
        return f"{self.of.label}-lt{self.ratio:g}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set, the ratio, and the draw's seed."""
        return {**self.of.coords, "imbalance": self.ratio, "subset_seed": self.seed}

    def choose(self, listing: Listing) -> list[int]:
        """Return where the images are in the other set."""
        return draw_by_class(listing, self._counts(listing), self.seed, self.of.label)

    def class_counts(self) -> dict[int, int]:
        """Return the number of images of each class, labels ascending. Reads the other set's labels."""
        return self._counts(self.of.listing())

    def bands(self) -> dict[int, Band]:
        """Return the frequency band of each class: "head", "medium" or "tail", the paper's H, M and L."""
        return frequency_bands(self.class_counts())

    def _counts(self, listing: Listing) -> dict[int, int]:
        self.need_labels(listing.labels)
        held = {label: len(places) for label, places in by_class(listing.labels).items()}
        return long_tail_counts(held, self.ratio)
