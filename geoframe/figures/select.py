"""Picking encoders and probe sets out of a stored node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from geoframe.errors import BadInput, UnknownName, did_you_mean
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr


def ratios(tree: xr.DataTree, node: str) -> xr.Dataset:
    """Return a node that holds ratios, with dims in the order (encoder, probeset, image, scale).

    Raises
    ------
    BadInput
        Where the node isn't a RatioProbe's.
    """
    ds = stored_node(tree, node)
    wanted = ("encoder", "probeset", "image", "scale")
    if "ratio" not in ds or set(ds["ratio"].dims) != set(wanted):
        raise BadInput(f"node {node!r} holds no ratios over {', '.join(wanted)}: draw this figure from a RatioProbe")
    return ds.transpose(*wanted, missing_dims="ignore").sortby("scale")


def names(ds: xr.Dataset, dim: str) -> list[str]:
    """Return the names along encoder or probeset."""
    return [str(v) for v in ds[dim].values]


def chosen(ds: xr.Dataset, dim: str, name: str | None) -> str:
    """Return `name` if it is there, the first one where it is None."""
    known = names(ds, dim)
    if name is None:
        return known[0]
    if name not in known:
        raise UnknownName(f"these results have no {dim} {name!r}{did_you_mean(name, known)}")
    return name


def is_random(ds: xr.Dataset | xr.DataArray) -> list[bool]:
    """Return which encoders have their initial weights."""
    from geoframe.statistics.pairing import initial

    return [bool(value) for value in initial(ds).values]


def setting(ds: xr.Dataset, name: str) -> float | None:
    """Return a number that the node's probe was set to, as its provenance has it; None where it isn't there."""
    value = json.loads(ds.attrs.get("probe", "{}")).get("fields", {}).get(name)
    return float.fromhex(value) if isinstance(value, str) else value


def cells(ds: xr.Dataset, name: str) -> list[xr.Dataset]:
    """Return each encoder on each probe set for which a variable has values."""
    every = (ds.isel(encoder=i, probeset=j) for i in range(ds.sizes["encoder"]) for j in range(ds.sizes["probeset"]))
    return [cell for cell in every if bool(cell[name].notnull().any())]


def drawn(ds: xr.Dataset) -> xr.DataArray:
    """Which encoders to draw on which probe sets: those that were measured, all where none was."""
    from geoframe.summaries.bump import was_measured

    found = was_measured(ds)
    return found | ~found.any()
