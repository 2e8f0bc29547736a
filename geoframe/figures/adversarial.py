"""Adversarial training (*Beyond Local Linearity*, fig. 2a): median profiles by ε, the peak of each marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure
from geoframe.figures.profiles import frame, positive
from geoframe.spec import count

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.statistics.bootstrap import MedianProfile
    from geoframe.statistics.families import Family

RAMP, DARK, LIGHT = "viridis", 0.0, 0.88  # its end is too pale for a line on white


@attrs.frozen(kw_only=True)
class BudgetProfiles(Figure):
    """Median profiles of a family of networks by ε, darkest at ε = 0, the peak of each marked (fig. 2a).

    A figure for each family on each probe set. A dot is an interior peak (by parabola); an open triangle stands where
    the profile is largest at the end of the ladder, so that its peak may lie beyond.

    Attributes
    ----------
    probeset : str, optional
        By default each in a figure of its own.
    replicates, seed : int
        Bootstrap of the band, see `median_profile`.
    """

    probeset: str | None = None
    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "fig2a_adversarial"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Dot: peak of the median profile (at scales valid in at least half of the images; parabola); open "
            "triangle: largest at the ladder's end. Band: ± 1 SE."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw a figure for each family and probe set."""
        from geoframe.figures.style import style
        from geoframe.statistics.families import families

        ds = select.ratios(tree, self.probe)
        found = families(ds)
        sets = select.names(ds, "probeset") if self.probeset is None else [select.chosen(ds, "probeset", self.probeset)]
        drawn = {}
        with style():
            for family in found:
                for probeset in sets:
                    cell = ds.sel(encoder=list(family.names), probeset=probeset)
                    if bool(cell["ratio"].notnull().any()):
                        drawn[self._stem(family, found, probeset, sets)] = self._medians(cell, family, probeset)
        return drawn

    def _stem(self, family: Family, found: list[Family], probeset: str, sets: list[str]) -> str:
        which = (family_name(family, found), probeset if len(sets) > 1 or self.probeset else "")
        return self.stem("fig2a_adversarial") + "".join(f"_{part}" for part in which if part)

    def _medians(self, ds: xr.Dataset, family: Family, probeset: str) -> matplotlib.figure.Figure:
        from geoframe.figures import style
        from geoframe.summaries.bump import medians_of

        medians: list[MedianProfile] = list(medians_of(ds, replicates=self.replicates, seed=self.seed))
        figure, ax = style.single(5.4, max(3.4, 0.6 + 0.19 * len(medians)), self.footnote())
        style.reference_line(ax)
        eta = ds["scale"].values
        shown = []
        for colour, epsilon, median in zip(colours(len(medians)), family.epsilons, medians, strict=True):
            shown.append(_draw(ax, eta, median, colour, f"ε = {epsilon:g}"))
        frame(ax, eta, np.concatenate([*shown, *(positive(m.ratio) for m in medians)]))
        images = max(m.images for m in medians)
        title = f"{family.label or 'networks'} by ε: median of {images} image{'s' * (images != 1)} on {probeset}"
        ax.set_title(style.wrap(title, 62))
        figure.legend(loc="outside right upper")
        return figure


def _draw(ax: Any, eta: Any, median: MedianProfile, colour: Any, label: str) -> Any:
    """Draw a median, its band and its peak; return the band's edges that are on the ladder."""
    from geoframe.figures.profiles import band
    from geoframe.statistics.peaks import peaks

    edges = band(median)
    ax.plot(eta, positive(median.ratio), color=colour, linewidth=1.5, label=label, zorder=3)
    ax.fill_between(eta, *edges, color=colour, alpha=0.12, linewidth=0, zorder=2)
    top = peaks(eta, median.ratio)
    look: dict[str, Any] = {"marker": "o", "markerfacecolor": colour}
    if bool(top.at_end):
        look = {"marker": "^", "markerfacecolor": "white"}
    ax.plot(float(top.scale), float(top.height), color=colour, markersize=6, zorder=4, clip_on=False, **look)
    return np.concatenate(edges)


def family_name(family: Family, found: list[Family]) -> str:
    """Return what tells a family from others in a file's name; "" where it is the only one."""
    from geoframe.figures.figure import safe_stem

    if len(found) == 1:
        return ""
    own = [other for other in found if other.label == family.label]
    return safe_stem(family.label + (f"-{own.index(family) + 1}" if len(own) > 1 else ""))


def colours(count: int) -> list[Any]:
    """Return colours from dark to light, equally far apart; safe for the colour-blind."""
    import matplotlib as mpl

    return [mpl.colormaps[RAMP](value) for value in np.linspace(DARK, LIGHT, count)]
