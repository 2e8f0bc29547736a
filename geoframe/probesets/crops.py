"""Small colour crops of the embedded photographs, labelled by photograph: a natural-image task offline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from geoframe.encoder import Coord
from geoframe.probeset import Listing, ProbeSet, Record
from geoframe.probesets.drawing import is_count, is_seed, keyed
from geoframe.probesets.files import files_digest
from geoframe.probesets.photos import FILES, photo_file

SPLITS = ("train", "test")
TILE = 96  # pixels of a photo: crops of the two splits lie in tiles of opposite colour of a chessboard
SIDES = (40, 64)  # of a crop, in pixels of its photo


@attrs.frozen(kw_only=True, slots=False, eq=False)
class PhotoCrops(ProbeSet):
    """Crops of six photographs; the label says of which. Ours: for runs offline that need natural colour images.

    A chessboard of tiles of 96 pixels parts each photo: crops for training lie in its white tiles, those for testing in
    its black ones, so that no pixel is in both. A crop has 40 to 64 pixels a side, and a place in its tile, that are
    drawn; it depends on the seed, its photo and its number only. It is brought to the encoder's frame as pictures are.

    Attributes
    ----------
    split : {"test", "train"}
    n : int
        How many crops; they take turns between the six photos.
    seed : int
        Seed of the draw.
    """

    split: str = attrs.field(default="test", validator=attrs.validators.in_(SPLITS))
    n: int = attrs.field(default=300, validator=is_count)
    seed: int = attrs.field(default=0, validator=is_seed)

    def default_name(self) -> str:
        """Name like photo-crops-test300."""
        return f"photo-crops-{self.split}{self.n}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Data set, split and the draw's seed."""
        return {"dataset": "photo-crops", "split": self.split, "seed": self.seed}

    def count(self) -> int:
        """Return the number of crops."""
        return self.n

    def classes(self) -> int:
        """Return the number of photos."""
        return len(FILES)

    def listing(self) -> Listing:
        """Return ids and labels."""
        names = [*FILES]
        ids = tuple(f"{self.split}/{names[i % len(names)]}/{i // len(names):05d}" for i in range(self.n))
        return Listing(ids, tuple(i % len(names) for i in range(self.n)))

    def records(self) -> Iterator[Record]:
        """Yield the crops."""
        return self.records_at(range(self.n))

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield some of the crops."""
        photos = self._photos()
        for name, label in zip(*self.listing().at(places), strict=True):
            photo = photos[label]
            yield Record(name, label, photo.crop(self._box(name, photo.size)))

    def missing(self) -> str:
        """Say which package is missing."""
        from geoframe.errors import MissingFile

        try:
            [photo_file(name) for name in FILES]
        except MissingFile as error:
            return str(error)
        return ""

    def source_digest(self) -> str | None:
        """Digest of the photos' files; None where they can't be found."""
        return None if self.missing() else files_digest((name, photo_file(name)) for name in FILES)

    def smoke(self) -> ProbeSet:
        """Return one crop."""
        return self.evolve(n=1, name=self.label)

    def _photos(self) -> list[Any]:
        from geoframe.probesets.pictures import open_picture, to_channels

        return [to_channels(open_picture(photo_file(name)), 3, name) for name in FILES]

    def _box(self, name: str, size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Draw a crop (left, upper, right, lower) in a tile of this split's colour."""
        import numpy as np

        rng = np.random.Generator(np.random.PCG64(keyed("photo-crops", self.seed, name)))
        across, down = size[0] // TILE, size[1] // TILE
        tiles = [(x, y) for y in range(down) for x in range(across) if (x + y) % 2 == SPLITS.index(self.split)]
        x, y = tiles[rng.integers(len(tiles))]
        side = int(rng.integers(SIDES[0], SIDES[1] + 1))
        left, upper = (TILE * place + int(rng.integers(TILE - side + 1)) for place in (x, y))
        return left, upper, left + side, upper + side
