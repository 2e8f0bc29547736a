"""Ray coverage: 2×2 of trained or not, same or different class (Neural Expansion, F.1), and by outcome (fig. 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

SPREAD = 0.06  # half-width of a cloud of test images
MARKER = "marker and bar: mean with its 95 % interval (bootstrap over images; no bar below 10)"
Limits = list[tuple[float, float]]
Sample = tuple[str, Any, dict[str, Any]]
"""Legend's entry, coverages in %, and look."""


@attrs.frozen(kw_only=True)
class CoverageDesign(Figure):
    """Coverage of each classifier, trained and with its initial weights, for rays of the same and of other classes.

    A group for each trained network on each probe set, with its own random copy (see `networks`); a random copy
    whose network isn't known or isn't there has a group of its own. A dot is a test image; a marker with a bar is the
    mean over images with its 95 % bootstrap interval. Bands are the ranges that F.1's text gives for three networks.

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

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            f"Dots: test images; {MARKER}. Shaded: ranges over the three networks of Neural Expansion, F.1 (MLP and "
            "CNN on MNIST, CNN on Fashion-MNIST): same class 89–96 % trained and 32–47 % initial, different class "
            "0.3–1.2 % trained."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure."""
        from geoframe.figures.style import style
        from geoframe.summaries.coverage import coverages

        coverage = coverages(tree, self.probe, self.different)
        groups: dict[str, list[Sample]] = {}
        for name, members in _members(coverage):
            for probeset in map(str, coverage["probeset"].values):
                samples = _samples(coverage.sel(probeset=probeset), members)
                if samples:
                    groups[f"{name}\n{probeset}"] = samples
        if not groups:
            return {}
        with style():
            return {safe_stem(self.label): points(groups, "covered rays (%)", self.footnote(), bands())}


@attrs.frozen(kw_only=True)
class CoverageByOutcome(Figure):
    """Same-class coverage of trained classifiers, for correctly classified and misclassified images (fig. 3).

    The numbers of images stand under each group.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "coverage_by_outcome"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Same-class rays to test images (Neural Expansion, fig. 3), by whether the prediction is right; dots: test "
            f"images; {MARKER}; under each group: correct / misclassified images. Networks with their initial weights "
            "are left out."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no encoder is trained or no image labelled."""
        from geoframe.figures.style import style
        from geoframe.summaries.coverage import coverages
        from geoframe.summary import stored_node

        ds = stored_node(tree, self.probe)
        coverage = coverages(tree, self.probe, "").assign_coords(correct=ds["correct"])
        trained = coverage.isel(encoder=[i for i, random in enumerate(select.is_random(coverage)) if not random])
        groups: dict[str, list[Sample]] = {}
        for cell in select.cells(trained.to_dataset(name="coverage"), "coverage"):
            labelled = cell["label"].values >= 0
            if not labelled.any():
                continue
            values, right = 100 * cell["coverage"].sel(classes="same").values, cell["correct"].values.astype(bool)
            samples = values[labelled & right], values[labelled & ~right]
            counts = " / ".join(str(int(np.isfinite(sample).sum())) for sample in samples)
            groups[f"{cell['encoder'].item()}\n{cell['probeset'].item()}\n{counts}"] = [
                ("correct", samples[0], look("same", False)),
                ("misclassified", samples[1], look("different", False)),
            ]
        if not groups:
            return {}
        with style():
            return {safe_stem(self.label): points(groups, "covered rays (%)", self.footnote())}


def points(
    groups: dict[str, list[Sample]], label: str, note: str, ranges: list[tuple[str, str, Limits]] | None = None
) -> matplotlib.figure.Figure:
    """Draw groups of samples side by side: clouds, means and intervals, on an axis of percentages."""
    from geoframe.figures import style

    figure, ax = style.single(1.6 + max(1.5 * len(groups), 3.0), 4.0, note)
    shown: dict[str, Any] = {}
    for place, samples in enumerate(groups.values()):
        offsets = (np.arange(len(samples)) - (len(samples) - 1) / 2) * 0.2
        for offset, (entry, values, drawn) in zip(offsets, samples, strict=True):
            values = values[np.isfinite(values)]
            if len(values):
                shown.setdefault(entry, _sample(ax, place + offset, values, drawn))
    for entry, colour, limits in ranges or ():
        for low, high in limits:
            shown[entry] = ax.axhspan(low, high, color=colour, alpha=0.16, linewidth=0, zorder=0)
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
    found = mean_interval(xr.DataArray(values / 100, dims="image"), shares=True)
    mean, low, high = (100 * float(found[name]) for name in ("mean", "low", "high"))
    bar = np.nan_to_num([[mean - low], [high - mean]]).clip(min=0)
    return ax.errorbar(x, mean, yerr=bar, capsize=3, linewidth=1.2, markersize=6.5, zorder=3, linestyle="none", **drawn)


def look(kind: str, random: bool) -> dict[str, Any]:
    """Colour by kind of ray, hollow where the weights are initial."""
    from geoframe.figures.style import RANDOM, TRAINED

    colour, marker = (TRAINED, "o") if kind == "same" else (RANDOM, "s")
    return {"color": colour, "marker": marker, "markerfacecolor": "white" if random else colour}


def bands() -> list[tuple[str, str, Limits]]:
    """Published ranges by kind of ray: legend's entry, colour, limits in %."""
    from geoframe.summaries.contrasts import PUBLISHED

    limits = {kind: [PUBLISHED[side] for side in PUBLISHED if side[0] == kind] for kind in ("same", "different")}
    return [(f"published, {kind} class", str(look(kind, False)["color"]), pairs) for kind, pairs in limits.items()]


def _members(coverage: xr.DataArray) -> list[tuple[str, list[str]]]:
    """Name and encoders of each group: a trained encoder with its random copy, or a random copy by itself."""
    from geoframe.statistics.pairing import networks

    found = networks(coverage)
    groups = {name: [name, *([n.control] if n.control else [])] for n in found for name in n.trained}
    taken = {name for members in groups.values() for name in members}
    names = [str(name) for name in coverage["encoder"].values]
    groups |= {name: [name] for name in names if name not in taken}
    return [(name, groups[name]) for name in names if name in groups]


def _samples(coverage: xr.DataArray, members: list[str]) -> list[Sample]:
    """Coverages in % of some encoders, by kind of ray; nothing of those that weren't measured."""
    random = dict(zip(map(str, coverage["encoder"].values), select.is_random(coverage), strict=True))
    samples = []
    for name in members:
        for kind in map(str, coverage["classes"].values):
            values = 100 * coverage.sel(encoder=name, classes=kind).values
            if np.isfinite(values).any():
                entry = f"{kind} class, {'initial weights' if random[name] else 'trained'}"
                samples.append((entry, values, look(kind, random[name])))
    return samples
