"""Uniform noise images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from geoframe.encoder import Coord, Shape, as_shape
from geoframe.probeset import ProbeSet, Record
from geoframe.probesets.drawing import is_count, is_seed

if TYPE_CHECKING:
    import numpy as np
    import torch


def uniform_noise(seed: int, index: int, shape: Shape) -> np.ndarray:
    """Return image `index` of the noise of `seed`: i.i.d. uniform on [0, 1), float32, of `shape`."""
    import numpy as np

    key = hashlib.blake2b(f"noise\0{seed}\0{index}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(key, "big"))).random(shape, dtype=np.float32)


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
            yield Record(f"noise-{self.seed}/{index:05d}", -1, None)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Make one image."""
        import torch

        from geoframe.probesets.frame import checked

        index = int(record.id.rpartition("/")[2])
        return checked(torch.from_numpy(uniform_noise(self.seed, index, self.shape or shape)), shape, record.id)

    def smoke(self) -> ProbeSet:
        """Return the first image alone, at the encoder's shape."""
        return self.evolve(n=1, shape=None, name=self.label)
