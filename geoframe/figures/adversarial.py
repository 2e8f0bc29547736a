"""Adversarial training (*Beyond Local Linearity*, fig. 2a): median profiles by ε, and what ε does to m̃ and the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure
from geoframe.figures.profiles import frame, positive

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.statistics.bootstrap import MedianProfile
    from geoframe.statistics.families import Family

RAMP, DARK, LIGHT = "viridis", 0.0, 0.88  # its end is too pale for a line on white
BUDGET = "training budget ε (L2 in raw [0,1] pixels)"


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
    replicates: int = 1000
    seed: int = 0

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "fig2a_adversarial"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return "Dot: peak of the median profile; open triangle: largest at the end of the ladder. Band: ± 1 SE."

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
        from geoframe.statistics.bump import medians_of

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


@attrs.frozen(kw_only=True)
class BudgetTrends(Figure):
    """Linear prediction m̃ and the peak's place against ε, a line a probe set.

    Budgets stand at equal steps, so that 0 has a place; lines only guide the eye. Left: median over images, bars from
    quartile to quartile. Right: peak of the median profile ± one standard error; an open triangle stands where the
    profile is largest at the end of the ladder.

    Attributes
    ----------
    replicates, seed : int
        Bootstrap of the standard errors, see `median_profile`.
    """

    replicates: int = 1000
    seed: int = 0

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "adversarial_trends"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Left: median over images, bars from quartile to quartile. Right: peak of the median profile ± 1 SE; open "
            "triangle: at the end of the ladder, a lower bound. Steps of ε are not to scale."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure a family."""
        from geoframe.figures.style import style
        from geoframe.statistics.adversarial_table import by_budget
        from geoframe.statistics.families import families

        ds = select.ratios(tree, self.probe)
        table = by_budget(tree, self.probe, replicates=self.replicates, seed=self.seed)
        found = families(ds)
        drawn = {}
        with style():
            for family in found:
                rows = table.sel(encoder=list(family.names))
                if bool(rows["prediction"].notnull().any()):
                    name = family_name(family, found)
                    drawn["_".join(filter(None, (self.stem("adversarial_trends"), name)))] = self._trends(rows, family)
        return drawn

    def _trends(self, rows: xr.Dataset, family: Family) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        figure, (left, right) = style.panels(2, 2, (3.1, 2.5), self.footnote(), top=0.65)
        names = select.names(rows, "probeset")
        for j, name in enumerate(names):
            colour, marker = style.PALETTE[j % len(style.PALETTE)], style.MARKERS[j % len(style.MARKERS)]
            shift = 0.08 * (j - (len(names) - 1) / 2)
            cell = rows.isel(probeset=j)
            _prediction(left, cell, shift, colour, marker, name)
            _place(right, cell, shift, colour, marker)
        budgets = [f"{epsilon:g}" for epsilon in family.epsilons]
        for ax, label in ((left, "linear prediction m̃/η²\n(squared feature L2 / η²)"), (right, "peak's η")):
            ax.set(yscale="log", ylabel=label, xlabel=BUDGET, xlim=(-0.5, len(budgets) - 0.5))
            ax.set_xticks(range(len(budgets)), budgets)
        _limits(left, [rows[name].values for name in ("prediction", "prediction_low", "prediction_high")])
        _limits(right, [rows["peak_scale"].values, *_edges(rows)])
        right.set_ylabel("η of the median profile's peak\n(L2 in raw [0,1] pixels)")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=min(len(names), 4))
        return figure


def _prediction(ax: Any, cell: xr.Dataset, shift: float, colour: str, marker: str, name: str) -> None:
    x = np.arange(cell.sizes["encoder"]) + shift
    middle, low, high = (cell[n].values for n in ("prediction", "prediction_low", "prediction_high"))
    bars = np.maximum([middle - low, high - middle], 0)
    ax.errorbar(x, middle, bars, color=colour, marker=marker, markersize=4, linewidth=1, elinewidth=1, label=name)


def _place(ax: Any, cell: xr.Dataset, shift: float, colour: str, marker: str) -> None:
    x, scale = np.arange(cell.sizes["encoder"]) + shift, cell["peak_scale"].values
    censored = cell["censored"].values.astype(bool)
    low, high = _edges(cell)
    inside = np.isfinite(scale) & ~censored
    ax.plot(x, scale, color=colour, linewidth=1, zorder=1)
    bars = np.nan_to_num(np.array([scale - low, high - scale]))[:, inside]
    ax.errorbar(x[inside], scale[inside], bars, color=colour, marker=marker, markersize=4, linestyle="none")
    ax.plot(x[censored], scale[censored], "^", color=colour, markerfacecolor="white", markersize=6)


def _edges(rows: xr.Dataset) -> tuple[Any, Any]:
    """Ends of the bars of ± one standard error of log10 η; the place itself where there is none."""
    scale, error = rows["peak_scale"].values, np.nan_to_num(rows["log10_peak_scale_se"].values)
    return scale / 10**error, scale * 10**error


def _limits(ax: Any, values: list[Any]) -> None:
    """Limits and ticks of a logarithmic axis around what is drawn."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    from geoframe.figures.style import log_ticks

    known = np.concatenate([np.ravel(v) for v in values])
    known = known[np.isfinite(known) & (known > 0)]
    if not known.size:
        ax.text(0.5, 0.5, "no peak", transform=ax.transAxes, ha="center")
        return
    low, high = float(known.min()) / 1.6, float(known.max()) * 1.6
    places, labels = log_ticks(low, high, 7)
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(FixedLocator(places))
    ax.yaxis.set_major_formatter(FixedFormatter(labels))
    ax.yaxis.set_minor_formatter(NullFormatter())


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
