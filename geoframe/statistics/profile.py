"""Shape of response profiles: the bump rule, peak, width and tail slope (array layer)."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoframe.errors import BadInput

Array = NDArray[Any]
FEWEST_RUNGS = 3
UNEVEN = 3.01  # largest ratio of the gaps beside a peak at which a parabola tells its place
LN10 = float(np.log(10.0))


@attrs.frozen(kw_only=True)
class BumpRule:
    """When a profile shows the bump. The paper names the four phases and no numbers: these are ours.

    Attributes
    ----------
    plateau_tolerance : float
        Plateau: |r − 1| is at most this at the smallest valid scale.
    peak_minimum : float
        Peak: the largest valid rung is an interior one and at least this high.
    decay_fraction : float
        Decay: the last valid rung is at most this fraction of the largest one.
    tail_rungs : int
        Number of last valid rungs that the tail slope is fitted to.
    """

    plateau_tolerance: float = 0.1
    peak_minimum: float = 1.3
    decay_fraction: float = 0.5
    tail_rungs: int = attrs.field(default=3, validator=attrs.validators.ge(2))


@attrs.frozen
class Shape:
    """Shape of profiles; every field has the profiles' leading shape.

    Attributes
    ----------
    plateau, peak, decays : array of bool
        The three parts of the rule.
    censored : array of bool
        The largest rung is the last or the first one and above the plateau: a peak may lie off the ladder.
    height : array of float
        Height of the interior maximum, whether or not it is high enough for the rule; NaN where there is none.
    scale : array of float
        Its place, in the units of η.
    width : array of float
        Full width at half the height above 1, in decades of η; NaN where a side does not cross that level.
    tail_slope : array of float
        d log r / d log η over the last valid rungs.
    """

    plateau: Array
    peak: Array
    decays: Array
    censored: Array
    height: Array
    scale: Array
    width: Array
    tail_slope: Array

    @property
    def bump(self) -> Array:
        """Plateau, peak and decay together."""
        return np.asarray(self.plateau & self.peak & self.decays)


def enough_rungs(ratio: ArrayLike) -> Array:
    """Whether profiles (..., scale) have the three valid rungs that a shape needs.

    >>> enough_rungs([[1, 2, 1], [1, 2, float("nan")]])
    array([ True, False])
    """
    r = np.asarray(ratio, dtype=np.float64)
    return np.asarray((np.isfinite(r) & (r > 0)).sum(axis=-1) >= FEWEST_RUNGS)


def profile_shape(scale: ArrayLike, ratio: ArrayLike, rule: BumpRule | None = None) -> Shape:
    r"""Measure the shape of one or many profiles r(η).

    Peak place and height are the vertex of the parabola through the largest valid rung and its two valid
    neighbours in (log η, log r); the rungs need not be evenly spaced, but where one gap is more than three times the
    other, place and height are the rung's own. The width is taken where r crosses
    :math:`1 + (h - 1)/2`, nearest to the peak on either side, interpolated linearly in (log η, log r).
    The thresholds of the rule compare rungs, not the parabola.

    Parameters
    ----------
    scale : array_like, shape (scale,)
        Perturbation sizes η: positive, distinct, in any order.
    ratio : array_like, shape (..., scale)
        Response ratios. NaN (or anything not positive) is an invalid rung and is skipped.
    rule : BumpRule, optional
        Thresholds.

    Returns
    -------
    Shape
        NaN and False where fewer than three rungs are valid.

    Raises
    ------
    BadInput
        If the scales are not positive and distinct, or don't match the ratios.

    Examples
    --------
    >>> import numpy as np
    >>> eta = np.logspace(-2, 2, 17)
    >>> shape = profile_shape(eta, np.exp(1 - np.log(eta) ** 2))
    >>> round(float(shape.height), 3), round(float(shape.scale), 3)
    (2.718, 1.0)
    """
    rule = rule or BumpRule()
    scale, ratio = _checked(scale, ratio)
    lead = ratio.shape[:-1]
    x, y, count = _compact(scale, ratio.reshape(math.prod(lead), scale.size), max(FEWEST_RUNGS, rule.tail_rungs))
    enough, last = count >= FEWEST_RUNGS, np.maximum(count - 1, 0)
    top = np.argmax(np.where(np.isnan(y), -np.inf, y), axis=-1)
    inside = enough & (top > 0) & (top < last)
    first_r, top_r, last_r = (np.exp(_pick(y, i)) for i in (np.zeros_like(last), top, last))
    place, height = (np.where(inside, v, np.nan) for v in _vertex(x, y, np.clip(top, 1, x.shape[1] - 2)))
    shape = Shape(
        plateau=enough & (np.abs(first_r - 1) <= rule.plateau_tolerance),
        peak=inside & (top_r >= rule.peak_minimum),
        decays=enough & (last_r <= rule.decay_fraction * top_r),
        censored=enough & ~inside & (top_r > 1 + rule.plateau_tolerance),
        height=np.exp(height),
        scale=np.exp(place),
        width=_width(x, y, top, height) / LN10,
        tail_slope=np.where(enough, _tail_slope(x, y, count, rule.tail_rungs), np.nan),
    )
    return Shape(*(getattr(shape, f.name).reshape(lead) for f in attrs.fields(Shape)))


def _checked(scale: ArrayLike, ratio: ArrayLike) -> tuple[Array, Array]:
    eta, r = np.asarray(scale, dtype=np.float64), np.asarray(ratio, dtype=np.float64)
    if eta.ndim != 1 or r.shape[-1:] != eta.shape:
        raise BadInput(f"a profile needs one ratio a scale: scales have shape {eta.shape}, ratios {r.shape}")
    if not (np.all(np.isfinite(eta) & (eta > 0)) and np.unique(eta).size == eta.size):
        raise BadInput(f"the scales of a profile must be positive and distinct: {eta.tolist()}")
    order = np.argsort(eta)
    return eta[order], r[..., order]


def _compact(scale: Array, ratio: Array, fewest: int) -> tuple[Array, Array, Array]:
    """Move each row's valid rungs to the front; return log η, log r (NaN behind them) and their number."""
    pad = max(fewest - scale.size, 0)
    ratio = np.pad(ratio, ((0, 0), (0, pad)), constant_values=np.nan)
    x = np.broadcast_to(np.log(np.pad(scale, (0, pad), constant_values=1.0)), ratio.shape)
    valid = np.isfinite(ratio) & (ratio > 0)
    y = np.log(np.where(valid, ratio, 1.0))
    front = np.argsort(~valid, axis=-1, kind="stable")
    count = valid.sum(axis=-1)
    kept = np.arange(ratio.shape[-1]) < count[:, None]
    moved = (np.where(kept, np.take_along_axis(a, front, axis=-1), np.nan) for a in (x, y))
    return (*moved, count)


