"""Pictures of another set, whole: shrunk to the encoder's size instead of resized and cropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import BadInput
from geoframe.probeset import Record
from geoframe.probesets.wrapped import Wrapped, frames_pictures

if TYPE_CHECKING:
    import torch


@attrs.frozen(slots=False, eq=False)
class Resized(Wrapped):
    """The pictures of another set, resized to exactly the encoder's size: nothing is cropped.

    The common frame cuts the middle out of an image of another size (28 of 32 pixels of a CIFAR image for an encoder of
    28 × 28); here the whole image stays in view, and a side ratio that isn't the encoder's is stretched. Colour turns
    grey for an encoder of one channel in both (ITU-R 601 luma), so `Resized(cifar)` is one reading of the "grayscale
    28×28 images" of *Neural Expansion* (I.4), `cifar` itself the other; the paper doesn't say which. The filter is the
    frame's: bilinear, antialiased.

    Attributes
    ----------
    of : ProbeSet
        The other set (may be given by position): pictures, or tensors of the encoder's channels.
    """

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not frames_pictures(self.of):
            raise BadInput(f"Resized: {self.of.label!r} makes its pixels at the encoder's size: use it as it is")

    def default_name(self) -> str:
        """Name of the other set, and "whole"."""
        return f"{self.of.label}-whole"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set, and the framing."""
        return {**self.of.coords, "framing": "whole"}

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Resize one image."""
        import torch

        from geoframe.probesets.frame import checked, picture_pixels, resize_pixels

        if isinstance(record.image, torch.Tensor):
            own = (shape[0], *record.image.shape[1:])
            return resize_pixels(checked(record.image, own, record.id), shape[1:])
        return picture_pixels(record.image, shape[0], record.id, shape[1:])
