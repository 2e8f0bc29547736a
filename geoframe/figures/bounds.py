"""Lower bounds of generalization intervals beside the intervals themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr


@attrs.frozen(kw_only=True)
class BoundsScatter(Figure):
    """The useful bound T* against the measured interval, a dot a ray; a panel an encoder. No dot is above the line."""

    probe: str = "bounds"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "bounds"

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure."""
        from geoframe.figures.style import style
        from geoframe.statistics.bounds import bounds

        ds = bounds(tree, self.probe)
        cells = [
            ds.isel(encoder=i, probeset=j) for i in range(ds.sizes["encoder"]) for j in range(ds.sizes["probeset"])
        ]
        cells = [cell for cell in cells if bool(cell["gi"].notnull().any())]
        if not cells:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(cells)}

    def _panels(self, cells: list[xr.Dataset]) -> matplotlib.figure.Figure:
        from matplotlib.figure import Figure as Canvas
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from geoframe.figures import style

        figure = Canvas(figsize=(0.8 + 2.5 * len(cells), 3.1))
        extra = style.footnote(figure, self.note) / figure.get_figheight()
        figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0, extra, 1, 1 - extra)))
        axes = list(figure.subplots(1, len(cells), squeeze=False).flat)
        pairs = [(cell["gi"].values.ravel(), cell["useful"].values.ravel()) for cell in cells]
        shown = [both[np.isfinite(both)] for both in map(np.concatenate, pairs)]
        limits = style.log_limits(np.concatenate(shown))
        for ax, cell, (gi, useful) in zip(axes, cells, pairs, strict=True):
            _dots(ax, gi, useful)
            style.log_axes(ax, limits, limits, (4, 4))
            ax.set_xlabel("measured interval (diagonals)")
            ax.set_title("\n".join(style.wrap(str(cell[d].item()), 26) for d in ("encoder", "probeset")))
        axes[0].set_ylabel("bound T* (diagonals)")
        return figure


def _dots(ax: Any, gi: Any, useful: Any) -> None:
    from geoframe.figures.style import INK, TRAINED

    good = (gi > 0) & (useful > 0)
    ax.plot(gi[good], useful[good], ".", color=TRAINED, alpha=0.3, markersize=3, markeredgewidth=0)
    ax.axline((1, 1), slope=1, color=INK, linewidth=0.7, linestyle=":")
