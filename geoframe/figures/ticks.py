"""Ticks of linear axes, fixed once everything is drawn."""

from __future__ import annotations

from typing import Any


def keep_in_view(ax: Any) -> None:
    """Fix both axes' ticks to those in view (matplotlib's own reach beyond), on x, epochs, to whole numbers."""
    ax.xaxis.get_major_locator().set_params(integer=True)
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        axis.set_ticks([place for place in axis.get_majorticklocs() if low <= place <= high])
