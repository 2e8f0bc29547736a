"""Mean GI, share of GI > 1 and test accuracy over training (Neural Expansion, fig. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem
from geoframe.figures.ticks import keep_in_view

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.statistics.runs import Run

NAMES = {"rsv": "right singular vectors (RSV)", "random": "random directions"}


class Panel(NamedTuple):
    """What a panel shows: its title, the unit on its axis, and a table (encoder,) for each entry of the legend."""

    title: str
    units: str
    lines: dict[str, xr.DataArray]


@attrs.frozen(kw_only=True)
class ExpansionCurves(Figure):
    """Three panels a network and probe set, over epochs: mean GI, share of GI > 1, and test accuracy.

    A thin line a run (seed), and the mean over runs, at the epochs that all have, in bold. Epoch 0 are the initial
    weights.

    Attributes
    ----------
    random : str
        Node of the random directions; `probe` is that of the singular vectors.
    """

    probe: str = "gi"
    random: str = "gi-random"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "expansion"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "After Neural Expansion, fig. 1. Thin: runs (seeds), each the mean over images, directions and both signs; "
            "bold, with markers: mean over runs. Mean GI is restricted at the search's cap. Epoch 0: initial weights."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure a network and probe set, named by these where there are several."""
        from geoframe.figures.style import style
        from geoframe.statistics.runs import accuracies, family, runs
        from geoframe.summaries.expansion import by_image

        table = by_image(tree, self.probe, self.random)
        accuracy = accuracies(tree, table["encoder"])
        groups: dict[tuple[str, str], list[Run]] = {}
        for name in map(str, table["probeset"].values):
            known = table["gi"].sel(probeset=name).notnull().any(("kind", "image"))
            for run in runs(table):
                if bool(known.sel(encoder=list(run.encoders)).any()):
                    groups.setdefault((family(table, run.name), name), []).append(run)
        drawn = {}
        for (network, name), members in groups.items():
            stem = self.label if len(groups) == 1 else f"{self.label}-{network}-{name}"
            with style():
                panels = _panels(table.sel(probeset=name), accuracy, table["gi"].attrs["units"])
                drawn[safe_stem(stem)] = self._figure(panels, members, f"{network}, probe set {name}.")
        return drawn

    def _figure(self, panels: list[Panel], members: list[Run], what: str) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        figure, axes = style.panels(len(panels), len(panels), (2.6, 2.6), self.footnote(what))
        shown: dict[str, Any] = {}
        for ax, panel in zip(axes, panels, strict=True):
            for entry, values in panel.lines.items():
                handle = _lines(ax, values, members, _look(entry))
                if handle is not None:
                    shown[entry] = handle
            ax.set(title=panel.title, xlabel="epoch", ylabel=panel.units)
            ax.margins(y=0.08)
            keep_in_view(ax)
        figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3)
        return figure


def _panels(table: xr.Dataset, accuracy: xr.DataArray, units: str) -> list[Panel]:
    means = table.mean("image")
    return [
        Panel("mean GI", units, {text: means["gi"].sel(kind=kind) for kind, text in NAMES.items()}),
        Panel("GI > 1", "rays (%)", {text: 100 * means["over_1"].sel(kind=kind) for kind, text in NAMES.items()}),
        Panel("test accuracy", "test images (%)", {"test accuracy": 100 * accuracy}),
    ]


def _look(entry: str) -> dict[str, str]:
    from geoframe.figures.style import MARKERS, PALETTE

    place = [*NAMES.values(), "test accuracy"].index(entry)
    return {"color": PALETTE[place], "marker": MARKERS[place]}


def _lines(ax: Any, values: xr.DataArray, members: list[Run], look: dict[str, str]) -> Any:
    """Draw each run, and the mean over runs; return the latter's line, None where nothing is known."""
    columns: dict[float, list[float]] = {}
    for run in members:
        found = values.sel(encoder=list(run.encoders)).values
        ax.plot(run.epochs, found, color=look["color"], linewidth=0.6, alpha=0.6)
        for epoch, value in zip(run.epochs, found, strict=True):
            columns.setdefault(epoch, []).append(float(value))
    common = sorted(
        epoch for epoch, found in columns.items() if len(found) == len(members) and np.isfinite(found).all()
    )
    if not common:
        return None
    means = [float(np.mean(columns[epoch])) for epoch in common]
    (line,) = ax.plot(common, means, linewidth=1.8, markersize=4, **look)
    return line
