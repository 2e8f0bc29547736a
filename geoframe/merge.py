"""Join cells into one labelled array a variable: dims (encoder, probeset, …), padded where a cell has less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from geoframe.spec import Spec

Parts = Mapping[tuple[int, int], xr.Dataset]
OUTER = ("encoder", "probeset")
PER_SET = ("image_id", "label")  # the same for every encoder
_FILL: dict[str, Any] = {"f": np.nan, "c": np.nan, "i": -1, "u": -1, "b": False, "O": "", "U": "", "T": ""}


def merge(parts: Parts, encoders: Sequence[Spec], probesets: Sequence[Spec]) -> xr.Dataset:
    """Join the cells of one probe.

    Parameters
    ----------
    parts : mapping of (int, int) to Dataset
        Finished cells by position of encoder and probe set; absent ones are filled.
    encoders, probesets : sequence of Spec
        Their labels are the outer coordinates; their `coords` stand beside.

    Returns
    -------
    xarray.Dataset
        Dimensions (encoder, probeset, …). Other dimensions are joined by their coordinate. Missing values are
        NaN, −1, False or "".
    """
    shape = (len(encoders), len(probesets))
    first = next(iter(parts.values()))
    index = {dim: _union([_labels(part, dim) for part in parts.values()]) for dim in map(str, first.dims)}
    merged: dict[str, xr.Variable] = {}
    for name in map(str, first.variables):
        if name in PER_SET:
            merged[name] = _per_set(name, parts, shape[1], index)
        elif name not in index:
            merged[name] = _stacked(name, parts, shape, index)
    own = {dim: xr.Variable((dim,), labels, _attrs(first, dim)) for dim, labels in index.items()}
    outer = {dim: _texts(specs, dim) for dim, specs in zip(OUTER, (encoders, probesets), strict=True)}
    coords = {**outer, **own, **{n: v for n, v in merged.items() if n in first.coords}}
    dataset = xr.Dataset({n: v for n, v in merged.items() if n in first.data_vars}, coords=coords)
    return dataset.assign_coords(spec_coords(encoders, probesets, taken={*map(str, dataset.variables)}))


def spec_coords(encoders: Sequence[Any], probesets: Sequence[Any], taken: set[str]) -> dict[str, xr.Variable]:
    """Coordinates beside the labels, from the specs' `coords`.

    A name that is taken, or that both encoders and probe sets use, gets the prefix `encoder_` or `probeset_` on the
    side of the probe sets, or on both if it is taken.
    """
    found: dict[str, xr.Variable] = {}
    for dim, specs in zip(OUTER, (encoders, probesets), strict=True):
        for name in dict.fromkeys(name for spec in specs for name in spec.coords):
            free = name if name not in taken and name not in found else f"{dim}_{name}"
            found[free] = xr.Variable((dim,), _column([spec.coords.get(name) for spec in specs]))
    return found


def fill_value(dtype: np.dtype[Any]) -> Any:
    """Return what stands for a missing value."""
    return _FILL[dtype.kind]


def _stacked(name: str, parts: Parts, shape: tuple[int, int], index: Mapping[str, np.ndarray]) -> xr.Variable:
    variables = {place: part[name].variable for place, part in parts.items()}
    first = next(iter(variables.values()))
    dims = tuple(map(str, first.dims))
    values = _filled((*shape, *(len(index[dim]) for dim in dims)), first.dtype)
    for place, variable in variables.items():
        values[(*place, ...)][_places(parts[place], dims, index)] = variable.transpose(*dims).values
    return xr.Variable((*OUTER, *dims), values, first.attrs)


def _per_set(name: str, parts: Parts, n: int, index: Mapping[str, np.ndarray]) -> xr.Variable:
    first = next(iter(parts.values()))[name].variable
    values = _filled((n, len(index["image"])), first.dtype)
    for (_, column), part in parts.items():
        values[column][_places(part, ("image",), index)] = part[name].values
    return xr.Variable(("probeset", "image"), values, first.attrs)


def _filled(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    kind = {"U": np.dtype(object), "T": np.dtype(object), "u": np.dtype(np.int64)}.get(dtype.kind, dtype)
    return np.full(shape, fill_value(dtype), dtype=kind)


def _places(part: xr.Dataset, dims: Sequence[str], index: Mapping[str, np.ndarray]) -> Any:
    """Where a part's labels stand in the joined coordinates."""
    if not dims:
        return ...
    where = []
    for dim in dims:
        position = {label: place for place, label in enumerate(index[dim].tolist())}
        where.append([position[label] for label in _labels(part, dim).tolist()])
    return np.ix_(*where)


def _labels(part: xr.Dataset, dim: str) -> np.ndarray:
    labels = part[dim].values if dim in part.coords else np.arange(part.sizes[dim])
    return labels.astype(object) if labels.dtype.kind in "UT" else labels


def _union(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Join labels: in the order of first appearance, or ascending where every part is."""
    first = columns[0]
    if all(np.array_equal(first, column) for column in columns[1:]):
        return first
    labels = list(dict.fromkeys(label for column in columns for label in column.tolist()))
    if all(column.tolist() == sorted(column.tolist()) for column in columns):
        labels.sort()
    return np.array(labels, dtype=first.dtype)


def _attrs(part: xr.Dataset, name: str) -> dict[Any, Any]:
    return part[name].attrs if name in part.coords else {}


def _texts(specs: Sequence[Spec], dim: str) -> xr.Variable:
    return xr.Variable((dim,), np.array([spec.label for spec in specs], dtype=object))


def _column(values: Sequence[Any]) -> np.ndarray:
    """One coordinate of specs, of a type that holds all; None is the missing value of that type."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present) and len(present) == len(values):
        return np.array(values, dtype=bool)
    if present and all(isinstance(value, int) and not isinstance(value, bool) for value in present):
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)
    if present and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return np.array(["" if value is None else str(value) for value in values], dtype=object)
