"""A seeded part of another set: so many images, or so many a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from geoframe.encoder import Coord
from geoframe.errors import BadInput
from geoframe.probeset import Listing
from geoframe.probesets.drawing import draw, is_count, is_seed
from geoframe.probesets.wrapped import Part


def by_class(labels: Sequence[int]) -> dict[int, list[int]]:
    """Return the places of each label's images, labels ascending."""
    places: dict[int, list[int]] = {label: [] for label in sorted(set(labels))}
    for place, label in enumerate(labels):
        places[label].append(place)
    return places


def draw_by_class(listing: Listing, counts: Mapping[int, int], seed: int, name: str) -> list[int]:
    """Draw `counts[label]` images of each label of the set called `name`; return their places, ascending.

    Each class's draw depends on the seed and on the ids of that class only, and a smaller one is part of a larger one.
    """
    drawn: list[int] = []
    for label, places in by_class(listing.labels).items():
        at = {listing.ids[place]: place for place in places}
        what = f"images of class {label} in probe set {name!r}"
        drawn += [at[chosen] for chosen in draw(at, counts[label], seed, what)]
    return sorted(drawn)


@attrs.frozen(slots=False, eq=False)
class Subset(Part):
    """A seeded draw from another set, in its order: `n` images, or `per_class` of each class.

    *Neural Expansion* (I.3) attacks 20, 10 and 5 images a class, I.4 takes 50: `Subset(of, per_class=20)`. The draw
    is ours; it depends on the seed and on the ids only; a smaller one is part of a larger one.

    Attributes
    ----------
    of : ProbeSet
        The other set (may be given by position); `per_class` needs its labels.
    n : int or None
        How many images (may be given by position).
    per_class : int or None
        How many images of each class that the set holds. Give this or `n`.
    seed : int
        Seed of the draw.
    """

    n: int | None = attrs.field(default=None, validator=is_count)
    per_class: int | None = attrs.field(default=None, validator=is_count, kw_only=True)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if (self.n is None) == (self.per_class is None):
            raise BadInput(f"Subset: n={self.n}, per_class={self.per_class}: give one of them")

    def default_name(self) -> str:
        """Name of the other set, and how many: mnist-test-20each."""
        return f"{self.of.label}-{self.n or f'{self.per_class}each'}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set, and the draw's seed."""
        return {**self.of.coords, "subset_seed": self.seed}

    def count(self) -> int | None:
        """Return the number of images; None where the classes are not known without reading data."""
        if self.n is not None:
            return self.n
        classes = self.of.classes()
        return None if classes is None or self.per_class is None else self.per_class * classes

    def choose(self, listing: Listing) -> list[int]:
        """Return where the drawn images are in the other set."""
        if self.per_class is not None:
            self.need_labels(listing.labels)
            counts = dict.fromkeys(listing.labels, self.per_class)
            return draw_by_class(listing, counts, self.seed, self.of.label)
        drawn = set(draw(listing.ids, self.n, self.seed, f"images in probe set {self.of.label!r}"))
        return [place for place, name in enumerate(listing.ids) if name in drawn]
