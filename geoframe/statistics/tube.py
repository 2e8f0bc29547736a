"""Tube radii of stored results: how many rays lie in a region at least as wide as they are long (F.3, Table 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.compare import LEVEL, binomial_interval
from geoframe.summary import Summary, stored_node

if TYPE_CHECKING:
    import xarray as xr


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

    The values of the paper's Table 6 aren't in its text, nor how it aggregates. The text says that the typical ray
    lies within a region at least as wide as the ray itself, across every direction at every point. Rule (ours): agrees
    where the 95 % interval (Wilson) of the share of rays with least radius ≥ 1 is above one half, disagrees where it
    is below, inconclusive otherwise.

    Attributes
    ----------
    probe : str
        Node of the results.
    claimed : tuple of str
        Architectures of which the paper says it; others are reported without a verdict.
    """

    probe: str = "tube"
    claimed: tuple[str, ...] = ("cnn",)

    def default_name(self) -> str:
        """Return the node's name."""
        return f"{self.probe}-summary"

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            "radii in hops (lengths of the ray); ≥ 1: share of rays whose every radius is at least one hop, with "
            "Wilson's 95 % interval; agrees where that is above 50 %, as the paper's text says of a CNN's typical ray; "
            "disagrees where it is below"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate the radii over rays."""
        ds = tubes(tree, self.probe)
        radius, found = ds["radius"], ds["minimum"].notnull()
        wide = binomial_interval((ds["minimum"] >= 1).where(found), "ray")
        wide = wide.rename({"share": "wide", "low": "wide_low", "high": "wide_high", "n": "rays"})
        table = wide.assign(
            minimum=ds["minimum"].median("ray"),
            median=radius.median(("ray", "point", "direction")),
            wide_radii=(radius >= 1).where(radius.notnull()).mean(("ray", "point", "direction")),
            minimum_by_point=radius.min("direction").median("ray"),
            censored=ds["censored"].where(radius.notnull()).mean(("ray", "point", "direction")),
        )
        names = {
            "wide": "share of rays with every radius at least one hop",
            "minimum": "median over rays of the least radius",
            "median": "median of all radii",
            "wide_radii": "share of all radii that are at least one hop",
            "minimum_by_point": "median over rays of the least radius at a point",
            "censored": "share of radii that reach the cap",
        }
        for name, text in names.items():
            table[name].attrs = {"long_name": text, "units": "hop" if name.startswith("m") else "1"}
        return table.assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder and probe set that was measured."""
        headers = ["encoder", "probe set", "rays", "≥ 1 (%)", "least radius", "all radii", "all ≥ 1 (%)", "verdict"]
        rows = []
        for place in np.ndindex(ds["wide"].shape):
            cell = ds.isel(dict(zip(map(str, ds["wide"].dims), place, strict=True)))
            if not int(cell["rays"]):
                continue
            share, low, high = (100 * float(cell[name]) for name in ("wide", "wide_low", "wide_high"))
            rows.append(
                [
                    str(cell["encoder"].item()),
                    str(cell["probeset"].item()),
                    str(int(cell["rays"])),
                    f"{share:.0f} [{low:.0f}, {high:.0f}]",
                    f"{float(cell['minimum']):.2f}",
                    f"{float(cell['median']):.2f}",
                    f"{100 * float(cell['wide_radii']):.0f}",
                    verdict(cell) if self._is_claimed(cell) else "reported",
                ]
            )
        return headers, rows

    def _is_claimed(self, cell: xr.Dataset) -> bool:
        return "architecture" not in cell.coords or str(cell["architecture"].item()) in self.claimed


def verdict(cell: xr.Dataset) -> str:
    """One encoder and probe set by the rule of `TubeSummary`."""
    if float(cell["wide_low"]) > 0.5:
        return "agrees"
    return "disagrees" if float(cell["wide_high"]) < 0.5 else "inconclusive"
