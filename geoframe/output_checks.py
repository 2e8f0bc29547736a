"""What a probe declares can be stored and published beside everything else's: checked before anything is computed."""

from __future__ import annotations

from typing import Any

from geoframe.errors import BadInput

TAKEN = ("encoder", "probeset", "image", "image_id", "label")  # coordinates of every published variable
_KINDS = "biufc"


def check_outputs(probe: Any) -> None:
    """Refuse outputs whose names, dimensions or types the results can't hold."""
    kind = type(probe).__name__
    outputs = probe.declared()
    if not outputs:
        raise BadInput(f"{kind} declares no outputs: add outputs = {{'name': gf.Output(...)}}")
    dims = {dim for output in outputs.values() for dim in output.dims}
    for name, output in outputs.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise BadInput(f"{kind}: output {name!r} should have a name without slashes")
        if name in TAKEN:
            raise BadInput(f"{kind}: output {name!r} has the name of a coordinate of all results: give it another")
        if name in dims and not (output.shared and output.dims == (name,)):
            raise BadInput(
                f"{kind}: output {name!r} has the name of a dimension: give it another, or make it that dimension's "
                f"index by Output(({name!r},), shared=True)"
            )
        _check_dims(kind, name, output.dims, ("encoder", "probeset", *(() if probe.per == "set" else ("image",))))
        _check_dtype(kind, name, output.dtype)


def _check_dims(kind: str, name: str, dims: tuple[str, ...], taken: tuple[str, ...]) -> None:
    clash = [dim for dim in dims if dim in taken or dims.count(dim) > 1 or "/" in dim]
    if clash:
        raise BadInput(
            f"{kind}: output {name!r} can't have a dimension {clash[0]!r}: list each of its own dimensions once "
            f"({', '.join(taken)} are added)"
        )


def _check_dtype(kind: str, name: str, dtype: str) -> None:
    import numpy as np

    try:
        known = dtype == "str" or np.dtype(dtype).kind in _KINDS
    except TypeError:
        known = False
    if not known:
        raise BadInput(f"{kind}: output {name!r} has dtype {dtype!r}: use float64, int64, bool, str or the like")
