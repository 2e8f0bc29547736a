"""The one frame in which all encoders of a study see a set's images.

An image of exactly the input's size is taken as it is. Any other is resized until its shorter side is 256/224 of
the input's, then centre-cropped: torchvision's ImageNet preset (Resize(256), CenterCrop(224)) with its
interpolation, bilinear with antialiasing, which never leaves [0, 1]. Pictures are resized in 8 bits by PIL, in
integer arithmetic, so the pixels are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from geoframe.encoder import Shape
from geoframe.errors import BadInput

if TYPE_CHECKING:
    import torch

    from geoframe.probeset import Images, ProbeSet

Size = tuple[int, int]
"""(height, width)."""


def load_framed(probeset: ProbeSet, shape: Shape, places: Sequence[int] | None = None) -> Images:
    """Load the images of a probe set, all or those at `places`, at `shape` (channel, height, width).

    Ids have to be unique.
    """
    import torch

    from geoframe.numerics import plain_torch
    from geoframe.probeset import Images

    found: dict[str, tuple[int, torch.Tensor]] = {}
    with plain_torch():
        for record in probeset.records() if places is None else probeset.records_at(places):
            _check_id(record.id, probeset.label)
            if record.id in found:
                raise BadInput(f"probe set {probeset.label!r} holds two images with the id {record.id!r}")
            found[record.id] = (int(record.label), checked(probeset.frame(record, shape), shape, record.id))
    if not found:
        raise BadInput(f"probe set {probeset.label!r} holds no image")
    labels, pixels = zip(*found.values(), strict=True)
    return Images(ids=tuple(found), labels=labels, pixels=torch.stack(pixels))


def _check_id(name: str, label: str) -> None:
    """Refuse an id that no store can hold: a file name that isn't UTF-8 comes as lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"probe set {label!r}: the name {name!r} isn't valid UTF-8: rename that file") from error


def frame(image: Any, shape: Shape, name: str) -> torch.Tensor:
    """Bring a PIL image to `shape`; a tensor must have it.

    Parameters
    ----------
    image : PIL image or torch.Tensor
        A tensor is (channel, height, width) in [0, 1].
    shape : tuple of int
        (channel, height, width) of the encoder's input.
    name : str
        What errors call the image, unless it knows its file.

    Returns
    -------
    torch.Tensor
        `shape`, float32, in [0, 1].
    """
    import torch

    if isinstance(image, torch.Tensor):
        return checked(image, shape, name)
    pixels = picture_pixels(image, shape[0], name, resized_size(picture_size(image, name), shape))
    return centre_crop(pixels, shape[1:])


def resized_size(size: Size, shape: Shape) -> Size:
    """Size to which an image of `size` is resized before the centre crop."""
    target = shape[1:]
    return size if size == target else cover(size, (round(target[0] * 256 / 224), round(target[1] * 256 / 224)))


def cover(size: Size, target: Size) -> Size:
    """Smallest size of the same aspect that covers `target`; the longer side is rounded down, as torchvision does."""
    (height, width), (to_height, to_width) = size, target
    if to_height * width >= to_width * height:
        return to_height, to_height * width // height
    return to_width * height // width, to_width


def picture_size(image: Any, name: str) -> Size:
    """(height, width) of a PIL image; `BadInput` for anything else."""
    from PIL import Image

    if not isinstance(image, Image.Image):
        raise BadInput(f"image {name!r} is a {type(image).__name__}: records hold PIL images or torch tensors")
    return image.height, image.width


def picture_pixels(image: Any, channels: int, name: str, size: Size) -> torch.Tensor:
    """Turn a PIL image into pixels (channel, height, width), float32 in [0, 1], resized to `size`."""
    import numpy as np
    import torch
    from PIL import Image

    from geoframe.probesets.pictures import to_channels

    image = to_channels(image, channels, name)
    if (image.height, image.width) != size:
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    array = np.array(image, dtype=np.uint8).reshape(image.height, image.width, channels)
    return torch.from_numpy(array).permute(2, 0, 1).contiguous().to(torch.float32).div_(255)


def resize_pixels(pixels: torch.Tensor, size: Size) -> torch.Tensor:
    """Resize pixels (channel, height, width) with the frame's filter, without rounding to 8 bits."""
    from torch.nn.functional import interpolate

    if tuple(pixels.shape[1:]) == size:
        return pixels
    return interpolate(pixels[None], size, mode="bilinear", antialias=True, align_corners=False)[0].clamp_(0, 1)


def centre_crop(pixels: torch.Tensor, size: Size) -> torch.Tensor:
    """Cut `size` out of the middle of pixels (channel, height, width), with torchvision's rounding."""
    top, left = (round((have - want) / 2) for have, want in zip(pixels.shape[1:], size, strict=True))
    return pixels[:, top : top + size[0], left : left + size[1]].contiguous()


def checked(pixels: torch.Tensor, shape: Shape, name: str) -> torch.Tensor:
    """Return pixels as float32 on the CPU, if they have `shape` and lie in [0, 1]."""
    import torch

    if tuple(pixels.shape) != tuple(shape):
        had, wanted = tuple(pixels.shape), tuple(shape)
        raise BadInput(f"image {name!r} has shape {had}, but the encoder takes {wanted} (channel, height, width)")
    if not pixels.is_floating_point():
        raise BadInput(f"image {name!r} has dtype {pixels.dtype}: give floats in [0, 1] (8-bit values divided by 255)")
    pixels = pixels.detach().to("cpu", torch.float32)
    if not bool(torch.isfinite(pixels).all()):
        raise BadInput(f"image {name!r} holds NaN or infinite values")
    least, most = (float(v) for v in pixels.aminmax())
    if least < 0 or most > 1:
        raise BadInput(f"image {name!r} has values from {least:g} to {most:g}: give raw pixels, in [0, 1]")
    return pixels
