"""Tests and intervals on labelled arrays: scipy's, along one dimension, NaN left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from geoframe.errors import BadInput

if TYPE_CHECKING:
    import xarray as xr

Array = np.ndarray[Any, Any]
LEVEL = 0.95


def mann_whitney(first: xr.DataArray, second: xr.DataArray, dim: str = "image") -> xr.Dataset:
    """Mann–Whitney U test, two-sided, of two samples along `dim` (scipy.stats.mannwhitneyu).

    Parameters
    ----------
    first, second : xarray.DataArray
        Samples; their lengths along `dim` may differ, other dimensions are broadcast.

    Returns
    -------
    xarray.Dataset
        `u`, `p`, `difference` (of the means, first minus second), `n_first`, `n_second`; NaN where a sample is empty.
    """
    return _along(_mann_whitney, ("u", "p", "difference", "n_first", "n_second"), (first, second), dim)


def pearson(first: xr.DataArray, second: xr.DataArray, dim: str = "image") -> xr.Dataset:
    """Pearson correlation of pairs along `dim` (scipy.stats.pearsonr).

    Returns
    -------
    xarray.Dataset
        `r`, `p`, and the interval `low`, `high` (Fisher's z, 95 %); NaN below four pairs or without spread.
    """
    return _along(_pearson, ("r", "p", "low", "high"), (first, second), dim, paired=True)


def variation(values: xr.DataArray, dim: str) -> xr.DataArray:
    """Coefficient of variation along `dim` (scipy.stats.variation, ddof 1)."""
    return _along(_variation, ("cv",), (values,), dim)["cv"]


def mean_interval(
    values: xr.DataArray, dim: str = "image", *, level: float = LEVEL, replicates: int = 2000, seed: int = 0
) -> xr.Dataset:
    """Mean along `dim` with a bootstrap interval (scipy.stats.bootstrap, percentile).

    Returns
    -------
    xarray.Dataset
        `mean`, `low`, `high`, `n`; the interval is NaN below two values.
    """

    def one(sample: Array) -> tuple[float, ...]:
        return _mean_interval(sample, level, replicates, seed)

    return _along(one, ("mean", "low", "high", "n"), (values,), dim)


def binomial_interval(yes: xr.DataArray, dim: str, *, level: float = LEVEL) -> xr.Dataset:
    """Share of ones along `dim` with Wilson's interval (scipy.stats.binomtest).

    Parameters
    ----------
    yes : xarray.DataArray
        0, 1, or NaN for what doesn't count.

    Returns
    -------
    xarray.Dataset
        `share`, `low`, `high`, `n`.
    """

    def one(sample: Array) -> tuple[float, ...]:
        return _binomial(sample, level)

    return _along(one, ("share", "low", "high", "n"), (yes,), dim)


def _along(
    function: Callable[..., tuple[float, ...]],
    names: tuple[str, ...],
    arrays: tuple[xr.DataArray, ...],
    dim: str,
    paired: bool = False,
) -> xr.Dataset:
    """Apply a function of samples along `dim` to every other position."""
    import xarray as xr

    for array in arrays:
        if dim not in array.dims:
            raise BadInput(f"{str(array.name)!r} has no dimension {dim!r}: it has {', '.join(map(str, array.dims))}")
    if not paired:  # samples of two sizes: their positions along `dim` have nothing to do with each other
        arrays = tuple(
            array.rename({dim: f"{dim}_{i}"}).drop_vars(dim, errors="ignore") for i, array in enumerate(arrays)
        )
        dims = [[f"{dim}_{i}"] for i in range(len(arrays))]
    else:
        dims = [[dim]] * len(arrays)

    def flat(*samples: Array) -> tuple[float, ...] | float:
        samples = tuple(np.asarray(sample, dtype=np.float64) for sample in samples)
        if paired:
            good = np.isfinite(samples).all(axis=0)
            samples = tuple(sample[good] for sample in samples)
        values = function(*(sample[np.isfinite(sample)] for sample in samples))
        return values if len(values) > 1 else values[0]

    outputs = xr.apply_ufunc(
        flat, *arrays, input_core_dims=dims, output_core_dims=[[]] * len(names), vectorize=True, join="inner"
    )
    return xr.Dataset(dict(zip(names, outputs if len(names) > 1 else (outputs,), strict=True)))


def _mann_whitney(first: Array, second: Array) -> tuple[float, ...]:
    from scipy import stats

    counts = float(len(first)), float(len(second))
    if not len(first) or not len(second):
        return (np.nan, np.nan, np.nan, *counts)
    found = stats.mannwhitneyu(first, second)
    return float(found.statistic), float(found.pvalue), float(first.mean() - second.mean()), *counts


def _pearson(first: Array, second: Array) -> tuple[float, ...]:
    from scipy import stats

    if len(first) < 4 or not first.std() or not second.std():
        return (np.nan,) * 4
    found = stats.pearsonr(first, second)
    interval = found.confidence_interval(LEVEL)
    return float(found.statistic), float(found.pvalue), float(interval.low), float(interval.high)


def _variation(values: Array) -> tuple[float, ...]:
    from scipy import stats

    return (float(stats.variation(values, ddof=1)) if len(values) > 1 and values.mean() else np.nan,)


def _mean_interval(values: Array, level: float, replicates: int, seed: int) -> tuple[float, ...]:
    from scipy import stats

    n = len(values)
    if n < 2:
        return (float(values.mean()) if n else np.nan, np.nan, np.nan, float(n))
    mean = float(values.mean())
    if not values.std():
        return mean, mean, mean, float(n)
    found = stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=replicates, method="percentile", rng=seed
    ).confidence_interval
    return mean, float(found.low), float(found.high), float(n)


def _binomial(values: Array, level: float) -> tuple[float, ...]:
    from scipy import stats

    n = len(values)
    if not n:
        return np.nan, np.nan, np.nan, 0.0
    yes = int(values.sum())
    interval = stats.binomtest(yes, n).proportion_ci(level, method="wilson")
    return yes / n, float(interval.low), float(interval.high), float(n)
