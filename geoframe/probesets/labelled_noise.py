"""A few noise images under labels: what preset `smoke` trains on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.encoders.model import as_dict
from geoframe.probeset import Listing, ProbeSet, Record
from geoframe.probesets.drawing import is_count, is_seed
from geoframe.probesets.noise import NoiseSet, noise_id
from geoframe.spec import unkeyed

if TYPE_CHECKING:
    import torch

KNOWN = 2  # classes where their number isn't known without reading data: every classifier has as many


@attrs.frozen(kw_only=True, slots=False, eq=False)
class LabelledNoise(ProbeSet):
    """Seeded noise images at the encoder's shape, labelled 0, 1, … in turns. Needs no data.

    Attributes
    ----------
    n : int
        How many images.
    n_classes : int
        How many classes they take turns of.
    seed : int
        Seed of the noise.
    extra_coords : mapping
        Coordinates: those of the set whose place it takes.
    """

    n: int = attrs.field(default=4, validator=is_count)
    n_classes: int = attrs.field(default=KNOWN, validator=is_count)
    seed: int = attrs.field(default=0, validator=is_seed)
    extra_coords: Mapping[str, Coord] = unkeyed(factory=dict, converter=as_dict)

    @classmethod
    def in_place_of(cls, probeset: ProbeSet, seed: int = 0) -> LabelledNoise:
        """Return four images with the name, the coordinates and the classes of another set, whose data aren't read."""
        classes = probeset.classes() or KNOWN
        return cls(n_classes=classes, seed=seed, extra_coords=probeset.coords, name=probeset.label)

    @property
    def coords(self) -> dict[str, Coord]:
        """Those it was given."""
        return dict(self.extra_coords)

    def count(self) -> int:
        """Return the number of images."""
        return self.n

    def classes(self) -> int:
        """Return the number of classes."""
        return self.n_classes

    def listing(self) -> Listing:
        """Return ids and labels."""
        ids = tuple(noise_id(self.seed, index) for index in range(self.n))
        return Listing(ids, tuple(index % self.n_classes for index in range(self.n)))

    def records(self) -> Iterator[Record]:
        """Yield ids and labels; the pixels are made by `frame`."""
        for name, label in zip(*self.listing(), strict=True):
            yield Record(name, label, None)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Make one image."""
        return NoiseSet(self.n, seed=self.seed).frame(record, shape)

    def smoke(self) -> ProbeSet:
        """Return one image."""
        return self.evolve(n=1, name=self.label)
