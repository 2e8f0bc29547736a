"""Uniform noise images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from geoframe.encoder import Coord, Shape, as_shape
from geoframe.probeset import Images, Listing, ProbeSet, Record
from geoframe.probesets.drawing import is_count, is_seed
from geoframe.probesets.wrapped import is_probeset

if TYPE_CHECKING:
    import numpy as np
    import torch


def uniform_noise(seed: int, index: int, shape: Shape) -> np.ndarray:
    """Return image `index` of the noise of `seed`: i.i.d. uniform on [0, 1), float32, of `shape`."""
    import numpy as np

    key = hashlib.blake2b(f"noise\0{seed}\0{index}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(key, "big"))).random(shape, dtype=np.float32)


def noise_id(seed: int, index: int) -> str:
    """Return the id of image `index` of the noise of `seed`."""
    return f"noise-{seed}/{index:05d}"


@attrs.frozen(slots=False, eq=False)
class NoiseSet(ProbeSet):
    """Seeded noise images, i.i.d. uniform in [0, 1) (A.2: noise32).

    Each image is keyed by (seed, index), so it doesn't depend on how many there are.

    Attributes
    ----------
    n : int
        How many images (may be given by position).
    shape : tuple of int or None
        (channel, height, width); None makes them at the encoder's.
    seed : int
        Seed of the noise.
    """

    n: int = attrs.field(default=32, validator=is_count)
    shape: Shape | None = attrs.field(default=None, converter=as_shape, kw_only=True)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)

    def default_name(self) -> str:
        """Name in *Beyond Local Linearity*: noise32."""
        return f"noise{self.n}"

    @property
    def coords(self) -> dict[str, Coord]:
        """The noise's seed."""
        return {"seed": self.seed}

    def count(self) -> int:
        """Return the number of images."""
        return self.n

    def records(self) -> Iterator[Record]:
        """Yield ids; the pixels are made by `frame`."""
        for index in range(self.n):
            yield Record(noise_id(self.seed, index), -1, None)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Make one image."""
        import torch

        from geoframe.probesets.frame import checked

        index = int(record.id.rpartition("/")[2])
        return checked(torch.from_numpy(uniform_noise(self.seed, index, self.shape or shape)), shape, record.id)

    def smoke(self) -> ProbeSet:
        """Return the first image alone, at the encoder's shape."""
        return self.evolve(n=1, shape=None, name=self.label)


@attrs.frozen(slots=False, eq=False)
class NoiseImages(ProbeSet):
    """As many noise images as another set has, under its labels: training data without structure.

    *Beyond Local Linearity* (A.2): the training set of the random-data network is replaced by seeded uniform noise.
    That the labels of the set stay, in its order, is ours. Images and ids are those of `NoiseSet` with the same seed:
    `NoiseSet(32, seed=seed)` regenerates the first 32 training inputs (noise32train), without the other set.

    Attributes
    ----------
    like : ProbeSet
        The set that gives the number of images and the labels (may be given by position).
    seed : int
        Seed of the noise.
    """

    like: ProbeSet = attrs.field(validator=is_probeset)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)

    def default_name(self) -> str:
        """Name of the other set, and "noise"."""
        return f"{self.like.label}-noise"

    @property
    def coords(self) -> dict[str, Coord]:
        """That it is noise, and the noise's seed."""
        return {"dataset": "noise", "seed": self.seed}

    def count(self) -> int | None:
        """Return the number of images."""
        return self.like.count()

    def classes(self) -> int | None:
        """Return the number of classes."""
        return self.like.classes()

    def source_digest(self) -> str | None:
        """Digest of the other set's source: its labels are used."""
        return self.like.source_digest()

    def listing(self) -> Listing:
        """Return ids and labels."""
        labels = self.like.listing().labels
        return Listing(tuple(noise_id(self.seed, index) for index in range(len(labels))), labels)

    def records(self) -> Iterator[Record]:
        """Yield ids and labels; the pixels are made by `frame`."""
        for name, label in zip(*self.listing(), strict=True):
            yield Record(name, label, None)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Make one image."""
        import torch

        return torch.from_numpy(uniform_noise(self.seed, int(record.id.rpartition("/")[2]), shape))

    def load(self, shape: Shape) -> Images:
        """Make every image at `shape`."""
        listing = self.listing()
        return self._made(listing, range(len(listing.ids)), shape)

    def pick(self, shape: Shape, places: Sequence[int]) -> Images:
        """Make some of the images."""
        return self._made(self.listing().at(places), places, shape)

    def _made(self, listing: Listing, places: Sequence[int], shape: Shape) -> Images:
        import numpy as np
        import torch

        pixels = np.empty((len(places), *shape), dtype=np.float32)
        for row, index in enumerate(places):
            pixels[row] = uniform_noise(self.seed, index, shape)
        return Images(listing.ids, listing.labels, torch.from_numpy(pixels))

    def smoke(self) -> ProbeSet:
        """Return the first image alone, at the encoder's shape."""
        return NoiseSet(1, seed=self.seed, name=self.label)
