"""Ray coverage over training, seed by seed and optimiser by optimiser (Neural Expansion, F.2, Table 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.compare import LEVEL, mean_interval
from geoframe.statistics.runs import Run, accuracies, label, optimiser, runs
from geoframe.summaries.tables import NONE, number, percent
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

VARIABLES = {
    "coverage": ("1", "mean over test images of the share of covered rays"),
    "coverage_low": ("1", "lower end of the 95 % interval of the mean coverage"),
    "coverage_high": ("1", "upper end of the 95 % interval of the mean coverage"),
    "images": ("1", "number of test images with rays"),
    "accuracy": ("1", "share of correct classifications of the training's test images"),
}


@attrs.frozen
class CoveredRun:
    """One training and its coverage.

    Attributes
    ----------
    run : Run
        Its checkpoints.
    network, optimiser, seed : str
        Architecture and data set, and what may differ from run to run.
    coverage : xarray.DataArray
        (encoder, image), or (encoder,).
    """

    run: Run
    network: str
    optimiser: str
    seed: str
    coverage: xr.DataArray

    @property
    def final(self) -> xr.DataArray:
        """Coverage at the last checkpoint."""
        return self.coverage.sel(encoder=self.run.name)

    @property
    def untrained(self) -> xr.DataArray | None:
        """Coverage with initial weights; None where they aren't there."""
        return self.coverage.sel(encoder=self.run.encoders[0]) if self.run.has_initial else None


def covered_runs(ds: xr.Dataset, coverage: xr.DataArray) -> list[CoveredRun]:
    """Return the runs that were measured on a probe set.

    Parameters
    ----------
    ds : xarray.Dataset
        With the coordinates over encoder, and `optimiser` or provenance.
    coverage : xarray.DataArray
        On that probe set: (encoder, …).
    """
    found = []
    for run in runs(ds):
        mine = coverage.sel(encoder=list(run.encoders))
        if bool(mine.notnull().any()):
            how = label(ds, run.name, "optimiser") or optimiser(ds, run.name)
            parts = [label(ds, run.name, name) for name in ("architecture", "dataset", "variant")]
            network = " ".join(part for part in parts if part and part != how)
            found.append(CoveredRun(run, network or run.name, how, label(ds, run.name, "seed"), mine))
    return found


def by_network(found: Sequence[CoveredRun]) -> dict[str, list[CoveredRun]]:
    """Group runs by architecture, data set, and what sets them apart beside the optimiser."""
    groups: dict[str, list[CoveredRun]] = {}
    for one in found:
        groups.setdefault(one.network, []).append(one)
    return groups


def over_seeds(found: Sequence[CoveredRun]) -> list[CoveredRun]:
    """Runs of one network that differ in their seed: those of its most frequent optimiser."""
    most = Counter(one.optimiser for one in found).most_common(1)
    return _first_of_each((one for one in found if one.optimiser == most[0][0]), "seed")


def over_optimisers(found: Sequence[CoveredRun]) -> list[CoveredRun]:
    """Runs of one network that differ in their optimiser: those of its most frequent seed."""
    most = Counter(one.seed for one in found).most_common(1)
    return _first_of_each((one for one in found if one.seed == most[0][0]), "optimiser")


def _first_of_each(found: Iterable[CoveredRun], what: str) -> list[CoveredRun]:
    first: dict[str, CoveredRun] = {}
    for one in found:
        first.setdefault(getattr(one, what), one)
    return list(first.values())


