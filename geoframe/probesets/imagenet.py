"""ImageNet's validation images, and the evaluation sets that *Beyond Local Linearity* (A.2) builds beside them.

val64 is `ImageNetVal(n=64)`, a64 `ImageNetA(n=64)`, o64 `ImageNetO(n=64)`, sd64 `ImageNetSD(n=64)`, and blur64
`Blurred(ImageNetVal(n=64), sigma=2, at=512)`. The paper gives neither its seeds nor its way of drawing: seed 0
and the draw of `geoframe.probesets.drawing` are ours.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

import attrs

from geoframe.encoder import Coord
from geoframe.errors import BadInput, MissingFile
from geoframe.probesets.drawing import draw, is_count, is_seed
from geoframe.probesets.files import FileSet, ImageFile
from geoframe.probesets.folder import ImageFolder, is_image
from geoframe.probesets.places import find_folder


@cache
def class_index() -> dict[str, int]:
    """Return the index (0 … 999) of each ImageNet-1k class by its WordNet id: the order of the sorted ids."""
    text = (files("geoframe.probesets") / "imagenet_wnids.txt").read_text(encoding="ascii")
    return {wnid: i for i, wnid in enumerate(text.split())}


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ImageNetVal(FileSet):
    """Seeded classes of ImageNet's validation split, the lexicographically first image of each (A.2: val64).

    The folder holds one sub-folder a class, called by its WordNet id. Labels are ImageNet's class indices, ids
    relative paths. Classes are drawn from those that the folder holds, all 1000 in the complete split; from a
    part of it that holds the drawn classes, the draw is the same.

    Attributes
    ----------
    root : str or None
        The folder; None is `imagenet/val` in $GEOFRAME_DATA.
    n : int or None
        How many classes to draw; None takes all.
    seed : int
        Seed of the draw.
    """

    place: ClassVar[str] = "imagenet/val"
    short: ClassVar[str] = "val"
    hint: ClassVar[str] = (
        "download ILSVRC2012_img_val.tar from https://image-net.org, sort the images into class folders "
        "(n01440764/*.JPEG), and put these at $GEOFRAME_DATA/imagenet/val"
    )

    root: str | None = attrs.field(default=None, converter=attrs.converters.optional(os.fspath))
    n: int | None = attrs.field(default=64, validator=is_count)
    seed: int = attrs.field(default=0, validator=is_seed)

    def default_name(self) -> str:
        """Name in *Beyond Local Linearity*: val64."""
        return f"{self.short}{self.n or ''}"

    @property
    def coords(self) -> dict[str, Coord]:
        """The draw's seed."""
        return {"seed": self.seed}

    def folder(self) -> Path:
        """Return the folder of class folders, found."""
        return find_folder(self.root or self.place, self.hint)

    def wnids(self) -> list[str]:
        """WordNet ids of the drawn classes, sorted."""
        root = self.folder()
        held = [entry.name for entry in root.iterdir() if entry.name in class_index() and entry.is_dir()]
        if not held:
            raise BadInput(
                f"{root} holds no folder called by an ImageNet class (like n01440764): "
                "sort the images into class folders, or use ImageFolder"
            )
        return draw(held, self.n, self.seed, f"ImageNet classes in {root}")

    def files(self) -> list[ImageFile]:
        """Return the files: the first of each drawn class, by class."""
        root, index = self.folder(), class_index()
        firsts = [(wnid, self._first(root / wnid)) for wnid in self.wnids()]
        return [ImageFile(f"{wnid}/{first}", index[wnid], root / wnid / first) for wnid, first in firsts]

    def _first(self, folder: Path) -> str:
        images = [entry.name for entry in folder.iterdir() if is_image(entry.name)] if folder.is_dir() else []
        if not images:
            raise MissingFile(f"no image in {folder}: {self.hint}")
        return min(images)

    def count(self) -> int | None:
        """Return the number of classes; None where all are taken of a folder that is not there."""
        try:
            return self.n or len(self.wnids())
        except MissingFile:
            return None


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ImageNetSD(ImageNetVal):
    """One Stable Diffusion 1.4 render for each class of `ImageNetVal` with the same n and seed (A.2: sd64).

    Classes are drawn from all 1000, whatever the folder holds, so that they are those of the complete
    validation split; `wnids()` lists the classes to render. Of several renders the first is taken.
    """

    place: ClassVar[str] = "imagenet-sd"
    short: ClassVar[str] = "sd"
    hint: ClassVar[str] = (
        "render one image for each of ImageNetSD(n=…, seed=…).wnids() with Stable Diffusion 1.4, "
        "and put them at $GEOFRAME_DATA/imagenet-sd/WNID/*.png"
    )

    def wnids(self) -> list[str]:
        """WordNet ids of the drawn classes, sorted; needs no data."""
        return draw(class_index(), self.n, self.seed, "ImageNet classes")


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ImageNetA(ImageFolder):
    """A seeded draw from ImageNet-A, natural adversarial examples (A.2: a64); labels are ImageNet's class indices."""

    hint: ClassVar[str] = (
        "download imagenet-a.tar, linked from https://github.com/hendrycks/natural-adv-examples, "
        "and unpack it to $GEOFRAME_DATA/imagenet-a"
    )

    root: str = attrs.field(default="imagenet-a", converter=os.fspath)
    n: int | None = attrs.field(default=64, validator=is_count)

    def default_name(self) -> str:
        """Name in *Beyond Local Linearity*: a64."""
        return f"a{self.n or ''}"

    def labels(self, chosen: Sequence[str], paths: Sequence[str]) -> list[int]:
        """Class indices by the folders' WordNet ids; −1 for other folders."""
        return [class_index().get(path.partition("/")[0], -1) for path in chosen]


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ImageNetO(ImageFolder):
    """A seeded draw from ImageNet-O (A.2: o64): images of none of the 1000 classes, so without labels."""

    hint: ClassVar[str] = (
        "download imagenet-o.tar, linked from https://github.com/hendrycks/natural-adv-examples, "
        "and unpack it to $GEOFRAME_DATA/imagenet-o"
    )

    root: str = attrs.field(default="imagenet-o", converter=os.fspath)
    n: int | None = attrs.field(default=64, validator=is_count)

    def default_name(self) -> str:
        """Name in *Beyond Local Linearity*: o64."""
        return f"o{self.n or ''}"

    def labels(self, chosen: Sequence[str], paths: Sequence[str]) -> list[int]:
        """−1: the folders' names are what a classifier took the images for, not what they show."""
        return [-1] * len(chosen)
