"""Ray coverage: F.1's 2×2 of trained or not, same or different class, and fig. 3's correct or misclassified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

SPREAD = 0.06  # half-width of a cloud of test images
Sample = tuple[str, Any, dict[str, Any]]
"""Legend's entry, coverages in %, and look."""


@attrs.frozen(kw_only=True)
class CoverageDesign(Figure):
    """Coverage of each classifier, trained and with its initial weights, for rays of the same and of other classes.

    A dot is a test image; a marker with a bar is the mean over images with its 95 % bootstrap interval. Bands are
    the ranges that F.1's text gives for three networks, in the colour of their kind of ray.

    Attributes
    ----------
    different : str
        Node of the `different` rays; "" where there is none.
    """

    probe: str = "coverage"
    different: str = "coverage-different"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "coverage_design"

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure."""
        from geoframe.figures.style import style
        from geoframe.statistics.coverage import coverages, initial

        coverage = coverages(tree, self.probe, self.different)
        groups: dict[str, list[Sample]] = {}
        for cell, random in _measured(coverage, initial(coverage)):
            for kind in map(str, coverage["classes"].values):
                name = f"{kind} class, {'initial weights' if random else 'trained'}"
                groups.setdefault(_group(cell), []).append(
                    (name, 100 * cell.sel(classes=kind).values, look(kind, random))
                )
        if not groups:
            return {}
        with style():
            return {safe_stem(self.label): points(groups, "covered rays (%)", self.note, bands())}


@attrs.frozen(kw_only=True)
class CoverageByOutcome(Figure):
    """Same-class coverage of trained classifiers, for correctly classified and misclassified images (fig. 3).

    The numbers of images stand under each group.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "coverage_by_outcome"

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no encoder is trained or no image labelled."""
        from geoframe.figures.style import style
        from geoframe.statistics.coverage import coverages, initial
        from geoframe.summary import stored_node

        ds = stored_node(tree, self.probe)
        coverage = coverages(tree, self.probe, "").assign_coords(correct=ds["correct"])
        groups: dict[str, list[Sample]] = {}
        for cell, random in _measured(coverage, initial(coverage)):
            labelled = cell["label"].values >= 0
            if random or not labelled.any():
                continue
            values, right = 100 * cell.sel(classes="same").values, cell["correct"].values.astype(bool)
            samples = values[labelled & right], values[labelled & ~right]
            counts = " / ".join(str(int(np.isfinite(sample).sum())) for sample in samples)
            groups[f"{_group(cell)}\n{counts}"] = [
                ("correct", samples[0], look("same", False)),
                ("misclassified", samples[1], look("different", False)),
            ]
        if not groups:
            return {}
        with style():
            return {safe_stem(self.label): points(groups, "covered rays (%)", self.note)}


def points(
    groups: dict[str, list[Sample]], label: str, note: str, ranges: list[tuple[float, float, str]] | None = None
) -> matplotlib.figure.Figure:
    """Draw groups of samples side by side: clouds, means and intervals, on an axis of percentages."""
    from geoframe.figures import style

    figure, ax = style.single(1.6 + max(1.5 * len(groups), 2.4), 3.8, note)
    shown: dict[str, Any] = {}
    for place, samples in enumerate(groups.values()):
        offsets = (np.arange(len(samples)) - (len(samples) - 1) / 2) * 0.2
        for offset, (entry, values, drawn) in zip(offsets, samples, strict=True):
            values = values[np.isfinite(values)]
            if len(values):
                shown.setdefault(entry, _sample(ax, place + offset, values, drawn))
    for low, high, colour in ranges or ():
        ax.axhspan(low, high, color=colour, alpha=0.13, linewidth=0, zorder=0)
    ax.set(xlim=(-0.6, len(groups) - 0.4), ylim=(-3, 103), yticks=range(0, 101, 20), ylabel=label)
    ax.set_xticks(range(len(groups)), ["\n".join(style.wrap(s, 18) for s in name.split("\n")) for name in groups])
    figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=2)
    return figure


def _sample(ax: Any, x: float, values: Any, drawn: dict[str, Any]) -> Any:
    """Draw one sample, and return its marker."""
    import xarray as xr

    from geoframe.statistics.compare import mean_interval

    spread = np.random.default_rng(0).uniform(-SPREAD, SPREAD, len(values))
    ax.plot(x + spread, values, ".", color=drawn["color"], alpha=0.25, markersize=3, markeredgewidth=0, zorder=2)
    found = mean_interval(xr.DataArray(values, dims="image"))
    mean, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    bar = np.nan_to_num([[mean - low], [high - mean]]).clip(min=0)
    return ax.errorbar(x, mean, yerr=bar, capsize=3, linewidth=1.2, markersize=6.5, zorder=3, linestyle="none", **drawn)


def look(kind: str, random: bool) -> dict[str, Any]:
    """Colour by kind of ray, hollow where the weights are initial."""
    from geoframe.figures.style import RANDOM, TRAINED

    colour, marker = (TRAINED, "o") if kind == "same" else (RANDOM, "s")
    return {"color": colour, "marker": marker, "markerfacecolor": "white" if random else colour}


def bands() -> list[tuple[float, float, str]]:
    """Published ranges, in the colour of their kind of ray."""
    from geoframe.statistics.coverage import PUBLISHED

    return [(*limits, str(look(kind, False)["color"])) for (kind, _), limits in PUBLISHED.items()]


def _measured(coverage: xr.DataArray, random: xr.DataArray) -> Iterator[tuple[xr.DataArray, bool]]:
    """Yield each encoder on each probe set that was measured: (classes, image), and whether its weights are initial."""
    for encoder in range(coverage.sizes["encoder"]):
        for probeset in range(coverage.sizes["probeset"]):
            cell = coverage.isel(encoder=encoder, probeset=probeset)
            if bool(cell.notnull().any()):
                yield cell, bool(random[encoder])


def _group(cell: xr.DataArray) -> str:
    """Return what stands under a group: architecture (or the encoder's name) and probe set."""
    known = "architecture" in cell.coords and str(cell["architecture"].item())
    return f"{known or cell['encoder'].item()}\n{cell['probeset'].item()}"
