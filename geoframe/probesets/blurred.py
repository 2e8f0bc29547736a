"""Gaussian blur of another probe set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet, Record
from geoframe.probesets.drawing import is_count

if TYPE_CHECKING:
    import torch

    from geoframe.probesets.frame import Size


def gaussian_blur(pixels: torch.Tensor, sigma: float) -> torch.Tensor:
    """Blur pixels (channel, height, width) with a Gaussian of `sigma` pixels.

    The kernel is the Gaussian sampled at whole pixels out to 4σ, normalised; the border is reflected without
    repeating the edge (torchvision's conventions, with a kernel that is always long enough). Below σ ≈ 0.8 such a
    kernel is narrower than σ. Sums run in float64 in a fixed order, so the result doesn't depend on threads.
    """
    import numpy as np
    import torch

    reach = math.ceil(4 * sigma)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    array = pixels.numpy().astype(np.float64)
    for axis in (1, 2):
        array = _weighted_shifts(array, kernel / kernel.sum(), axis)
    return torch.from_numpy(array.astype(np.float32)).clamp_(0, 1)


def _weighted_shifts(array: Any, kernel: Any, axis: int) -> Any:
    import numpy as np

    length, reach = array.shape[axis], len(kernel) // 2
    padded = np.take(array, _reflected(length, reach), axis)
    total = np.zeros_like(array)
    for start, weight in enumerate(kernel):
        total += weight * np.take(padded, range(start, start + length), axis)
    return total


def _reflected(length: int, reach: int) -> Any:
    """Return indices of a line padded by `reach` on both sides; reflects again where the line is shorter."""
    import numpy as np

    if length == 1:
        return np.zeros(1 + 2 * reach, dtype=int)
    period = 2 * (length - 1)
    place = np.arange(-reach, length + reach) % period
    return np.minimum(place, period - place)


def _number(value: float) -> float:
    return float(value) if type(value) is int else value  # 2 and 2.0 have one key


def _is_sigma(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise BadInput(f"Blurred: sigma={value!r} should be a positive number of pixels")


def _is_probeset(instance: Any, attribute: Any, value: Any) -> None:
    if not isinstance(value, ProbeSet):
        raise BadInput(f"Blurred: of={value!r} should be a probe set")


@attrs.frozen(slots=False, eq=False)
class Blurred(ProbeSet):
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

    of: ProbeSet = attrs.field(validator=_is_probeset)
    sigma: float = attrs.field(validator=_is_sigma, converter=_number)
    at: int | None = attrs.field(default=None, validator=is_count, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.at is not None and type(self.of).frame is not ProbeSet.frame:
            raise BadInput(f"Blurred: {self.of.label!r} makes its pixels in the measured frame: leave out at={self.at}")

    def default_name(self) -> str:
        """Name of the set that is blurred, and sigma."""
        return f"{self.of.label}-blur{self.sigma:g}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the set that is blurred, sigma, and the size at which the blur acts."""
        return {**self.of.coords, "sigma": self.sigma} | ({} if self.at is None else {"blurred_at": self.at})

    def count(self) -> int | None:
        """Return the number of images."""
        return self.of.count()

    def records(self) -> Iterator[Record]:
        """Yield the unblurred images; `frame` blurs them."""
        return self.of.records()

    def source_digest(self) -> str | None:
        """Digest of the source of the set that is blurred."""
        return self.of.source_digest()

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
