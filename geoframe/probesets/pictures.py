"""Image files to PIL images, and PIL images to 8-bit RGB or greyscale: exactly, or with an error that names the file.

EXIF orientation is ignored, as torchvision does; of an animation the first frame is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from geoframe.errors import BadInput

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
PLAIN_MODES = frozenset({"1", "L", "P", "RGB", "CMYK", "YCbCr", "HSV"})
ALPHA_MODES = frozenset({"LA", "PA", "RGBA"})


@contextmanager
def _strict_decoding() -> Iterator[None]:
    """Turn truncated files and decompression bombs into errors, whatever the settings of PIL."""
    from PIL import Image, ImageFile

    lenient = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="PIL")  # remarks on metadata, which nothing here uses
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def open_picture(path: Path) -> Image.Image:
    """Read and decode an image file; `BadInput` names the file where that fails."""
    from PIL import Image

    try:
        with _strict_decoding(), Image.open(path) as image:
            return decoded(image, str(path))
    except BadInput:
        raise
    except Exception as error:  # decoders raise nearly anything on broken files
        raise BadInput(f"can't read the image {path}: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "it is no image, or of a format that PIL doesn't know"
    return str(error) or type(error).__name__


def decoded(image: Image.Image, name: str) -> Image.Image:
    """Decode an image that PIL has opened, if it isn't yet, refusing those that PIL would cut to 8 bits."""
    name = str(getattr(image, "filename", "") or name)
    if ";16" in image.mode or ";16" in str(getattr(image, "tile", "")):
        raise BadInput(f"{name} has 16 bits a channel, which would be cut to 8 silently: convert it to 8 bits first")
    try:
        with _strict_decoding():
            image.load()
    except Exception as error:  # as above
        raise BadInput(f"can't decode the image {name}: {_cause(error)}") from error
    return image


def to_channels(image: Image.Image, channels: int, name: str) -> Image.Image:
    """Convert a picture to RGB (3 channels) or greyscale (1 channel), 8 bits each.

    Grey is replicated into RGB. RGB turns grey by ITU-R 601 luma, PIL's convention. An alpha channel is dropped
    where every pixel is opaque; CMYK (a few ImageNet files) is converted as torchvision's loader does.

    Raises
    ------
    BadInput
        For a transparent pixel, more than 8 bits a channel, an unknown mode, or other channel counts.
    """
    image = decoded(image, name)
    name = str(getattr(image, "filename", "") or name)
    if channels not in (1, 3):
        raise BadInput(f"{name} is a picture, which loads as 1 or 3 channels; the encoder takes {channels}")
    if image.mode not in PLAIN_MODES | ALPHA_MODES:
        raise BadInput(f"{name} has mode {image.mode}, not 8-bit grey or colour: convert it to 8-bit RGB first")
    if image.mode in ALPHA_MODES or image.has_transparency_data:
        image = _opaque(image, name)
    if channels == 3:
        return image.convert("RGB")
    return image.convert("L") if image.mode in ("1", "L") else image.convert("RGB").convert("L")


def _opaque(image: Image.Image, name: str) -> Image.Image:
    image = image.convert("RGBA")
    least, _ = image.getchannel("A").getextrema()
    if least != 255:
        raise BadInput(f"{name} has transparent pixels, and what lies beneath them is undefined: flatten it first")
    return image