def variation_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Coefficient of variation (ddof 1) with the interval that χ² gives the standard deviation of normal values."""
    from scipy import stats

    n = len(values)
    if n < 2 or not np.mean(values):
        return (np.nan,) * 3
    found = float(stats.variation(values, ddof=1))
    ends = (np.sqrt((n - 1) / stats.chi2.ppf((1 + side * level) / 2, n - 1)) for side in (1, -1))
    low, high = (float(found * end) for end in ends)
    return found, low, high


def deviation_ratio(
    first: Sequence[float], second: Sequence[float], level: float = LEVEL
) -> tuple[float, float, float]:
    """Ratio of two standard deviations (ddof 1) with the interval that F gives two samples of normal values."""
    from scipy import stats

    degrees = len(first) - 1, len(second) - 1
    if min(degrees) < 1 or not np.ptp(second):
        return (np.nan,) * 3
    ratio = float(np.std(first, ddof=1) / np.std(second, ddof=1))
    low, high = (float(ratio / np.sqrt(stats.f.ppf((1 + side * level) / 2, *degrees))) for side in (1, -1))
    return ratio, low, high


@attrs.frozen(kw_only=True)
class SeedSummary(Summary):
    """Coverage of each run at each of its checkpoints, and how much runs differ.

    Attributes
    ----------
    probe : str
        Node of the `same` rays.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return "seeds"."""
        return "seeds"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "coverage in %, mean over n test images of the share of rays that keep the predicted class (Neural "
            "Expansion, F.2), after so many epochs, 0: initial weights; accuracy: of all test images, at the end; CV: "
            "standard deviation over runs, of the mean; results also hold intervals over images"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images, (encoder, probeset)."""
        node = stored_node(tree, self.probe)
        names = {"mean": "coverage", "low": "coverage_low", "high": "coverage_high", "n": "images"}
        ds = mean_interval(node["coverage"], shares=True).rename(names)
        ds["accuracy"] = accuracies(tree, node["encoder"])
        how = np.array([optimiser(node, name) for name in map(str, node["encoder"].values)], dtype=object)
        return described(ds.assign_coords(optimiser=("encoder", how)), VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row a run and probe set: coverage at each epoch."""
        cells = [(name, one) for name in _probesets(ds) for one in _on(ds, name)]
        epochs = sorted({epoch for _, one in cells for epoch in one.run.epochs})
        rows = []
        for name, one in cells:
            at = dict(zip(one.run.epochs, one.coverage.values, strict=True))
            last = ds.sel(encoder=one.run.name, probeset=name)
            start = [one.run.name, name, one.optimiser, one.seed, str(int(last["images"])), percent(last["accuracy"])]
            rows.append([*start, *(percent(at[e]) if e in at else NONE for e in epochs)])
        return ["run", "probe set", "optimiser", "seed", "n", "accuracy (%)", *(f"{e:g}" for e in epochs)], rows

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the table of runs, and that of what seeds and optimisers change."""
        headers = ["network", "probe set", "over", "runs", "untrained (%)", "trained (%)", "CV trained (%)"]
        rows = []
        for name in _probesets(ds):
            for network, found in by_network(_on(ds, name)).items():
                groups = {"seeds": over_seeds(found), "optimisers": over_optimisers(found), "all runs": found}
                rows += [[network, name, text, *_spread(group)] for text, group in groups.items()]
        return [(f"{self.label}, runs", *self.rows(ds)), (f"{self.label}, spread", headers, rows)]


def _probesets(ds: xr.Dataset) -> list[str]:
    return [str(name) for name in ds["probeset"].values]


def _on(ds: xr.Dataset, probeset: str) -> list[CoveredRun]:
    return covered_runs(ds, ds["coverage"].sel(probeset=probeset))


def _spread(found: Sequence[CoveredRun]) -> list[str]:
    """Number of runs, range of the untrained and of the trained coverage, and the latter's variation."""
    trained = [float(one.final) for one in found if one.run.trained]
    untrained = [float(one.untrained) for one in found if one.untrained is not None]
    return [str(len(found)), _range(untrained), _range(trained), number(100 * variation_interval(trained)[0])]


def _range(values: Sequence[float]) -> str:
    known = [value for value in values if np.isfinite(value)]
    return f"{percent(min(known), 4)}–{percent(max(known), 4)}" if known else NONE
