"""Tube radii of stored results: how many rays lie in a region at least as wide as they are long (F.3, Table 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from geoframe.errors import BadInput
from geoframe.statistics.compare import LEVEL, binomial_interval, mean_interval, median_interval
from geoframe.summaries.claim_table import REPORTED
from geoframe.summaries.tables import interval, measured, percent, who
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

HOP, SHARE = "hop", "1"
VARIABLES = {
    "rays": (SHARE, "number of covered rays"),
    "wide": (SHARE, "share of rays with every radius at least one hop"),
    "wide_low": (SHARE, "lower end of Wilson's 95 % interval of the share of rays"),
    "wide_high": (SHARE, "upper end of Wilson's 95 % interval of the share of rays"),
    "minimum": (HOP, "median over rays of the least radius"),
    "minimum_low": (HOP, "lower end of the 95 % interval of the median least radius"),
    "minimum_high": (HOP, "upper end of the 95 % interval of the median least radius"),
    "median": (HOP, "median over rays of the ray's median radius"),
    "median_low": (HOP, "lower end of the 95 % interval of the median of medians"),
    "median_high": (HOP, "upper end of the 95 % interval of the median of medians"),
    "wide_radii": (SHARE, "share of all radii that are at least one hop"),
    "wide_radii_low": (SHARE, "lower end of the 95 % interval of the share of radii"),
    "wide_radii_high": (SHARE, "upper end of the 95 % interval of the share of radii"),
    "minimum_by_point": (HOP, "median over rays of the least radius at a point"),
    "censored": (SHARE, "share of radii that reach the search's cap"),
}


def tubes(tree: xr.DataTree, node: str) -> xr.Dataset:
    """Return a node that holds tube radii, (encoder, probeset, ray, point, direction).

    Raises
    ------
    BadInput
        Where the node isn't a TubeProbe's.
    """
    ds = stored_node(tree, node)
    wanted = ("encoder", "probeset", "ray", "point", "direction")
    if "radius" not in ds or set(ds["radius"].dims) != set(wanted):
        raise BadInput(f"node {node!r} holds no radii over {', '.join(wanted)}: name a TubeProbe's")
    return ds[["radius", "censored", "minimum"]].transpose(*wanted)


@attrs.frozen(kw_only=True)
class TubeSummary(Summary):
    """Share of rays whose tube is at least one hop wide in every direction tested, and radii in hops.

    Intervals are over rays. The paper's text has neither the values of its Table 6 nor how it aggregates. It
    says that the typical ray lies within a region at least as wide as the ray itself, across every direction at
    every point. Rule (ours): agrees where the 95 % interval (Wilson) of the share of rays with least radius ≥ 1 is
    above one half, disagrees where it is below, inconclusive otherwise.

    Attributes
    ----------
    probe : str
        Node of the results.
    claimed, datasets : tuple of str
        Architectures and data sets of which the paper says it; others are reported without a verdict.
    """

    probe: str = "tube"
    claimed: tuple[str, ...] = ("cnn",)
    datasets: tuple[str, ...] = ("MNIST", "FashionMNIST")

    def default_name(self) -> str:
        """Return the node's name."""
        return f"{self.probe}-summary"

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            "radii in hops (lengths of the ray), medians over rays; [ ]: 95 % intervals over rays, by order statistics "
            "for medians, Wilson's for the share of rays, bootstrap for the share of radii; a radius at the search's "
            "cap counts as the cap. wide rays: every radius is at least one hop; agrees: more than half of the rays "
            "are, by the interval, as Neural Expansion, F.3, says of the typical ray of CNNs on MNIST and "
            "Fashion-MNIST; disagrees: less than half; reported: the paper says nothing of the architecture or the data"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate the radii over rays."""
        import xarray as xr

        ds = tubes(tree, self.probe)
        radius, found = ds["radius"], ds["minimum"].notnull()
        beyond = (radius >= 1).where(radius.notnull()).mean(("point", "direction"))
        parts = {
            "wide": binomial_interval((ds["minimum"] >= 1).where(found), "ray").rename(share="wide"),
            "minimum": median_interval(ds["minimum"], "ray").rename(median="minimum"),
            "median": median_interval(radius.median(("point", "direction")), "ray"),
            "wide_radii": mean_interval(beyond, "ray", shares=True).rename(mean="wide_radii"),
        }
        table = {
            "rays": parts["wide"]["n"],
            "minimum_by_point": radius.min("direction").median("ray"),
            "censored": ds["censored"].where(radius.notnull()).mean(("ray", "point", "direction")),
        }
        for name, part in parts.items():
            table |= {name: part[name], f"{name}_low": part["low"], f"{name}_high": part["high"]}
        return described(xr.Dataset(table), VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder and probe set that was measured: the share of wide rays."""
        headers = ["encoder", "probe set", "rays", "wide rays (%)", "verdict"]
        return headers, [
            [
                *who(cell),
                str(int(cell["rays"])),
                interval(cell, "wide", 100, 2),
                verdict(cell) if self._is_claimed(cell) else REPORTED,
            ]
            for cell in measured(ds, "wide")
        ]

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the table of wide rays, and that of radii."""
        headers = ["encoder", "probe set", "least radius", "median radius", "radii ≥ 1 (%)", "at the cap (%)"]
        rows = [
            [
                *who(cell),
                *(interval(cell, name) for name in ("minimum", "median")),
                interval(cell, "wide_radii", 100, 2),
                percent(cell["censored"], 2),
            ]
            for cell in measured(ds, "wide")
        ]
        return [(self.label, *self.rows(ds)), (f"{self.label}, radii in hops", headers, rows)]

    def _is_claimed(self, cell: xr.Dataset) -> bool:
        said = {"architecture": self.claimed, "dataset": self.datasets, "probeset_dataset": self.datasets}
        return all(name not in cell.coords or str(cell[name].item()) in known for name, known in said.items())


def verdict(cell: xr.Dataset) -> str:
    """One encoder and probe set by the rule of `TubeSummary`."""
    if float(cell["wide_low"]) > 0.5:
        return "agrees"
    return "disagrees" if float(cell["wide_high"]) < 0.5 else "inconclusive"
