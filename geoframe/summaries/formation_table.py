"""The bump at each measured checkpoint of stored trainings, with the accuracies there: the table of fig. 1c."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.spec import count
from geoframe.statistics.courses import courses
from geoframe.summaries.bump import VARIABLES, bump, verdict, was_measured
from geoframe.summaries.tables import NONE, number, percent, place_with_error, with_error
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

ACCURACIES = {
    "train_accuracy": ("1", "share of training images, as they are, that are classified rightly"),
    "test_accuracy": ("1", "share of test images that are classified rightly"),
}


@attrs.frozen(kw_only=True)
class FormationSummary(Summary):
    """Table of the bump through training (*Beyond Local Linearity*, fig. 1c): a row a checkpoint, by `BumpRule`.

    Attributes
    ----------
    probe, training : str
        Nodes of the ratios, and of the accuracies; where there is no such node, they are missing.
    replicates, seed : int
        Bootstrap of the standard errors, see `median_profile`.
    """

    probe: str = "ratio"
    training: str = "training"
    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return the node's name: formation."""
        return "formation"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "of the median over images, at scales valid in at least half of them; peak by a parabola through three "
            "log-log points; ± is one standard error (bootstrap over images and directions); accuracies without "
            "augmentation; η in L2 of raw [0, 1] pixels"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Apply `bump` to the probe's node, and put the accuracies beside it."""
        node = stored_node(tree, self.probe)
        ds = bump(node, replicates=self.replicates, seed=self.seed)
        scores = _scores(tree, self.training, ds)
        found = described(ds.assign(scores), VARIABLES | ACCURACIES).assign(measured=was_measured(node))
        return found.assign_attrs(probe=self.probe)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return all tables in one."""
        headers = ["network", *_HEADERS]
        return headers, [[title, *row] for title, _, rows in self.tables(ds) for row in rows]

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table a network, probe set by probe set, step by step."""
        found = []
        for course in courses(ds):
            part = ds.sel(encoder=list(course.names))
            cells = (part.isel(encoder=i, probeset=j) for j, i in np.ndindex(ds.sizes["probeset"], len(course.names)))
            found.append((f"{self.label}: {course.label}", [*_HEADERS], [_row(c) for c in cells if c["measured"]]))
        return found


_HEADERS = ("probe set", "step", "epoch", "train %", "test %", "images", "peak η", "peak height", "bump")


def _row(cell: xr.Dataset) -> list[str]:
    height, error = float(cell["peak_height"]), float(cell["peak_height_se"])
    peak = bool(cell["peak"])
    return [
        str(cell["probeset"].item()),
        str(int(cell["step"])),
        number(cell["epoch"]) if "epoch" in cell.coords else number(np.nan),
        percent(cell["train_accuracy"]),
        percent(cell["test_accuracy"]),
        str(int(cell["n_images"])),
        place_with_error(cell) if peak else NONE,
        with_error(height, error) if peak else NONE,
        verdict(cell),
    ]


def _scores(tree: xr.DataTree, node: str, ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Accuracies of the measured encoders; NaN where the results don't have them."""
    import xarray as xr

    missing = xr.DataArray(np.full(ds.sizes["encoder"], np.nan), dims="encoder")
    if node not in tree.children:
        return dict.fromkeys(ACCURACIES, missing)
    known = stored_node(tree, node).reindex(encoder=ds["encoder"])
    return {name: known[name].reset_coords(drop=True) for name in ACCURACIES}
