"""`ProbeSet`: a fixed, labelled collection of images in [0, 1], each with a stable id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import UnknownName, did_you_mean
from geoframe.spec import Spec, array_digest, short

if TYPE_CHECKING:
    import torch


@attrs.frozen
class Record:
    """One image before it is framed: id, label (−1 where unknown) and a PIL image or a tensor.

    A tensor is float32 in [0, 1], (channel, height, width), and is taken as it is. The image is None
    where the set makes its pixels at the encoder's shape (see `ProbeSet.frame`).
    """

    id: str
    label: int
    image: Any


class Listing(NamedTuple):
    """What a probe set holds, without pixels: ids and labels (−1 where unknown), in the set's order."""

    ids: tuple[str, ...]
    labels: tuple[int, ...]

    def at(self, places: Sequence[int]) -> Listing:
        """Return the listing of the images at `places`."""
        return Listing(tuple(self.ids[i] for i in places), tuple(self.labels[i] for i in places))


@attrs.define(slots=False, repr=False)
class Images:
    """A probe set loaded at one input shape, as `ProbeSet.load` returns it.

    Attributes
    ----------
    ids : tuple of str
        Stable, unique ids; an image's random directions are keyed by its id.
    labels : tuple of int
        Class labels; −1 where unknown.
    pixels : torch.Tensor
        (image, channel, height, width), float32 in [0, 1], on the CPU.
    """

    ids: tuple[str, ...]
    labels: tuple[int, ...]
    pixels: torch.Tensor

    @cached_property
    def digest(self) -> str:
        """Digest of the pixels that were really loaded."""
        return array_digest(self.pixels)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Images {tuple(self.pixels.shape)}, ids {short(self.ids)}>"

    def image(self, image_id: str) -> torch.Tensor:
        """Pixels of one image, (channel, height, width), by its id (`image_id`, `reference_id` in the results).

        Raises
        ------
        UnknownName
            Where there is no such image.
        """
        try:
            return self.pixels[self.ids.index(image_id)]
        except ValueError:
            raise UnknownName(f"no image {image_id!r}{did_you_mean(image_id, self.ids[:1000])}") from None


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ProbeSet(Spec):
    """Which images are measured. Subclasses implement `records` (and `count` where it is known early).

    Framing, one for all encoders of a study: an image of the encoder's size is taken as it is; any other is
    resized (bilinear, antialiased) until its shorter side is 256/224 of the input's, then centre-cropped.
    A set that changes pixels around the framing (`Blurred`), or makes them at the encoder's shape
    (`NoiseSet`), overrides `frame`.
    """

    kind: ClassVar[str] = "probeset"

    @property
    def coords(self) -> dict[str, Coord]:
        """Labels that stand beside the set's name in the results (blur sigma, split, seed …)."""
        return {}

    def count(self) -> int | None:
        """Return the number of images if it is known without reading data, else None."""
        return None

    def classes(self) -> int | None:
        """Return the number of classes if it is known without reading data, else None."""
        return None

    def records(self) -> Iterator[Record]:
        """Yield the images in their fixed order, each as large as its source has it."""
        raise NotImplementedError(f"{type(self).__name__} does not implement records()")

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield the images at `places` (ascending) only; a source that can skip the others overrides this."""
        wanted = set(places)
        return (record for place, record in enumerate(self.records()) if place in wanted)

    def listing(self) -> Listing:
        """Return ids and labels; a source that knows them without decoding its images overrides this."""
        ids, labels = [], []
        for record in self.records():
            ids.append(record.id)
            labels.append(int(record.label))
        return Listing(tuple(ids), tuple(labels))

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Bring one record to `shape`: float32 in [0, 1], (channel, height, width)."""
        from geoframe.probesets.frame import frame

        return frame(record.image, shape, record.id)

    def source_digest(self) -> str | None:
        """Cheap digest of the source files, without decoding; None where there is none."""
        return None

    def missing(self) -> str:
        """Say what of the source can't be found, without reading it; "" where all is there, or that isn't known."""
        return ""

    def smoke(self) -> ProbeSet:
        """Return the set that preset `smoke` measures: one photograph."""
        from geoframe.probesets.photos import Photos

        return Photos(names=("astronaut",), name=self.label)

    def load(self, shape: Shape) -> Images:
        """Load every image at `shape` (channel, height, width)."""
        from geoframe.probesets.frame import load_framed

        return load_framed(self, shape)

    def pick(self, shape: Shape, places: Sequence[int]) -> Images:
        """Load the images at `places` (ascending) only, at `shape`: the bits that `load` gives them."""
        from geoframe.probesets.frame import load_framed

        return load_framed(self, shape, places)
