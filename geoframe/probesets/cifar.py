"""CIFAR-10: torchvision's exact images where they are at hand, or else, if asked for, a JPEG copy that says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs

from geoframe.encoder import Coord
from geoframe.errors import BadInput, MissingFile, UnknownName, did_you_mean
from geoframe.probeset import ProbeSet
from geoframe.probesets.drawing import draw, is_count, is_seed
from geoframe.probesets.files import FileSet, ImageFile
from geoframe.probesets.folder import image_paths
from geoframe.probesets.places import data_root, find_folder
from geoframe.probesets.torchvision import TorchvisionSet

SPLITS = ("train", "test")
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STAND_IN = "JPEG stand-in: low-passed"
HINT = (
    "put CIFAR-10 as JPEG files there, as train/CLASS/*.jpg and test/CLASS/*.jpg, or use the exact images, "
    'TorchvisionSet("CIFAR10")'
)


def _is_split(instance: Any, attribute: Any, value: Any) -> None:
    if value not in SPLITS:
        raise UnknownName(f"CIFAR10 has no split {value!r}{did_you_mean(str(value), SPLITS)}")


@attrs.frozen(slots=False, eq=False)
class Cifar10Jpeg(FileSet):
    """CIFAR-10 images, all of them or some, as JPEG files in class folders: a stand-in, not the data set.

    JPEG takes away high frequencies, which a response profile sees and a study of blur is about: coordinate `stand_in`
    and `stand_in_note` say so in results and under figures. Labels are CIFAR-10's class indices, which are those of the
    sorted class names. Ids are like `test/cat/0031.jpg`.

    Attributes
    ----------
    split : {"test", "train"}
        May be given by position.
    n : int or None
        How many images to draw; None takes all.
    seed : int
        Seed of the draw.
    root : str or None
        The folder that holds `train/CLASS` and `test/CLASS`; None is `cifar10-jpeg` in $GEOFRAME_DATA.
    """

    split: str = attrs.field(default="test", validator=_is_split)
    n: int | None = attrs.field(default=None, validator=is_count, kw_only=True)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)
    root: str | None = attrs.field(default=None, converter=attrs.converters.optional(os.fspath), kw_only=True)

    def default_name(self) -> str:
        """Name like cifar10-jpeg-test32."""
        return f"cifar10-jpeg-{self.split}{self.n or ''}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Data set, split, that it is a stand-in, and the draw's seed where there is a draw."""
        seed: dict[str, Coord] = {} if self.n is None else {"seed": self.seed}
        return {"dataset": "CIFAR10", "split": self.split, "stand_in": STAND_IN, **seed}

    def classes(self) -> int:
        """Return the number of classes."""
        return len(CLASSES)

    def count(self) -> int | None:
        """Return the number of images; None where all are taken of a folder that is not there."""
        try:
            return self.n or len(self._paths(self.folder()))
        except MissingFile:
            return None

    def folder(self) -> Path:
        """Return the split's folder, found."""
        return find_folder(f"{self.root or 'cifar10-jpeg'}/{self.split}", HINT)

    def files(self) -> list[ImageFile]:
        """Return the drawn files, sorted by class and name."""
        root = self.folder()
        chosen = draw(self._paths(root), self.n, self.seed, f"images in {root}")
        return [ImageFile(f"{self.split}/{path}", _label(path), root / path) for path in chosen]

    def _paths(self, root: Path) -> list[str]:
        paths = [path for path in image_paths(root) if _label(path) >= 0]
        if not paths:
            raise BadInput(f"the folder {root} holds no image in a folder called by a class of CIFAR-10: {HINT}")
        return paths


def _label(path: str) -> int:
    name = path.partition("/")[0]
    return CLASSES.index(name) if name in CLASSES else -1


def cifar10(split: str = "test", *, n: int | None = None, seed: int = 0, stand_in: bool = False) -> ProbeSet:
    """Return a split of CIFAR-10, whole or a seeded draw.

    Parameters
    ----------
    split : {"test", "train"}
    n : int or None
        How many images to draw; None takes all. The stand-in's draw is another one: it has other files.
    seed : int
    stand_in : bool
        Whether `Cifar10Jpeg` may take the place of torchvision's files, where they are not in $GEOFRAME_DATA and it is.

    Returns
    -------
    TorchvisionSet or Cifar10Jpeg
        The second one only where `stand_in` allows it. What is not there is an error of what loads it.
    """
    exact = TorchvisionSet("CIFAR10", split=split, n=n, seed=seed)
    here = (data_root() / "cifar-10-batches-py").is_dir() or not (data_root() / "cifar10-jpeg" / split).is_dir()
    return exact if here or not stand_in else Cifar10Jpeg(split, n=n, seed=seed)


def stand_in_note(*probesets: ProbeSet) -> str:
    """Return what belongs under a figure of these sets, as a `Figure`'s note; "" where none is a stand-in."""
    found = [probeset for probeset in probesets if probeset.coords.get("stand_in")]
    if not found:
        return ""
    which = "" if len(found) == len(probesets) else f" ({', '.join(probeset.label for probeset in found)})"
    return f"{found[0].coords['stand_in']}{which}."
