"""Ticks of linear axes, fixed once everything is drawn."""

from __future__ import annotations

from typing import Any


def keep_in_view(ax: Any) -> None:
    """Fix an axis's ticks to those in view: matplotlib's own reach beyond both ends, whole numbers stay whole."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        axis.set_ticks([place for place in axis.get_majorticklocs() if low <= place <= high])
