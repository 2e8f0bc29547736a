"""Lower bounds of generalization intervals beside the intervals themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

GAP = 3.0  # factor between the least value above 0 and the place of 0
KINDS = ("class changes", "class kept up to the cap: the interval is longer")


@attrs.frozen(kw_only=True)
class BoundsScatter(Figure):
    """The useful bound T* against the measured interval, a mark a ray; a panel an encoder. None is above the line.

    Axes are logarithmic, with a place for 0 below a gap. Rays that keep their class up to the cap have marks of their
    own.
    """

    probe: str = "bounds"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "bounds"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Useful form of Theorem 1 of Neural Expansion, §3, in diagonals of the input box (scale of the probe): "
            "T* is the largest T with T‖Jd‖₁ + δ(T) < q₀, and no ray may lie above the dotted line. Grey strips "
            "hold 0, which has no place on a logarithmic axis; kept: share of rays that keep their class up to the cap."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure."""
        from geoframe.figures.style import style
        from geoframe.summaries.bounds import bounds

        cells = select.cells(bounds(tree, self.probe), "gi")
        if not cells:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(cells)}

    def _panels(self, cells: list[xr.Dataset]) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        rays = [_rays(cell) for cell in cells]
        lowest, limits = _limits(np.concatenate([both for gi, useful, _ in rays for both in (gi, useful)]))
        figure, axes = style.panels(len(cells), 4, (2.5, 2.9), self.footnote())
        shown: dict[str, Any] = {}
        for ax, cell, (gi, useful, censored) in zip(axes, cells, rays, strict=False):
            frame(ax, lowest, limits)
            for name, chosen, drawn in zip(KINDS, (~censored, censored), _looks(), strict=True):
                if chosen.any():
                    x, y = (np.maximum(v[chosen], lowest / GAP) for v in (gi, useful))
                    (shown[name],) = ax.plot(x, y, linestyle="none", zorder=3, **drawn)
            ax.set_title(style.title_of(cell))
            ax.text(0.02, 0.98, _counts(useful, censored), transform=ax.transAxes, va="top", fontsize=7)
            ax.set(xlabel="measured interval", ylabel="bound T*" if ax.get_subplotspec().is_first_col() else "")
        names = [name for name in KINDS if name in shown]
        figure.legend([shown[name] for name in names], names, loc="outside upper center", ncols=1, markerscale=1.5)
        return figure


def frame(ax: Any, lowest: float, limits: tuple[float, float]) -> None:
    """Scale both axes, with a strip for 0 below the least value, and draw the line of equality."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    from geoframe.figures import style

    style.log_axes(ax, limits, limits, (4, 4))
    zero, edge = lowest / GAP, lowest / GAP**0.5
    for axis in (ax.xaxis, ax.yaxis):
        known = zip(axis.get_majorticklocs(), axis.get_major_formatter().seq, strict=False)
        ticks = {zero: "0", **{place: text for place, text in known if place >= lowest * 0.99}}
        axis.set_major_locator(FixedLocator([*ticks]))
        axis.set_major_formatter(FixedFormatter([*ticks.values()]))
        axis.set_minor_locator(FixedLocator([]))
    ax.axhspan(limits[0], edge, color="#888888", alpha=0.15, linewidth=0, zorder=0)
    ax.axvspan(limits[0], edge, color="#888888", alpha=0.15, linewidth=0, zorder=0)
    ax.plot((edge, limits[1]), (edge, limits[1]), color=style.INK, linewidth=0.7, linestyle=":", zorder=1)


def _rays(cell: xr.Dataset) -> tuple[Any, Any, Any]:
    """Interval, bound and whether the class is kept, of each ray that was measured."""
    dims = cell["gi"].dims
    gi, useful, censored = (cell[name].transpose(*dims).values.ravel() for name in ("gi", "useful", "censored"))
    good = np.isfinite(gi) & np.isfinite(useful)
    return gi[good], useful[good], censored[good].astype(bool)


def _limits(values: Any) -> tuple[float, tuple[float, float]]:
    """Return the least value above 0, and the limits of the axes, which hold a place for 0."""
    from geoframe.figures import style

    lowest = float(values[values > 0].min(initial=1.0))
    return lowest, (lowest / GAP**1.5, style.log_limits(values)[1])


def _looks() -> list[dict[str, Any]]:
    from geoframe.figures.style import RANDOM, TRAINED

    return [
        {"marker": ".", "color": TRAINED, "alpha": 0.4, "markersize": 3.5, "markeredgewidth": 0},
        {"marker": ">", "color": RANDOM, "alpha": 0.6, "markersize": 4, "markerfacecolor": "none"},
    ]


def _counts(useful: Any, censored: Any) -> str:
    return f"{len(useful)} rays\nT* = 0: {100 * (useful == 0).mean():.0f} %\nkept: {100 * censored.mean():.0f} %"
