"""Where profiles have their peak, off the ladder or on it, and what a bootstrap says of factors between such places."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import ArrayLike

from geoframe.statistics.compare import FEWEST, LEVEL
from geoframe.statistics.profile import Array, BumpRule, profile_shape

MISSING = 0.05  # share of replicates without a value from which no interval is given


@attrs.frozen
class Peaks:
    """Peaks of profiles; every field has the profiles' leading shape.

    Attributes
    ----------
    scale, height : array of float
        Of the interior maximum (parabola), or of the last valid rung where that is the largest; NaN where neither is
        as high as the rule's least peak.
    at_end : array of bool
        The largest rung is the last one: scale and height are lower bounds.
    """

    scale: Array
    height: Array
    at_end: Array

    def __getitem__(self, place: object) -> Peaks:
        return Peaks(*(np.asarray(getattr(self, f.name)[place]) for f in attrs.fields(Peaks)))


def peaks(scale: ArrayLike, ratio: ArrayLike, rule: BumpRule | None = None) -> Peaks:
    """Find the peak of each profile by the rule, and tell a maximum at the end of the ladder from one within it.

    Parameters
    ----------
    scale : array_like, shape (scale,)
        Perturbation sizes η, ascending.
    ratio : array_like, shape (..., scale)
        Profiles, NaN where invalid.
    rule : BumpRule, optional
        Its `peak_minimum` is used.

    Examples
    --------
    >>> found = peaks([1, 2, 4, 8], [[1, 3, 2, 1], [1, 2, 3, 4], [1, 1, 1, 0.5]])
    >>> found.scale.round(2), found.at_end
    (array([2.38, 8.  ,  nan]), array([False,  True, False]))
    """
    rule = rule or BumpRule()
    eta, r = np.asarray(scale, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    shape = profile_shape(eta, r, rule)
    good = np.isfinite(r) & (r > 0)
    height = np.max(np.where(good, r, 0.0), axis=-1)
    last = eta.size - 1 - np.argmax(good[..., ::-1], axis=-1)
    end = np.take_along_axis(np.where(good, r, 0.0), last[..., None], axis=-1)[..., 0]
    at_end = shape.censored & (end == height) & (height >= rule.peak_minimum)
    return Peaks(
        scale=np.where(at_end, eta[last], np.where(shape.peak, shape.scale, np.nan)),
        height=np.where(at_end, height, np.where(shape.peak, shape.height, np.nan)),
        at_end=at_end,
    )


@attrs.frozen
class Estimate:
    """A number with its interval.

    Attributes
    ----------
    value, low, high : float
        NaN where they aren't known; `high` is infinite where the interval has no upper end.
    at_least : bool
        The value is a lower bound.
    n : int
        Images behind it.
    """

    value: float
    low: float = np.nan
    high: float = np.nan
    at_least: bool = False
    n: int = 0


def factor(before: Peaks, after: Peaks, draws_before: Peaks, draws_after: Peaks, images: int) -> Estimate:
    """Factor between the places of two peaks, with its interval from paired replicates.

    Where the second peak lies at the end of the ladder, the factor is a lower bound; where the first one does, nothing
    is known. An interval needs ten images, and a factor in at least 95 % of the replicates; its upper end is infinite
    where too many of them are lower bounds.
    """
    value = np.where(before.at_end, np.nan, after.scale / before.scale)
    draws = np.where(draws_before.at_end, np.nan, draws_after.scale / draws_before.scale)
    low, high = interval(draws, images, np.where(draws_after.at_end, np.inf, draws))
    return Estimate(float(value), low, high, bool(after.at_end), images)


def interval(draws: Array, images: int, upper: Array | None = None) -> tuple[float, float]:
    """Percentile interval (95 %) of replicates; NaN below ten images, or where more than 5 % of them have no value.

    Parameters
    ----------
    draws : array, shape (replicate,)
    images : int
    upper : array, shape (replicate,), optional
        What the upper end is taken from, where `draws` holds lower bounds.
    """
    known = np.isfinite(draws)
    if images < FEWEST or not known.any() or known.mean() < 1 - MISSING:
        return np.nan, np.nan
    tail = (1 - LEVEL) / 2
    high = np.quantile((draws if upper is None else upper)[known], 1 - tail, method="higher")
    return float(np.quantile(draws[known], tail, method="lower")), float(high)


def rank_correlation(budgets: Array, values: Array) -> Array:
    """Spearman's ρ of each row of values (..., n) with budgets (n,); NaN where a value is missing or all are equal."""
    from scipy import stats

    known = np.isfinite(values).all(axis=-1, keepdims=True)
    x = stats.rankdata(budgets) - (len(budgets) + 1) / 2
    y = stats.rankdata(np.where(known, values, 0.0), axis=-1) - (len(budgets) + 1) / 2
    spread = np.sqrt((x**2).sum() * (y**2).sum(axis=-1))
    return np.asarray(np.where(spread > 0, (x * y).sum(axis=-1) / np.where(spread > 0, spread, 1.0), np.nan))
