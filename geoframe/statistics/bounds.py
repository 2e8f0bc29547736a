"""How tight the lower bounds of generalization intervals are, and whether any is broken (Theorems 1 and 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.summary import Summary, stored_node

if TYPE_CHECKING:
    import xarray as xr


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
            "informative: rays on which a bound with δ up to the cap is above 0; T* / GI: median over rays that cross "
            "of the largest T with T‖Jd‖₁ + δ(T) < q₀ over the measured interval; agrees: no violation on any ray"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images, directions and signs."""
        import xarray as xr

        ds = bounds(tree, self.probe)
        every = ("image", "direction", "sign")
        measured = ds["gi"].notnull()
        crossing = measured & ~ds["censored"] & (ds["gi"] > 0)
        table = {
            "rays": measured.sum(every),
            "violations": ds["violations"].where(ds["violations"] > 0, 0).sum("image"),
            "theorem1": (ds["theorem1"] > 0).where(measured).mean(every),
            "theorem2": (ds["theorem2"] > 0).where(measured).mean(every),
            "useful": (ds["useful"] / ds["gi"]).where(crossing).median(every),
            "censored": ds["censored"].where(measured).mean(every),
        }
        return xr.Dataset(table).drop_attrs()

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder and probe set that was measured."""
        headers = [
            "encoder",
            "probe set",
            "rays",
            "violations",
            "Theorem 1 informative (%)",
            "Theorem 2 (%)",
            "T* / GI",
        ]
        headers.append("verdict")
        rows = []
        for place in np.ndindex(ds["rays"].shape):
            cell = ds.isel(dict(zip(map(str, ds["rays"].dims), place, strict=True)))
            if not int(cell["rays"]):
                continue
            rows.append(
                [
                    str(cell["encoder"].item()),
                    str(cell["probeset"].item()),
                    str(int(cell["rays"])),
                    str(int(cell["violations"])),
                    *(f"{100 * float(cell[name]):.2g}" for name in ("theorem1", "theorem2")),
                    f"{float(cell['useful']):.2g}",
                    "disagrees" if int(cell["violations"]) else "agrees",
                ]
            )
        return headers, rows
