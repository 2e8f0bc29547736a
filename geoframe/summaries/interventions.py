"""Interventions on ray coverage: accuracy, intervals and coverage by arm (Neural Expansion, §5.2, Table 1, H.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.summaries.arms import arm_courses, loss_settings
from geoframe.summaries.tables import number
from geoframe.summary import Summary, described

if TYPE_CHECKING:
    import xarray as xr

QUANTITIES = {  # factor and unit in which they are told, and what they are
    "train_accuracy": (100, "pp", "train accuracy"),
    "test_accuracy": (100, "pp", "test accuracy"),
    "gi": (1, "", "mean GI"),
    "coverage": (100, "pp", "ray coverage"),
    "elsewhere": (100, "pp", "share of rays that start in another class"),
    "reentry": (100, "pp", "share of rays that leave the class and end in it"),
    "gi_censored": (100, "pp", "share of intervals that reach the search's cap"),
}


@attrs.frozen(kw_only=True)
class InterventionSummary(Summary):
    """Accuracy, mean GI and coverage by arm: mean and standard deviation over seeds, as in Table 1; re-entry (H.1).

    Stored at every epoch, printed of the last one.

    Attributes
    ----------
    probe, gi : str
        Nodes of the `same` rays, and of the intervals.
    """

    probe: str = "coverage"
    gi: str = "gi"

    def default_name(self) -> str:
        """Return "interventions"."""
        return "interventions"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "after Neural Expansion, Table 1: last epoch, mean ± standard deviation over n seeds; GI over images, "
            "directions and signs, restricted at the search's cap; both are of the predicted class, right or wrong. "
            "Appendix H.1 derives the error from coverage if no "
            "ray comes back to the class that it left; rays that aren't covered are split: those that start in another "
            "class, and those that leave the class and end in it (re-entry), which also stands as a share of them"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Return mean and standard deviation over seeds, (network, arm, epoch); empty where there is no arm."""
        import xarray as xr

        courses = arm_courses(tree, self.probe, self.gi)
        if not courses.sizes["network"]:
            return xr.Dataset()
        table = {"seeds": courses["test_accuracy"].notnull().sum("seed")}
        texts = {"seeds": ("1", "number of seeds")}
        for name, (_, _, text) in QUANTITIES.items():
            table[name] = courses[name].mean("seed")
            spread = courses[name].std("seed", ddof=1) if courses.sizes["seed"] > 1 else table[name] * np.nan
            table[f"{name}_sd"] = spread
            units = "scaled direction" if name == "gi" else "1"
            texts |= {
                name: (units, f"mean over seeds of the {text}"),
                f"{name}_sd": (units, f"standard deviation over seeds of the {text}"),
            }
        return described(xr.Dataset(table), texts).assign_attrs(losses=loss_settings(tree))

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each network and arm, at the last epoch."""
        headers = ["network", "arm", "n", "train accuracy (%)", "test accuracy (%)", "mean GI", "coverage (%)"]
        names = ("train_accuracy", "test_accuracy", "gi", "coverage")
        return headers, [
            [*who, str(int(cell["seeds"])), *(_spread(cell, name) for name in names)] for who, cell in _last(ds)
        ]

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the table of arms and that of re-entry, or one that says why there are none."""
        if not ds.data_vars:
            return [(self.label, ["nothing to compare"], [["no trained arm in these results"]])]
        headers = ["network", "arm", "start elsewhere (%)", "re-entry (%)", "of the uncovered (%)", "GI at the cap (%)"]
        rows = []
        for who, cell in _last(ds):
            share = float(cell["reentry"]) / (1 - float(cell["coverage"])) if float(cell["coverage"]) < 1 else np.nan
            told = (_spread(cell, "elsewhere"), _spread(cell, "reentry"), number(100 * share))
            rows.append([*who, *told, _spread(cell, "gi_censored")])
        losses = f", {ds.attrs['losses']}" if ds.attrs.get("losses") else ""
        return [(f"{self.label}{losses}", *self.rows(ds)), (f"{self.label}, uncovered rays", headers, rows)]


def _last(ds: xr.Dataset) -> Iterator[tuple[list[str], xr.Dataset]]:
    """Yield each network and arm at the network's last epoch, and their names."""
    for network in ds["network"].values if ds.data_vars else ():
        mine = ds.sel(network=network)
        epochs = mine["seeds"].where(mine["seeds"] > 0).notnull().any("arm").values.nonzero()[0]
        for arm in ds["arm"].values:
            yield [str(network), str(arm)], mine.sel(arm=arm).isel(epoch=int(epochs.max(initial=0)))


def _spread(cell: xr.Dataset, name: str) -> str:
    """Write mean ± standard deviation."""
    factor = QUANTITIES[name][0]
    mean, sd = (factor * float(cell[key]) for key in (name, f"{name}_sd"))
    return f"{number(mean)} ± {number(round(sd, 9), 2)}" if np.isfinite(sd) else number(mean)  # 9: no rounding noise