def _pick(values: Array, index: Array) -> Array:
    return np.asarray(np.take_along_axis(values, index[:, None], axis=-1)[:, 0])


def _vertex(x: Array, y: Array, middle: Array) -> tuple[Array, Array]:
    """Vertex of the parabola through three neighbouring points; the middle one where it can't be trusted.

    That is where they lie on a line, or where one gap is more than three times the other: the parabola overshoots
    by ρ²/(4(1 + ρ)) of the steeper side's drop for gaps in ratio ρ, without limit.
    """
    (x0, x1, x2), (y0, y1, y2) = ([_pick(v, middle + k) for k in (-1, 0, 1)] for v in (x, y))
    rise, fall = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    curvature = (fall - rise) / (x2 - x0)
    slope = rise + curvature * (x1 - x0)
    gaps = (x1 - x0) / (x2 - x1)
    trusted = (curvature < 0) & (gaps <= UNEVEN) & (gaps >= 1 / UNEVEN)
    step = np.where(trusted, -slope / np.where(curvature < 0, 2 * curvature, 1.0), 0.0)
    return x1 + step, y1 + slope * step + curvature * step**2


def _width(x: Array, y: Array, top: Array, height: Array) -> Array:
    """Distance in log η between the two crossings of half the height above 1 that are nearest to the peak."""
    above = np.where(height > 0, height, np.nan)
    level = np.log1p(np.expm1(above) / 2)
    rung, low = np.arange(x.shape[1]), y < level[:, None]
    left = np.where(low & (rung < top[:, None]), rung, -1).max(axis=-1)
    right = np.where(low & (rung > top[:, None]), rung, rung.size).min(axis=-1)
    found = (left >= 0) & (right < rung.size) & (_pick(y, top) >= level)
    left, right = np.where(found, left, 0), np.where(found, right, 1)
    width = _crossing(x, y, right - 1, right, level) - _crossing(x, y, left, left + 1, level)
    return np.where(found, width, np.nan)


def _crossing(x: Array, y: Array, a: Array, b: Array, level: Array) -> Array:
    run, rise = _pick(x, b) - _pick(x, a), _pick(y, b) - _pick(y, a)
    return np.asarray(_pick(x, a) + (level - _pick(y, a)) * run / np.where(rise == 0, np.nan, rise))


def _tail_slope(x: Array, y: Array, count: Array, rungs: int) -> Array:
    """Least-squares slope over each row's last `rungs` valid points."""
    place = np.arange(x.shape[1])
    tail = (place < count[:, None]) & (place >= count[:, None] - rungs)
    n = np.maximum(tail.sum(axis=-1, keepdims=True), 1)
    dx, dy = (np.where(tail, v - np.where(tail, v, 0).sum(axis=-1, keepdims=True) / n, 0) for v in (x, y))
    spread = (dx**2).sum(axis=-1)
    return np.asarray((dx * dy).sum(axis=-1) / np.where(spread > 0, spread, np.nan))
