"""Accuracy, intervals and coverage over training, by arm of an intervention (Neural Expansion, §5.2 and H.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

PANELS = {"test_accuracy": "test accuracy (%)", "gi": "mean GI", "coverage": "ray coverage (%)"}
PLACE = {"control": 0, "expand": 2, "restrict": 1}  # in the palette and among the markers


@attrs.frozen(kw_only=True)
class InterventionCourses(Figure):
    """Three panels a network: test accuracy, mean GI and ray coverage at each epoch, in a colour for each arm.

    A thin line is a seed; the thick one with markers is the mean over seeds.

    Attributes
    ----------
    gi : str
        Node of the intervals.
    """

    probe: str = "coverage"
    gi: str = "gi"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "interventions"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "After Neural Expansion, §5.2 and H.3. Thin lines: seeds; thick, with markers: their mean. GI: mean over "
            "images, directions and signs, restricted at the search's cap; coverage: share of rays from training "
            "images of the predicted class that keep it."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure, a row a network; nothing where no arm is trained."""
        from geoframe.figures.style import style
        from geoframe.summaries.arms import arm_courses, loss_settings
        from geoframe.summary import stored_node

        courses = arm_courses(tree, self.probe, self.gi)
        if not courses.sizes["network"]:
            return {}
        units = str(stored_node(tree, self.gi)["gi"].attrs.get("units", ""))
        losses = loss_settings(tree)
        note = self.footnote(f"Expand, restrict: {losses} (ours)." if losses else "")
        with style():
            return {safe_stem(self.label): self._panels(courses, units, note)}

    def _panels(self, courses: xr.Dataset, units: str, note: str) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        networks = [str(name) for name in courses["network"].values]
        figure, axes = style.panels(3 * len(networks), 3, (2.5, 2.3), note, top=0.4)
        shown: dict[str, Any] = {}
        for i, network in enumerate(networks):
            for ax, (name, label) in zip(axes[3 * i :], PANELS.items(), strict=False):
                factor = 1 if name == "gi" else 100
                shown |= _lines(ax, factor * courses[name].sel(network=network))
                ax.set(xlabel="epoch", title=style.wrap(network, 30) if name == "gi" else "")
                ax.set_ylabel(f"{label}\n({units})" if name == "gi" and units else label)
                _ticks(ax)
        figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3)
        return figure


def _lines(ax: Any, values: xr.DataArray) -> dict[str, Any]:
    """Draw the arms of one network, (arm, seed, epoch); return a line of each for the legend."""
    from geoframe.figures import style

    shown = {}
    for arm in map(str, values["arm"].values):
        mine = values.sel(arm=arm).transpose("seed", "epoch").values
        known = np.isfinite(mine).any(axis=0)
        if not known.any():
            continue
        colour, marker = style.PALETTE[PLACE[arm]], style.MARKERS[PLACE[arm]]
        epochs = values["epoch"].values[known]
        for seed in mine[:, known]:
            ax.plot(epochs, seed, color=colour, linewidth=0.6, alpha=0.5)
        mean = np.nanmean(mine[:, known], axis=0)
        (shown[arm],) = ax.plot(epochs, mean, color=colour, marker=marker, markersize=4, linewidth=1.4)
    return shown


def _ticks(ax: Any) -> None:
    """Label whole epochs, and no place outside the axes."""
    ax.xaxis.get_major_locator().set_params(integer=True)
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        axis.set_ticks([place for place in axis.get_ticklocs() if low <= place <= high])
