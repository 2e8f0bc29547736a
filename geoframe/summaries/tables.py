"""What the printed tables share: which cells have a row, and how numbers, shares and intervals are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from geoframe.statistics.compare import ALPHA, FEWEST

if TYPE_CHECKING:
    import xarray as xr

NONE = "–"
MOST_DECIMALS = 6
INTERVALS = f"[ ]: 95 % bootstrap interval over images, none below {FEWEST} images"
RULE = f"agrees: p < {ALPHA} with the published sign; disagrees: p < {ALPHA} with the other; else inconclusive"


def measured(ds: xr.Dataset, name: str) -> Iterator[xr.Dataset]:
    """Yield each encoder on each probe set for which a variable has values, encoder by encoder."""
    for encoder in range(ds.sizes["encoder"]):
        for probeset in range(ds.sizes["probeset"]):
            cell = ds.isel(encoder=encoder, probeset=probeset)
            if bool(cell[name].notnull().any()):
                yield cell


def who(cell: xr.Dataset) -> list[str]:
    """Names of the encoder and the probe set."""
    return [str(cell["encoder"].item()), str(cell["probeset"].item())]


def number(value: Any, digits: int = 3) -> str:
    """Write a number, or a dash.

    >>> number(0.12345), number(float("nan")), number(99.7, 2)
    ('0.123', '–', '100')
    """
    if not np.isfinite(float(value)):
        return NONE
    text = f"{float(value):.{digits}g}"
    return f"{float(value):.0f}" if "e+" in text and abs(value) < 1e6 else text


def with_error(value: float, error: float) -> str:
    """Write a number to the decimals of its standard error, which has two digits; to three digits where it has none.

    >>> with_error(1.00012, 0.000021), with_error(12.34, 1.06), with_error(1234.0, 150.0), with_error(3.0, float("nan"))
    ('1.000120 ± 0.000021', '12.3 ± 1.1', '1234 ± 150', '3.00')
    >>> with_error(1.2345e-9, 2.1e-11), with_error(1.0, 1.5e-9)
    ('(1.234 ± 0.021)e-09', '1.000000 ± 1.5e-09')
    """
    if not 0 < error < np.inf:
        return f"{value:#.3g}".removesuffix(".")
    decimals = max(0, 1 - int(np.floor(np.log10(error))))
    if decimals > MOST_DECIMALS:
        return _with_small_error(value, error, decimals)
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def _with_small_error(value: float, error: float, decimals: int) -> str:
    """Write a small number with its power of ten, and any other with six decimals: more would only fill a table."""
    power = int(np.floor(np.log10(max(abs(value), error))))
    if power >= -MOST_DECIMALS:
        return f"{value:.{MOST_DECIMALS}f} ± {error:#.2g}"
    digits = max(decimals + power, 0)
    return f"({value / 10.0**power:.{digits}f} ± {error / 10.0**power:.{digits}f})e{power:03d}"


def place_with_error(cell: xr.Dataset) -> str:
    """Write η at a peak (`peak_scale`); its error is that of its logarithm (`log10_peak_scale_se`), to first order.

    >>> import xarray as xr
    >>> place_with_error(xr.Dataset({"peak_scale": 1.36, "log10_peak_scale_se": 0.05}))
    '1.36 ± 0.16'
    """
    scale = float(cell["peak_scale"])
    return with_error(scale, scale * float(np.log(10) * cell["log10_peak_scale_se"]))


def percent(value: Any, digits: int = 3) -> str:
    """Write a share in per cent, or a dash."""
    return number(100 * float(value), digits)


def interval(cell: xr.Dataset, name: str, factor: float = 1, digits: int = 3) -> str:
    """Write a variable with its interval (`…_low`, `…_high`), or without where it has none; factor 100 for per cent.

    >>> import xarray as xr
    >>> cell = xr.Dataset({"gi": 1.0, "gi_low": 0.5, "gi_high": 2.0})
    >>> interval(cell, "gi"), interval(cell.assign(gi_low=float("nan")), "gi", 100)
    ('1 [0.5, 2]', '100')
    """
    value, low, high = (factor * float(cell[name + end]) for end in ("", "_low", "_high"))
    if not np.isfinite([value, low, high]).all():
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def by_sign(p: float, difference: float) -> str:
    """Verdict by `RULE`, where the published difference is positive."""
    if not p < ALPHA:
        return "inconclusive"
    return "agrees" if difference > 0 else "disagrees"
