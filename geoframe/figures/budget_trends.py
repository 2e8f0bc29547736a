"""What adversarial training does to linear prediction and peak, against ε (*Beyond Local Linearity*, fig. 2a)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.adversarial import family_name
from geoframe.figures.figure import Figure
from geoframe.spec import count

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.statistics.families import Family

BUDGET = "training budget ε (L2 in raw [0,1] pixels)"


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

    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "adversarial_trends"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Left: median over images, bars from quartile to quartile. Right: peak of the median profile (at scales "
            "valid in at least half of the images) ± 1 SE; open triangle: at the end of the ladder, a lower bound. "
            "Steps of ε are not to scale."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure a family."""
        from geoframe.figures.style import style
        from geoframe.statistics.families import families
        from geoframe.summaries.adversarial_table import by_budget

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
