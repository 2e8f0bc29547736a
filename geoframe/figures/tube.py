"""Tube radii around covered rays (Neural Expansion, F.3, Table 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

SPAN, MEDIAN = "from the least to the largest radius", "median radius"
BEYOND, WIDE, CAP = "median beyond the cap", "as wide as the ray is long", "the search's cap"
ORDER = (SPAN, MEDIAN, BEYOND, WIDE, CAP)


@attrs.frozen(kw_only=True)
class TubeRadii(Figure):
    """Radii of each ray's tube, in hops: a line from the least to the largest, a dot at the median, rays in order.

    A panel for each encoder and probe set; the line at 1 is a region as wide as the ray is long. An open triangle
    stands where the median reaches the search's cap.
    """

    probe: str = "tube"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "tube_radii"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Radii orthogonal to covered rays, over the ray's own length (Neural Expansion, F.3): all points and "
            "directions of a ray. Lines that end at the cap go on: their largest radius isn't known. In each panel, "
            "the share of rays whose every radius is at least 1."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure."""
        from geoframe.figures.style import style
        from geoframe.summaries.tube import tubes

        cells = select.cells(tubes(tree, self.probe), "radius")
        if not cells:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(cells)}

    def _panels(self, cells: list[xr.Dataset]) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        figure, axes = style.panels(len(cells), 3, (2.2, 2.4), self.footnote(), top=0.9)
        highest = 1.12 * max(1.0, *(float(cell["radius"].max()) for cell in cells))
        shown: dict[str, Any] = {}
        for ax, cell in zip(axes, cells, strict=False):
            ax.set(ylim=(0, highest), yticks=np.arange(0, highest, 0.5 if highest < 4 else 1))
            shown |= _rays(ax, cell)
            ax.set_title(style.title_of(cell))
            first = ax.get_subplotspec().is_first_col()
            ax.set_ylabel("tube radius / length of the ray" if first else "")
            ax.tick_params(labelleft=first)
        names = [name for name in ORDER if name in shown]
        figure.legend(
            [shown[name] for name in names], names, loc="outside upper center", ncols=2 if len(cells) > 1 else 1
        )
        return figure


def _rays(ax: Any, cell: xr.Dataset) -> dict[str, Any]:
    """Draw the rays of one encoder, ordered by their least radius; return what the legend shows."""
    from geoframe.figures.style import INK, RANDOM, TRAINED

    radius, censored = _table(cell)
    place, middle = np.arange(1, len(radius) + 1), np.median(radius, axis=1)
    cap = float(radius[censored].max()) if censored.any() else np.inf
    beyond = middle >= cap
    shown = {
        SPAN: ax.vlines(place, radius.min(axis=1), radius.max(axis=1), color=TRAINED, alpha=0.35, linewidth=1),
        WIDE: ax.axhline(1.0, color=INK, linewidth=0.7, linestyle=":"),
    }
    if np.isfinite(cap):
        shown[CAP] = ax.axhline(cap, color=INK, linewidth=0.7, linestyle="--", zorder=0)
    if not beyond.all():
        (shown[MEDIAN],) = ax.plot(place[~beyond], middle[~beyond], ".", color=TRAINED, markersize=3.5)
    if beyond.any():
        style = {"color": RANDOM, "markersize": 4, "markerfacecolor": "none", "linestyle": "none"}
        (shown[BEYOND],) = ax.plot(place[beyond], middle[beyond], marker="^", **style)
    share = f"{100 * float((radius.min(axis=1) >= 1).mean()):.0f} % of {len(radius)} rays ≥ 1"
    ax.text(0.03, 0.985, share, transform=ax.transAxes, va="top", fontsize=7.5)
    ax.set(xlim=(0, len(radius) + 1), xlabel="rays, by least radius")
    ax.set_xticks(np.unique(np.linspace(0, len(radius), 3).round()))
    return shown


def _table(cell: xr.Dataset) -> tuple[Any, Any]:
    """Radii and censoring (ray, all of its radii) of the rays that were found, ordered by their least radius."""
    rays = cell.sizes["ray"]
    radius, censored = (
        cell[name].transpose("ray", "point", "direction").values.reshape(rays, -1) for name in ("radius", "censored")
    )
    found = np.isfinite(radius).all(axis=1)
    radius, censored = radius[found], censored[found].astype(bool)
    order = np.argsort(radius.min(axis=1), kind="stable")
    return radius[order], censored[order]
