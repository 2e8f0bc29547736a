"""Coverage over training, run by run: seeds and optimisers (Neural Expansion, F.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem
from geoframe.figures.ticks import keep_in_view

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.summaries.seeds import CoveredRun

NAMES = {"sgd": "SGD", "adam": "Adam", "rmsprop": "RMSprop"}


@attrs.frozen(kw_only=True)
class CoverageRuns(Figure):
    """A panel a network and probe set: mean coverage over epochs, a line a run, coloured by its optimiser.

    Epoch 0 are the initial weights.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "coverage_runs"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "After Neural Expansion, F.2 and Table 5. A line a run: mean over test images of the share of rays that "
            "keep the predicted class; epoch 0: initial weights."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where nothing was measured."""
        from geoframe.figures.style import style
        from geoframe.summaries.seeds import by_network, covered_runs
        from geoframe.summary import stored_node

        node = stored_node(tree, self.probe)
        panels: dict[str, list[CoveredRun]] = {}
        for name in map(str, node["probeset"].values):
            found = covered_runs(node, 100 * node["coverage"].sel(probeset=name).mean("image"))
            panels |= {f"{network}\n{name}": members for network, members in by_network(found).items()}
        if not panels:
            return {}
        with style():
            return {safe_stem(self.label): self._figure(panels)}

    def _figure(self, panels: dict[str, list[CoveredRun]]) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        figure, axes = style.panels(len(panels), 3, (2.9, 2.8), self.footnote())
        found = [one.optimiser for members in panels.values() for one in members]
        known = list(dict.fromkeys([*(name for name in NAMES if name in found), *found]))
        shown: dict[str, Any] = {}
        for ax, (title, members) in zip(axes, panels.items(), strict=False):
            for how in known:
                lines = [_line(ax, one, known.index(how)) for one in members if one.optimiser == how]
                if lines:
                    shown.setdefault(how, lines[0])
            ax.set(title=title, xlabel="epoch", ylabel="covered rays (%)", ylim=(-3, 103))
            keep_in_view(ax)
        entries = [_entry(how, panels) for how in shown]
        figure.legend(list(shown.values()), entries, loc="outside upper center", ncols=3)
        return figure


def _line(ax: Any, one: CoveredRun, place: int) -> Any:
    from geoframe.figures.style import MARKERS, PALETTE

    look = {"color": PALETTE[place % len(PALETTE)], "marker": MARKERS[place % len(MARKERS)]}
    values = np.asarray(one.coverage.values, dtype=np.float64)
    (line,) = ax.plot(one.run.epochs, values, linewidth=1.0, markersize=4, alpha=0.8, **look)
    return line


def _entry(how: str, panels: dict[str, list[CoveredRun]]) -> str:
    """The optimiser's name, and how many seeds where there are several."""
    most = max(len({one.seed for one in members if one.optimiser == how}) for members in panels.values())
    return NAMES.get(how, how) + (f" ({most} seeds)" if most > 1 else "")
