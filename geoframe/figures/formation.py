"""Profiles through training (*Beyond Local Linearity*, fig. 1c): a panel a network and set, a line a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem
from geoframe.figures.profiles import positive, scale_limits

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.statistics.courses import Course

MAP, DARKEST, PALEST = "viridis", 0.0, 0.88  # its last tenth is too pale for a line on white


@attrs.frozen(kw_only=True)
class FormationProfiles(Figure):
    """Median profiles of a network's checkpoints: the colour tells the optimiser step, initial weights are dashed."""

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "fig1c"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Medians over images (at scales valid in at least half of them) at checkpoints of the training; dashed: "
            "initial weights; dotted: linear prediction."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no network's steps are known."""
        from geoframe.figures.style import style
        from geoframe.statistics.courses import courses

        ds = select.ratios(tree, self.probe)
        found = courses(ds)
        if not found:
            return {}
        with style():
            return {safe_stem(self.name or "fig1c_formation"): self._panels(ds, found)}

    def _panels(self, ds: xr.Dataset, found: list[Course]) -> matplotlib.figure.Figure:
        from geoframe.figures import style
        from geoframe.statistics.bootstrap import median_over_images

        sets = select.names(ds, "probeset")
        drawn = select.drawn(ds)
        pairs = [(c, n) for c in found for n in sets if drawn.sel(encoder=list(c.names), probeset=n).any()]
        medians = {
            (course.label, name): positive(
                median_over_images(ds["ratio"].sel(encoder=list(course.names), probeset=name))
            )
            for course, name in pairs
        }
        every = np.concatenate([values.ravel() for values in medians.values()])
        columns = len(sets) if len(pairs) == len(found) * len(sets) else min(3, len(pairs))
        figure, axes = style.panels(len(medians), columns, (2.5, 2.3), self.footnote(), top=0.3)
        colours = _colours(found)
        for ax, (course, name) in zip(axes, pairs, strict=False):
            style.log_axes(ax, scale_limits(ds["scale"].values), style.log_limits(every), most=(5, 6))
            draw_course(ax, ds["scale"].values, medians[course.label, name], course, colours)
            style.label_outer(ax)
            ax.set_title("\n".join(style.wrap(text, 30) for text in (course.label, name)))
        low, high = colours.get_clim()
        places, labels = style.log_ticks(low, high, 6)
        bar = figure.colorbar(colours, ax=axes, ticks=places, shrink=0.8, aspect=18 * len(found))
        bar.set_ticklabels(labels)
        bar.minorticks_off()
        bar.set_label("optimiser steps")
        return figure


def draw_course(ax: Any, eta: Any, medians: Any, course: Course, colours: Any) -> None:
    """Draw the checkpoints of one network, later ones above earlier ones."""
    from geoframe.figures import style

    style.reference_line(ax)
    for order, (step, median) in enumerate(zip(course.steps, medians, strict=True)):
        look = {"color": colours.to_rgba(step), "linestyle": "-"} if step else {"color": style.INK, "linestyle": "--"}
        ax.plot(eta, median, **look, linewidth=1.3, zorder=2 + 0.01 * order)
    if not np.isfinite(medians).any():
        ax.text(0.5, 0.5, "no data", transform=ax.transAxes, ha="center", va="center", color=style.INK)


def _colours(found: list[Course]) -> Any:
    """Colours of the steps, on a logarithmic scale that all panels share."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap, LogNorm

    steps = [step for course in found for step in course.steps if step] or [1]
    shades = mpl.colormaps[MAP](np.linspace(DARKEST, PALEST, 256))
    return mpl.cm.ScalarMappable(LogNorm(min(steps), max(max(steps), 2 * min(steps))), ListedColormap(shades))
