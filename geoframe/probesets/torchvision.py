"""Data sets that torchvision reads: MNIST, FashionMNIST, CIFAR-10, Imagenette."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import BadInput, MissingFile, UnknownName, did_you_mean
from geoframe.probeset import Images, Listing, ProbeSet, Record
from geoframe.probesets.drawing import draw, is_count, is_seed
from geoframe.probesets.files import files_digest
from geoframe.probesets.places import data_root, find_folder
from geoframe.spec import unkeyed

if TYPE_CHECKING:
    import torch

SIZES = {
    "MNIST": {"train": 60000, "test": 10000},
    "FashionMNIST": {"train": 60000, "test": 10000},
    "CIFAR10": {"train": 50000, "test": 10000},
    "Imagenette": {"train": 9469, "val": 3925},
}
FILES = {
    "MNIST": {"train": "MNIST/raw/train-*-ubyte", "test": "MNIST/raw/t10k-*-ubyte"},
    "FashionMNIST": {"train": "FashionMNIST/raw/train-*-ubyte", "test": "FashionMNIST/raw/t10k-*-ubyte"},
    "CIFAR10": {"train": "cifar-10-batches-py/data_batch_*", "test": "cifar-10-batches-py/test_batch"},
}
ADVICE = "put it there, set GEOFRAME_DATA, or say download=True"


def _is_dataset(instance: Any, attribute: Any, value: Any) -> None:
    if value not in SIZES:
        raise UnknownName(f"TorchvisionSet: no data set {value!r}{did_you_mean(str(value), SIZES)}")


@attrs.frozen(slots=False, eq=False)
class TorchvisionSet(ProbeSet):
    """A split of a data set in torchvision's layout, whole or a seeded draw, in the order of the source.

    Labels are the data set's class indices. Ids are like `test/00123`: the index in the source. *Beyond Local
    Linearity*'s cifar32 is `TorchvisionSet("CIFAR10", n=32)`, its cifar32train the same with `split="train"`.
    Imagenette is the full-size version, whose labels run from 0 to 9.

    Attributes
    ----------
    dataset : str
        MNIST, FashionMNIST, CIFAR10 or Imagenette (may be given by position).
    split : str
        "train" or "test"; for Imagenette "train" or "val".
    n : int or None
        How many images to draw; None takes all.
    seed : int
        Seed of the draw.
    root : str or None
        The folder that torchvision calls root; None is $GEOFRAME_DATA.
    download : bool
        Whether to let torchvision download what is missing.
    """

    dataset: str = attrs.field(validator=_is_dataset)
    split: str = attrs.field(kw_only=True)
    n: int | None = attrs.field(default=None, validator=is_count, kw_only=True)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)
    root: str | None = unkeyed(default=None, converter=attrs.converters.optional(os.fspath), kw_only=True)
    download: bool = unkeyed(default=False, kw_only=True)

    @split.default
    def _default_split(self) -> str:
        return "val" if self.dataset == "Imagenette" else "test"

    @split.validator
    def _is_split(self, attribute: Any, value: Any) -> None:
        splits = SIZES[self.dataset]
        if value not in splits:
            raise UnknownName(f"{self.dataset} has no split {value!r}{did_you_mean(str(value), splits)}")

    def default_name(self) -> str:
        """Name like mnist-test or cifar10-test32."""
        return f"{self.dataset.lower()}-{self.split}{self.n or ''}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Data set, split, and the draw's seed where there is a draw."""
        return {"dataset": self.dataset, "split": self.split} | ({} if self.n is None else {"seed": self.seed})

    def count(self) -> int:
        """Return the number of images."""
        return self.n or self._size()

    def classes(self) -> int | None:
        """Return the number of classes, ten of each of these sets; None of a draw, which may lack some."""
        return 10 if self.n is None else None

    def folder(self) -> Path:
        """Return the folder that torchvision calls root."""
        return data_root() if self.root is None else find_folder(self.root)

    def chosen(self) -> list[int]:
        """Return the indices that are drawn, sorted."""
        what = f"images in {self.dataset} {self.split}"
        return [int(name) for name in draw((f"{i:05d}" for i in range(self._size())), self.n, self.seed, what)]

    def load(self, shape: Shape) -> Images:
        """Load every image at `shape`; all at once where the source holds them in one array of that size."""
        return self.pick(shape, range(len(self.chosen())))

    def pick(self, shape: Shape, places: Sequence[int]) -> Images:
        """Load the images at `places` of the draw."""
        source = self._open()
        pixels = _all_pixels(source)
        if pixels is None or tuple(pixels.shape[1:]) != tuple(shape):
            return super().pick(shape, places)
        indices = self._at(places)
        return Images(
            ids=tuple(map(self._id, indices)),
            labels=tuple(int(source.targets[index]) for index in indices),
            pixels=pixels[indices].contiguous().float().div_(255),
        )

    def listing(self) -> Listing:
        """Return ids and labels; no image is decoded."""
        source, indices = self._open(), self.chosen()
        labels = source.targets if hasattr(source, "targets") else [label for _, label in source._samples]
        return Listing(tuple(map(self._id, indices)), tuple(int(labels[index]) for index in indices))

    def records(self) -> Iterator[Record]:
        """Yield the drawn images; others are not decoded."""
        return self._decoded(self.chosen())

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield the images at `places` of the draw; others are not decoded."""
        return self._decoded(self._at(places))

    def _at(self, places: Sequence[int]) -> list[int]:
        chosen = self.chosen()
        return [chosen[place] for place in places]

    def _decoded(self, indices: Sequence[int]) -> Iterator[Record]:
        source = self._open()
        for index in indices:
            name = self._id(index)
            try:
                image, label = source[index]
            except OSError as error:  # a broken file of Imagenette
                raise BadInput(f"can't read the image {name} of {self.dataset} in {self.folder()}: {error}") from error
            yield Record(name, int(label), image)

    def _id(self, index: int) -> str:
        return f"{self.split}/{index:05d}"

    def _open(self) -> Any:
        from torchvision import datasets

        which = {"split": self.split} if self.dataset == "Imagenette" else {"train": self.split == "train"}
        root = self.folder()
        try:
            source = getattr(datasets, self.dataset)(str(root), download=self.download, **which)
        except (RuntimeError, OSError) as error:
            raise MissingFile(self._not_at(root, "the download failed" if self.download else ADVICE, error)) from error
        except Exception as error:  # of many kinds, whatever the damage
            raise BadInput(
                f"{self.dataset} at {root} can't be read: {type(error).__name__}: {error}; replace its files, such as "
                f"{self._pattern}"
            ) from error
        if len(source) != self._size():
            raise BadInput(
                f"{self.dataset} {self.split} at {root} holds {len(source)} images, not {self._size()}; replace its "
                f"files, such as {self._pattern}"
            )
        return source

    @property
    def _pattern(self) -> str:
        """Where the split's files lie in the folder that torchvision calls root."""
        return FILES.get(self.dataset, {}).get(self.split, f"imagenette2/{self.split}/n01440764/*.JPEG")

    def _not_at(self, root: Path, advice: str, cause: object = "") -> str:
        more = f" ({cause})" if cause else ""
        return f"{self.dataset} is not at {root} in torchvision's layout ({self._pattern}): {advice}{more}"

    def _size(self) -> int:
        return SIZES[self.dataset][self.split]

    def missing(self) -> str:
        """Say where the data set isn't; "" where it may be downloaded."""
        if self.download:
            return ""
        root = self.folder()
        return "" if any(root.glob(self._pattern)) else self._not_at(root, ADVICE)

    def source_digest(self) -> str | None:
        """Digest of the split's files; None where they are missing, and for Imagenette, which has thousands."""
        try:
            root = self.folder()
        except BadInput:
            return None
        pattern = FILES.get(self.dataset, {}).get(self.split)
        found = sorted(path for path in root.glob(pattern) if path.is_file()) if pattern else []
        return files_digest((path.name, path) for path in found) if found else None


def _all_pixels(source: Any) -> torch.Tensor | None:
    """Every image of a data set that holds 8-bit arrays, (image, channel, height, width), as a view; else None."""
    import torch

    data = torch.as_tensor(source.data) if hasattr(source, "data") else None
    if data is None or data.dtype != torch.uint8:
        return None
    return data.unsqueeze(1) if data.ndim == 3 else data.permute(0, 3, 1, 2)
