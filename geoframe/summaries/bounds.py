"""How tight the lower bounds of generalization intervals are, and whether any is broken (Theorems 1 and 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from geoframe.errors import BadInput
from geoframe.statistics.compare import LEVEL, binomial_interval
from geoframe.summaries.tables import interval, measured, number, who
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

VARIABLES = {
    "rays": ("1", "number of rays"),
    "violations": ("1", "number of rays and gradients that break a bound"),
    "theorem1": ("1", "share of rays on which Theorem 1 with δ up to the cap is above 0"),
    "theorem2": ("1", "share of rays on which Theorem 2 with δ up to the cap is above 0"),
    "useful_zero": ("1", "share of rays with T* = 0"),
    "useful": ("1", "median over rays that cross of T* over the measured interval"),
    "censored": ("1", "share of rays that keep their class up to the cap"),
}
SHARES = ("theorem1", "theorem2", "useful_zero")
for _name in SHARES:
    VARIABLES[f"{_name}_low"] = ("1", f"lower end of Wilson's 95 % interval: {VARIABLES[_name][1]}")
    VARIABLES[f"{_name}_high"] = ("1", f"upper end of Wilson's 95 % interval: {VARIABLES[_name][1]}")


def bounds(tree: xr.DataTree, node: str) -> xr.Dataset:
    """Return a node that holds bounds.

    Raises
    ------
    BadInput
        Where the node isn't a BoundsProbe's.
    """
    ds = stored_node(tree, node)
    if not {"useful", "theorem1", "theorem2", "gi", "violations"} <= set(ds.data_vars):
        raise BadInput(f"node {node!r} holds no bounds: name a BoundsProbe's")
    return ds


@attrs.frozen(kw_only=True)
class BoundsSummary(Summary):
    """Violations, and each bound's share of the measured interval.

    The bounds are theorems: `violations` is 0, or the program is wrong. How tight they are isn't in the paper's text.

    Attributes
    ----------
    probe : str
        Node of the results.
    """

    probe: str = "bounds"

    def default_name(self) -> str:
        """Return the node's name."""
        return f"{self.probe}-summary"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "of Neural Expansion, §3: Theorem 1, 2: share of rays on which the bound with δ up to the cap is above 0; "
            "T*: the largest T with T‖Jd‖₁ + δ(T) < q₀, 0 on a share of rays; T* / GI: median over rays that change "
            "class of T* over the measured interval; [ ]: Wilson's 95 % interval over rays (those of one image aren't "
            "independent); agrees: no bound is broken"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images, directions and signs."""
        import xarray as xr

        ds = bounds(tree, self.probe)
        every = ("image", "direction", "sign")
        found = ds["gi"].notnull()
        crossing = found & ~ds["censored"] & (ds["gi"] > 0)
        table = {
            "rays": found.sum(every),
            "violations": ds["violations"].where(ds["violations"] > 0, 0).sum("image"),
            "useful": (ds["useful"] / ds["gi"]).where(crossing).median(every),
            "censored": ds["censored"].where(found).mean(every),
        }
        yes = {"theorem1": ds["theorem1"] > 0, "theorem2": ds["theorem2"] > 0, "useful_zero": ds["useful"] == 0}
        for name, answer in yes.items():
            share = binomial_interval(answer.where(found).stack(ray=every, create_index=False), "ray")
            table |= {name: share["share"], f"{name}_low": share["low"], f"{name}_high": share["high"]}
        return described(xr.Dataset(table), VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder and probe set that was measured."""
        headers = ["encoder", "probe set", "rays", "broken", "Theorem 1 (%)", "Theorem 2 (%)", "T* = 0 (%)", "T* / GI"]
        rows = []
        for cell in measured(ds.where(ds["rays"] > 0), "rays"):
            shares = [interval(cell, name, 100, 2) for name in SHARES]
            rows.append(
                [
                    *who(cell),
                    str(int(cell["rays"])),
                    str(int(cell["violations"])),
                    *shares,
                    number(cell["useful"], 2),
                    "disagrees" if int(cell["violations"]) else "agrees",
                ]
            )
        return [*headers, "verdict"], rows
