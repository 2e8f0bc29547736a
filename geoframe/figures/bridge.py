"""The bridge study: the peak scale η* against the boundary's distance, and what is left of it given local geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem
from geoframe.statistics.rank_correlation import pooled_spearman
from geoframe.summaries.bridge import PERMUTED, QUESTION, STATES
from geoframe.summaries.bridge_values import Nodes, bridge_values
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

CELL = (2.1, 1.9)  # inches
SHOWN = {  # relations of the forest plot, and what the legend calls them
    "q25": "η* with q25",
    QUESTION: "given $\\eta_J$",
    "q25 | tr G, q₀, ‖x‖": "given tr G, q₀, ‖x‖",
    "b": "η* with b (best attack)",
    PERMUTED: "q25 permuted within class",
}
STEP = 0.14  # between the marks of one state


@attrs.frozen(kw_only=True)
class BridgeScatter(Figure):
    """η* against q25, a dot an image; a row for each state of the networks, a column for each output.

    Attributes
    ----------
    gi : str
        Node of the isotropic intervals.
    probeset : str, optional
        Default: the first one.
    """

    probe: str = "response"
    gi: str = "isotropic-gi"
    probeset: str | None = None

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "bridge_scatter"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "η*: scale at which $m_\\eta/\\eta^2$ of an image peaks; q25: distance within which a quarter of isotropic "
            "signed rays have left its class, along other directions. Dots: images with a peak; ρ: Spearman's within "
            "networks, pooled, and the number of images (few peaks: below 10 in each network). Dotted: η* = q25. "
            "On the left edge: q25 = 0, the rays leave the class at once."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no image has a peak."""
        from geoframe.figures.style import style

        values = bridge_values(tree, Nodes(response=self.probe, gi=self.gi), self.probeset)
        good = values["peak"].notnull() & values["q25"].notnull()
        rows = [(state, part) for state, part in by_state(values) if bool(good.sel(encoder=part["encoder"]).any())]
        if not rows:
            return {}
        with style():
            return {safe_stem(self.label): self._grid(rows, values.where(good))}

    def _grid(self, rows: list[tuple[str, xr.Dataset]], shown: xr.Dataset) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        outputs = select.names(shown, "output")
        figure, axes = style.panels(len(rows) * len(outputs), len(outputs), CELL, self.footnote(), top=0.4)
        limits = _limits(shown["q25"].values), _limits(shown["peak"].values)
        seeds = sorted({int(seed) for _, part in rows for seed in part["seed"].values})
        marks: dict[str, Any] = {}
        for place, ax in enumerate(axes):
            state, part = rows[place // len(outputs)]
            output = outputs[place % len(outputs)]
            style.log_axes(ax, *limits, most=(4, 6))
            ax.plot(limits[0], limits[0], ":", color=style.INK, linewidth=0.7, zorder=1)
            for network in range(part.sizes["encoder"]):
                one = part.isel(encoder=network)
                seed = seeds.index(int(one["seed"]))
                x, y = one["q25"].clip(min=limits[0][0]).values, one["peak"].sel(output=output).values
                marks[f"seed {seeds[seed]}"] = _dots(ax, x, y, seed)
            above = f"{output}\n" if place < len(outputs) else ""
            ax.set_title(f"{above}{_note(part, output)}", fontsize=8)
            if not place % len(outputs):
                ax.set_ylabel(f"{state}\nη* (raw-pixel L2)")
            if place >= len(axes) - len(outputs):
                ax.set_xlabel("q25 (raw-pixel L2)")
        figure.legend([marks[k] for k in sorted(marks)], sorted(marks), loc="outside upper center", ncols=4)
        return figure


@attrs.frozen(kw_only=True)
class BridgeForest(Figure):
    """Correlations of η* with their intervals, by state of the networks; a panel for each output."""

    probe: str = "bridge"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "bridge_forest"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Spearman's ρ over images within networks, pooled over the networks of a state (n: images with a peak, in "
            "networks with ten or more), with 95 % bootstrap intervals over seeds and images; of permutations: the "
            "mean and 95 % of them. η* is no news beyond local geometry where the mark given $\\eta_J$ is at 0."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where there is no correlation."""
        from geoframe.figures.style import style

        ds = stored_node(tree, self.probe)
        known = [state for state in ds["state"].values if bool(np.isfinite(ds["rho"].sel(state=state)).any())]
        if not known:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(ds.sel(state=known))}

    def _panels(self, ds: xr.Dataset) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        states, outputs = list(map(str, ds["state"].values)), select.names(ds, "output")
        height = 1.1 + 0.8 * len(states)
        figure, axes = style.panels(len(outputs), len(outputs), (2.4, height), self.footnote(), top=0.7)
        marks: dict[str, Any] = {}
        for ax, output in zip(axes, outputs, strict=True):
            ax.axvline(0, color=style.INK, linewidth=0.7, linestyle=":", zorder=1)
            for row, state in enumerate(states):
                cell = ds.sel(state=state, output=output)
                for place, (relation, text) in enumerate(SHOWN.items()):
                    offset = (place - (len(SHOWN) - 1) / 2) * STEP
                    drawn = _mark(ax, row + offset, cell.sel(relation=relation), place)
                    if drawn is not None:
                        marks[text] = drawn
            ax.set(xlim=(-1.05, 1.05), ylim=(len(states) - 0.5, -0.5), xlabel="Spearman's ρ")
            counts = [int(ds["rho_n"].sel(state=state, output=output, relation="q25")) for state in states]
            names = [
                f"{state}\nn = {n}" if ax is axes[0] else f"n = {n}" for state, n in zip(states, counts, strict=True)
            ]
            ax.set_yticks(range(len(states)), names)
            ax.set(title=output, xticks=(-1, -0.5, 0, 0.5, 1))
        shown = [text for text in SHOWN.values() if text in marks]
        figure.legend([marks[text] for text in shown], shown, loc="outside upper center", ncols=3)
        return figure


def by_state(values: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Return the networks of each state, in order."""
    pairs = zip(values["labels"].values, values["state"].values, strict=True)
    names = np.array([f"{labels} {state}".strip() for labels, state in pairs])
    known = [*(s for s in STATES if s in names), *(s for s in dict.fromkeys(names.tolist()) if s not in STATES)]
    return [(state, values.isel(encoder=np.flatnonzero(names == state))) for state in known]


def _limits(values: Any) -> tuple[float, float]:
    """Limits of a log axis, with some room around the dots that it can show."""
    good = values[np.isfinite(values) & (values > 0)]
    if not good.size:
        return 0.1, 10.0
    return float(good.min() / 1.5), float(good.max() * 1.5)


def _dots(ax: Any, x: Any, y: Any, seed: int) -> Any:
    from geoframe.figures.style import MARKERS, PALETTE

    look = {"color": PALETTE[seed % len(PALETTE)], "marker": MARKERS[seed % len(MARKERS)]}
    (dots,) = ax.plot(x, y, linestyle="none", markersize=3, alpha=0.6, markeredgewidth=0, zorder=3, **look)
    return dots


def _note(part: xr.Dataset, output: str) -> str:
    found = pooled_spearman(part["peak"].sel(output=output).values, part["q25"].values, replicates=0)
    if not found.networks:
        return "few peaks"
    return f"ρ = {found.rho:.2f}, n = {found.n}"


def _mark(ax: Any, y: float, cell: xr.Dataset, place: int) -> Any:
    """Draw one correlation with its interval; nothing where there is none."""
    from geoframe.figures.style import MARKERS, PALETTE

    value, low, high = (float(cell[name]) for name in ("rho", "rho_low", "rho_high"))
    if not np.isfinite(value):
        return None
    bar = np.nan_to_num([[value - low], [high - value]]).clip(min=0)
    look = {"color": PALETTE[place], "marker": MARKERS[place], "markersize": 4, "linestyle": "none", "linewidth": 1.0}
    return ax.errorbar(value, y, xerr=bar, capsize=2, zorder=3, **look)
