"""Values of options that click has no type for; one that can't be read is refused in one line."""

from __future__ import annotations

import re

from geoframe.errors import BadInput

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


def shape_of(text: str | None, option: str) -> tuple[int, int, int] | None:
    """Read "3x32x32" (or with commas) as (channel, height, width)."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)[x×,](\d+)[x×,](\d+)", text.replace(" ", ""))
    if not found:
        raise BadInput(f"{option} {text!r}: give channel, height and width, as in 3x32x32")
    channel, height, width = map(int, found.groups())
    return channel, height, width


def numbers(text: str | None, option: str) -> float | tuple[float, ...] | None:
    """Read "0.5" as a number, "0.5,0.4,0.3" as one for each channel."""
    if text is None:
        return None
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise BadInput(f"{option} {text!r}: give a number, or one for each channel with commas between") from error
    return values[0] if len(values) == 1 else values


def bytes_of(text: str | None, option: str) -> int | None:
    """Read "512MB", "2GiB" or a number of bytes."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * 2 ** _UNITS[found[2].upper()]) if found else 0
    if size < 1 or (size < 2**20 and text.strip().isdigit()):  # bytes: surely meant otherwise
        raise BadInput(f"{option} {text!r}: give a size with its unit, as in 512MB or 2GB")
    return size
