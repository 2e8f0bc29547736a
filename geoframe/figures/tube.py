"""Tube radii around covered rays (F.3, Table 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr


@attrs.frozen(kw_only=True)
class TubeRadii(Figure):
    """Radii of each ray's tube, in hops: a line from the least to the largest, a dot at the median, rays in order.

    A panel for each encoder and probe set; the line at 1 is a region as wide as the ray is long. Lines end at the
    search's cap, where the radius is censored.
    """

    probe: str = "tube"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "tube_radii"

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure."""
        from geoframe.figures.style import style
        from geoframe.statistics.tube import tubes

        ds = tubes(tree, self.probe)
        cells = [
            ds.isel(encoder=encoder, probeset=probeset)
            for encoder in range(ds.sizes["encoder"])
            for probeset in range(ds.sizes["probeset"])
        ]
        cells = [cell for cell in cells if bool(cell["radius"].notnull().any())]
        if not cells:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(cells)}

    def _panels(self, cells: list[xr.Dataset]) -> matplotlib.figure.Figure:
        from matplotlib.figure import Figure as Canvas
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from geoframe.figures import style

        across = min(len(cells), 3)
        down = -(-len(cells) // across)
        figure = Canvas(figsize=(0.7 + 2.2 * across, 0.5 + 2.2 * down))
        extra = style.footnote(figure, self.note) / figure.get_figheight()
        figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0, extra, 1, 1 - extra)))
        axes = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
        for ax, cell in zip(axes, cells, strict=False):
            _rays(ax, cell)
            ax.set_title("\n".join(style.wrap(str(cell[d].item()), 26) for d in ("encoder", "probeset")))
        highest = 1.12 * max(float(cell["radius"].max()) for cell in cells)
        axes[0].set(ylim=(0, highest), yticks=np.arange(0, highest, 0.5 if highest < 4 else 1))  # shared by all
        for ax in axes[::across]:
            ax.set_ylabel("tube radius / length of the ray")
        for ax in axes[len(cells) :]:
            ax.set_axis_off()
        return figure


def _rays(ax: Any, cell: xr.Dataset) -> None:
    """Draw the rays of one encoder, ordered by their least radius."""
    from geoframe.figures.style import INK, TRAINED

    radius = cell["radius"].transpose("ray", "point", "direction").values.reshape(cell.sizes["ray"], -1)
    radius = radius[np.isfinite(radius).all(axis=1)]
    radius = radius[np.argsort(radius.min(axis=1), kind="stable")]
    place = np.arange(1, len(radius) + 1)
    ax.vlines(place, radius.min(axis=1), radius.max(axis=1), color=TRAINED, alpha=0.35, linewidth=1)
    ax.plot(place, np.median(radius, axis=1), ".", color=TRAINED, markersize=3)
    ax.axhline(1.0, color=INK, linewidth=0.7, linestyle=":")
    share = float((radius.min(axis=1) >= 1).mean())
    ax.text(
        0.03, 0.97, f"{100 * share:.0f} % of {len(radius)} rays ≥ 1", transform=ax.transAxes, va="top", fontsize=7.5
    )
    ax.set(xlim=(0, len(radius) + 1), xlabel="rays, by least radius")
    ax.set_xticks(np.unique(np.linspace(0, len(radius), 3).round()))
