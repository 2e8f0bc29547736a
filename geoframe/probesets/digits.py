"""The 8×8 handwritten digits that scikit-learn carries: a labelled data set that needs no download."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import MissingFile
from geoframe.probeset import ProbeSet, Record
from geoframe.probesets.drawing import draw, is_count, is_seed

if TYPE_CHECKING:
    import numpy as np
    import torch

FILE = "datasets/data/digits.csv.gz"
TOTAL, TEST = 1797, 600
SPLIT_SEED = 0  # the split is one and the same for every spec, so that no training image is ever a test image


def digits_file() -> Path:
    """Return the file, found without importing scikit-learn."""
    spec = find_spec("sklearn")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / FILE).is_file():
            return path
    raise MissingFile("the 8×8 digits come with scikit-learn, which is missing: pip install 'geoframe[demo]'")


@cache
def _table() -> np.ndarray:
    """(image, 65): 64 values from 0 to 16, then the label."""
    import numpy as np

    return np.loadtxt(digits_file(), delimiter=",", dtype=np.int64)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Digits(ProbeSet):
    """8×8 grey images of handwritten digits (UCI), values divided by 16, split by us into 1197 and 600 images.

    Ids are like `digits/0012`: the row in the file. For another input shape the image is resized (bilinear), and
    repeated over channels.

    Attributes
    ----------
    split : {"test", "train"}
        The split is a fixed draw, the same whatever `seed`.
    n : int or None
        How many images to draw; None takes all.
    seed : int
        Seed of the draw.
    """

    split: str = attrs.field(default="test", validator=attrs.validators.in_(("test", "train")))
    n: int | None = attrs.field(default=None, validator=is_count)
    seed: int = attrs.field(default=0, validator=is_seed)

    def default_name(self) -> str:
        """Name like digits-test or digits-train64."""
        return f"digits-{self.split}{self.n or ''}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Data set, split, and the draw's seed where there is a draw."""
        return {"dataset": "digits", "split": self.split} | ({} if self.n is None else {"seed": self.seed})

    def count(self) -> int:
        """Return the number of images."""
        return self.n or (TEST if self.split == "test" else TOTAL - TEST)

    def classes(self) -> int | None:
        """Return the number of classes; None of a draw, which may lack some."""
        return 10 if self.n is None else None

    def chosen(self) -> list[int]:
        """Return the rows that are drawn, sorted."""
        names = [f"{row:04d}" for row in range(TOTAL)]
        test = set(draw(names, TEST, SPLIT_SEED, "digits"))
        split = [name for name in names if (name in test) == (self.split == "test")]
        return [int(name) for name in draw(split, self.n, self.seed, f"digits in the {self.split} split")]

    def records(self) -> Iterator[Record]:
        """Yield the drawn images."""
        import torch

        table = _table()
        for row in self.chosen():
            pixels = torch.tensor(table[row, :64].reshape(1, 8, 8) / 16, dtype=torch.float32)
            yield Record(f"digits/{row:04d}", int(table[row, 64]), pixels)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Bring an image to `shape`."""
        from geoframe.probesets.frame import resize_pixels

        pixels = resize_pixels(record.image, shape[1:])
        return pixels.expand(shape[0], -1, -1).contiguous()

    def smoke(self) -> ProbeSet:
        """Return one digit."""
        return self.evolve(n=1, name=self.label)
