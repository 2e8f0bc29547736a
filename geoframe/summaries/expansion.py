"""Mean GI and share of GI > 1 over training, against test accuracy (Neural Expansion, §5.1.1, fig. 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.compare import LEVEL, mean_interval
from geoframe.statistics.runs import accuracies, family, label
from geoframe.summaries.spectrum import GI, both_signs, of_rays, over_1
from geoframe.summaries.tables import number, percent
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

KINDS = {"rsv": "RSV", "random": "random"}
MEASURES = {"gi": "mean GI", "over_1": "GI > 1"}
VARIABLES = {
    "images": ("1", "number of images"),
    "gi_median": (GI, "median GI over images, directions and signs"),
    "gi_mean": (GI, "mean over images of the mean GI, restricted at the search's cap"),
    "gi_mean_low": (GI, "lower end of the 95 % interval of the mean GI"),
    "gi_mean_high": (GI, "upper end of the 95 % interval of the mean GI"),
    "gi_over_1": ("1", "share of directions and signs with GI > 1"),
    "gi_censored": ("1", "share of directions and signs whose GI reaches the search's cap"),
    "distance_mean": ("raw-pixel L2", "mean distance to the class change, restricted at the cap, along +d"),
    "accuracy": ("1", "share of correct classifications of test images"),
}
PRINTED = ("gi_median", "gi_mean", "gi_over_1", "gi_censored", "distance_mean")


def by_image(tree: xr.DataTree, rsv: str, random: str) -> xr.Dataset:
    """Return the mean GI and the share of GI > 1 of each image, over directions and both signs.

    Returns
    -------
    xarray.Dataset
        `gi` (scaled direction) and `over_1`, (kind, encoder, probeset, image), of kinds "rsv" and "random"; with the
        coordinates over encoder and the attributes of the first node.
    """
    import xarray as xr

    nodes = [stored_node(tree, name) for name in (rsv, random)]
    parts = [
        xr.Dataset({"gi": both_signs(ds, "gi").mean("direction"), "over_1": over_1(ds).mean("direction")})
        for ds in nodes
    ]
    kinds = xr.Variable("kind", np.array([*KINDS], dtype=object))
    joined = xr.concat(parts, kinds, join="outer", coords="minimal", compat="override")
    ds = joined.transpose("kind", "encoder", "probeset", "image").assign_attrs(nodes[0].attrs)
    ds["gi"].attrs = {"units": nodes[0]["gi"].attrs.get("units", GI)}
    return ds


@attrs.frozen(kw_only=True)
class ExpansionSummary(Summary):
    """GI at each checkpoint, along singular vectors and along random directions: not only its mean.

    The cap of §5.1.1 isn't given, and means follow the cap. So the median, the share of rays that reach the cap and the
    distance in raw pixels are beside it.

    Attributes
    ----------
    gi, random : str
        Nodes of the probes along singular vectors and along random directions.
    """

    gi: str = "gi"
    random: str = "gi-random"

    def default_name(self) -> str:
        """Return "expansion"."""
        return "expansion"

    @property
    def needs_node(self) -> str:
        """Node that must be in the tree."""
        return self.random

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "GI in diagonals of the input box (scale of the probes), over images, directions and signs, then the mean "
            "over runs (seeds); mean: restricted at the search's cap (Neural Expansion doesn't give that of its "
            "§5.1.1), cens.: rays that reach it; L2: mean distance in raw pixels; RSV: right singular vectors; epoch "
            "0: initial weights; results also hold intervals by run"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images, directions and signs, (kind, encoder, probeset)."""
        import xarray as xr

        table = by_image(tree, self.gi, self.random)
        parts = [xr.Dataset(of_rays(stored_node(tree, name))) for name in (self.gi, self.random)]
        ds = xr.concat(parts, table["kind"].variable, coords="minimal", compat="override")
        ends = mean_interval(table["gi"])
        ds = ds.assign(gi_mean=ends["mean"], gi_mean_low=ends["low"], gi_mean_high=ends["high"])
        ds["accuracy"] = accuracies(tree, table["encoder"])
        return described(ds, VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row a network, probe set and epoch: means over runs, along singular vectors."""
        return self._rows(ds, "rsv")

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table a kind of direction."""
        return [(f"{self.label}, {KINDS[kind]} directions", *self._rows(ds, kind)) for kind in KINDS]

    def _rows(self, ds: xr.Dataset, kind: str) -> tuple[list[str], list[list[str]]]:
        headers = ["network", "probe set", "epoch", "runs", "accuracy (%)", "median GI", "mean GI", "> 1 (%)"]
        rows = []
        for (name, probeset, epoch), cells in _epochs(ds.sel(kind=kind)):
            means = {v: float(cells[v].mean()) for v in (*PRINTED, "accuracy")}
            shares = (percent(means[v]) for v in ("gi_over_1", "gi_censored"))
            gi = (number(means[v]) for v in ("gi_median", "gi_mean"))
            start = [name, probeset, epoch, str(cells.sizes["encoder"]), percent(means["accuracy"])]
            rows.append([*start, *gi, *shares, number(means["distance_mean"])])
        return [*headers, "cens. (%)", "L2"], rows


def _epochs(ds: xr.Dataset) -> Iterator[tuple[tuple[str, str, str], xr.Dataset]]:
    """Yield the measured encoders of each network (seeds together), probe set and epoch."""
    for column in range(ds.sizes["probeset"]):
        one = ds.isel(probeset=column)
        groups: dict[tuple[str, str, str], list[str]] = {}
        for name in map(str, one["encoder"].values[one["gi_mean"].notnull().values]):
            key = (family(one, name), str(one["probeset"].item()), label(one, name, "epoch"))
            groups.setdefault(key, []).append(name)
        for key, names in groups.items():
            yield key, one.sel(encoder=names)
