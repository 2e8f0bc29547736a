"""One factor for all channels of a network, so that a CPU can train the same shape smaller."""

from __future__ import annotations

import math

from geoframe.errors import BadInput

LEAST = 8  # channels


def scaled(channels: int, width: float) -> int:
    """Return channels × width, rounded, at least 8; `width=1` changes nothing.

    Raises
    ------
    BadInput
        A width that isn't a number above 0.
    """
    if not 0 < width < math.inf:
        raise BadInput(f"width={width!r:.80} should be a number above 0, a factor of all channels")
    return channels if width == 1 else max(LEAST, round(channels * width))
