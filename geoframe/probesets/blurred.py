"""Gaussian blur of another probe set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import BadInput
from geoframe.probeset import Images, ProbeSet, Record
from geoframe.probesets.drawing import is_count
from geoframe.probesets.wrapped import Wrapped, frames_pictures, number

if TYPE_CHECKING:
    import torch

    from geoframe.probesets.frame import Size


CHUNK = 2**15  # values blurred at a time: a few images, which stay in the processor's cache


def gaussian_blur(pixels: torch.Tensor, sigma: float) -> torch.Tensor:
    """Blur pixels (..., height, width), one image or many, with a Gaussian of `sigma` pixels.

    The kernel is the Gaussian sampled at whole pixels out to 4σ, normalised; the border is reflected without
    repeating the edge (torchvision's conventions, with a kernel that is always long enough). Below σ ≈ 0.8 such a
    kernel is narrower than σ. Sums run in float64 in a fixed order, so the result depends neither on threads nor on
    how many images are blurred at once.
    """
    import numpy as np
    import torch

    reach = math.ceil(4 * sigma)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    planes = pixels.reshape(-1, *pixels.shape[-2:]).numpy()
    blurred = np.empty(planes.shape, dtype=np.float32)
    step = max(1, CHUNK // planes[0].size)
    for start in range(0, len(planes), step):
        part = planes[start : start + step].astype(np.float64)
        for axis in (1, 2):
            part = _weighted_shifts(part, kernel, axis)
        blurred[start : start + step] = part
    return torch.from_numpy(blurred).reshape(pixels.shape).clamp_(0, 1)


def _weighted_shifts(array: Any, kernel: Any, axis: int) -> Any:
    import numpy as np

    length, reach = array.shape[axis], len(kernel) // 2
    padded = np.take(array, _reflected(length, reach), axis)
    total, term = np.zeros_like(array), np.empty_like(array)
    for start, weight in enumerate(kernel):
        span = slice(start, start + length)
        np.multiply(padded[:, span] if axis == 1 else padded[:, :, span], weight, out=term)
        total += term
    return total


def _reflected(length: int, reach: int) -> Any:
    """Return indices of a line padded by `reach` on both sides; reflects again where the line is shorter."""
    import numpy as np

    if length == 1:
        return np.zeros(1 + 2 * reach, dtype=int)
    period = 2 * (length - 1)
    place = np.arange(-reach, length + reach) % period
    return np.minimum(place, period - place)


def _is_sigma(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise BadInput(f"Blurred: sigma={value!r} should be a positive number of pixels")


@attrs.frozen(slots=False, eq=False)
class Blurred(Wrapped):
    """The images of another set, blurred; ids and labels stay, and so do the random directions of each image.

    The cifar32b1 of *Beyond Local Linearity* is `Blurred(cifar32, sigma=1)`: the blur acts in the measured frame. Its
    blur64 is `Blurred(val64, sigma=2, at=512)`: the shorter side is resized to 512 px, the image blurred, then framed
    (256, crop 224), which leaves σ = 1 px in the frame. An image of exactly the encoder's size is framed without
    a crop, so there `at` stands for the same field of view: 448 px where the frame is 224.

    Attributes
    ----------
    of : ProbeSet
        The set that is blurred (may be given by position).
    sigma : float
        Standard deviation of the Gaussian, in pixels.
    at : int or None
        Shorter side, in pixels, at which the blur acts; None blurs in the measured frame.
    """

    sigma: float = attrs.field(validator=_is_sigma, converter=number)
    at: int | None = attrs.field(default=None, validator=is_count, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.at is not None and not frames_pictures(self.of):
            raise BadInput(f"Blurred: {self.of.label!r} makes its pixels in the measured frame: leave out at={self.at}")

    def default_name(self) -> str:
        """Name of the set that is blurred, and sigma."""
        return f"{self.of.label}-blur{self.sigma:g}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the set that is blurred, sigma, and the size at which the blur acts."""
        return {**self.of.coords, "sigma": self.sigma} | ({} if self.at is None else {"blurred_at": self.at})

    def load(self, shape: Shape) -> Images:
        """Load every image at `shape`; all at once where the blur acts in the frame."""
        return super().load(shape) if self.at is not None else self._blurred(self.of.load(shape))

    def pick(self, shape: Shape, places: Sequence[int]) -> Images:
        """Load some of the images."""
        return super().pick(shape, places) if self.at is not None else self._blurred(self.of.pick(shape, places))

    def _blurred(self, images: Images) -> Images:
        return Images(images.ids, images.labels, gaussian_blur(images.pixels, self.sigma))

    def smoke(self) -> ProbeSet:
        """Return the blur of one image."""
        return self.evolve(of=self.of.smoke(), name=self.label)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Blur one image, before or after the framing."""
        if self.at is None:
            return gaussian_blur(self.of.frame(record, shape), self.sigma)
        from geoframe.probesets.frame import centre_crop, cover, resize_pixels, resized_size

        size = _size_of(record, shape)
        side = self.at if size != shape[1:] else round(self.at * 224 / 256)
        blurred = gaussian_blur(_pixels_at(record, shape, cover(size, (side, side))), self.sigma)
        return centre_crop(resize_pixels(blurred, resized_size(size, shape)), shape[1:])


def _size_of(record: Record, shape: Shape) -> Size:
    import torch

    from geoframe.probesets.frame import checked, picture_size

    if isinstance(record.image, torch.Tensor):
        return checked(record.image, shape, record.id).shape[1], record.image.shape[2]
    return picture_size(record.image, record.id)


def _pixels_at(record: Record, shape: Shape, size: Size) -> torch.Tensor:
    import torch

    from geoframe.probesets.frame import checked, picture_pixels, resize_pixels

    if isinstance(record.image, torch.Tensor):
        return resize_pixels(checked(record.image, shape, record.id), size)
    return picture_pixels(record.image, shape[0], record.id, size)
