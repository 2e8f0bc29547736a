r"""The response ratio with a control variate, and its standard error (ours).

Along a direction u the response N(u) is nearly proportional to the prediction ‖Ju‖² on the plateau and correlated
with it further up. With a sketch of J (`geoframe.geometry.trace`) the captured part C(u) = ‖QᵀJu‖² costs one product
with a small matrix, and its mean T over all directions is known. So

.. math:: r = \frac{\overline{N − β(C − T)}}{T + \overline{R − γ(C − T)}},

where R(u) = ‖(I − QQᵀ)Ju‖² is what the sketch leaves. Both coefficients are fitted by ridge regression, each pair's on
all the other pairs, so that they don't bias the means. The ridge is there because a few pairs with large C decide a
least-squares slope and hide the error that they make.

On the plateau the ratio of the same pairs' plain means, N̄ over that of ‖Ju‖², lies closer still: a slope towards r + γ
would give it. What is left there is curvature, though, whose tail the first few pairs don't show (of a squared
projection it grows as its fourth power, and 95 % intervals by 16 pairs hold 80 %): what the ridge leaves of the control
makes up for that, at an error far below any target.
"""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]
RIDGE = 0.2, 3.0  # pairs that a slope of 0 counts for, at least and at most
SKEWED = 4.0  # how much an interval is widened for skewness / √n, where luck may have ended the sampling
CURVED = 3.0  # and for skewness² / n, in any case
NORMAL = float(stats.norm.ppf(0.975))


def without_control(values: Array, control: Array, variance: float) -> Array:
    """Subtract β·control from values, β fitted for each row on all the others.

    Parameters
    ----------
    values, control : array (n,)
        The control's mean is known to be 0.
    variance : float
        Of the control, known too.

    Returns
    -------
    array (n,)
        Of the same expectation as the values; unchanged where the control doesn't vary.
    """
    n = len(values)
    others_mean = (values.sum() - values) / (n - 1)
    products = (control * values).sum() - control * values - others_mean * (control.sum() - control)
    squares = np.square(control).sum() - np.square(control) + ridge(values, control, variance) * variance
    beta = np.divide(products, squares, out=np.zeros(n), where=squares > 0)
    return np.asarray(values - beta * control)


def ridge(values: Array, control: Array, variance: float) -> float:
    """Pairs that a slope of 0 counts for: those that leave the smallest error, were the slope as large as it looks.

    That is the variance beside the slope over the slope's own part, σ² / β² Var C. Where the control explains nearly
    everything, on the plateau, more would leave what it explains; where it explains little, less would follow noise.
    """
    square = np.square(control).sum()
    if not square > 0:
        return RIDGE[1]
    centred = values - values.mean()
    beta = (control * centred).sum() / square
    beside = np.square(centred - beta * control).sum() / (len(values) - 2)
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(np.clip(beside / (beta**2 * variance), *RIDGE), nan=RIDGE[1]))


@attrs.frozen
class Moments:
    """What the variance of one scale's ratio is made of.

    With a = N − β(C − T) on n pairs and b = R − γ(C − T) on m pairs, the first of the same ones.

    Attributes
    ----------
    response, prediction : float
        ā and T + b̄.
    own, left, shared : float
        Variances of a and of b, and their covariance.
    skewness : float
        Of the ratio's error from pair to pair, or what is to be expected at least.
    """

    response: float
    prediction: float
    own: float
    left: float
    shared: float
    skewness: float

    @property
    def ratio(self) -> float:
        """The ratio r; infinite or NaN where the prediction is 0 or a response overflowed."""
        with np.errstate(all="ignore"):
            return float(np.float64(self.response) / self.prediction)

    def variance(self, n: npt.ArrayLike, m: npt.ArrayLike) -> Array:
        """Var r with n pairs of which, or to which, the first m have a Jacobian–vector product (0: none needed)."""
        n, m = np.asarray(n, dtype=float), np.asarray(m, dtype=float)
        r, pushed = np.float64(self.ratio), np.maximum(m, 1)  # where m is 0, so are `left` and `shared`
        with np.errstate(all="ignore"):
            parts = self.own / n + r**2 * self.left / pushed - 2 * r * self.shared / np.maximum(n, pushed)
            return np.asarray(np.maximum(parts, 0.0) / np.float64(self.prediction) ** 2)

    def bound(self, n: npt.ArrayLike, m: npt.ArrayLike) -> Array:
        """Standard error for the rule that ends the sampling: widened for few pairs and, amply, for skewness.

        A sample that misses the tail has both too small a mean and too small a variance: stopping then would be
        stopping on good luck, which biases the mean by skewness / √n standard errors.
        """
        few = _fewer(n, m)
        return np.asarray(self._even(n, m) * (1 + SKEWED * self.skewness / np.sqrt(few)))

    def standard_error(self, n: int, m: int, target: float) -> float:
        """Return what ±1.96 of makes a 95 % interval of a sampling that ends at the relative error `target`.

        Luck can have ended it only where the bound is near the target: far below it, or above it where the pairs are
        used up, what remains is the second-order effect of skewness on Student's interval.
        """
        few, bound, aim = float(_fewer(n, m)), float(self.bound(n, m)), target * abs(self.ratio)
        with np.errstate(all="ignore"):
            luck = np.float64(min(bound, aim)) / max(bound, aim)
            skewed = max(SKEWED * self.skewness / np.sqrt(few) * luck, CURVED * self.skewness**2 / few)
            return float(self._even(n, m) * (1 + skewed))

    def _even(self, n: npt.ArrayLike, m: npt.ArrayLike) -> Array:
        """Standard error that few pairs widen: Student's 97.5 % quantile over the normal one."""
        return np.asarray(_student(int(np.max(n)))[_fewer(n, m)] * np.sqrt(self.variance(n, m)))


def _fewer(n: npt.ArrayLike, m: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Pairs that have both parts."""
    n, m = np.asarray(n), np.asarray(m)
    return np.where(m > 0, np.minimum(n, m), n)


@cache
def _student(most: int) -> Array:
    """Student's 97.5 % quantile over the normal one for 0, 1, … `most` pairs, of which mean and slope take two."""
    n = np.maximum(np.arange(most + 1), 3)
    return np.asarray(stats.t.ppf(0.975, n - 2) / NORMAL)


def moments(response: Array, captured: Array, left: Array, mean: float, variance: float) -> Moments:
    """Moments of one scale from its pairs.

    Parameters
    ----------
    response : array (n,)
        N of each pair.
    captured : array (at least max(n, m),)
        C of each pair.
    left : array (m,)
        R of the first m pairs; empty where the sketch leaves nothing.
    mean, variance : float
        T and Var C over all directions.
    """
    with np.errstate(all="ignore"):  # overflowed responses give NaN
        return _moments(response, captured, left, mean, variance)


def _moments(response: Array, captured: Array, left: Array, mean: float, variance: float) -> Moments:
    n, m = len(response), len(left)
    a = without_control(response, captured[:n] - mean, variance)
    if not m:
        skewness = max(_skewness(a), expected_skewness(mean, variance))
        return Moments(float(a.mean()), mean, float(a.var(ddof=1)), 0.0, 0.0, skewness)
    b = without_control(left, captured[:m] - mean, variance)
    both = min(n, m)
    shared = float(np.cov(a[:both], b[:both])[0, 1])
    above, below = float(a.mean()), mean + float(b.mean())
    sampled = _skewness(a[:both] - np.float64(above) / below * b[:both])
    skewness = max(sampled, expected_skewness(below, variance))
    return Moments(above, below, float(a.var(ddof=1)), float(b.var(ddof=1)), shared, skewness)


def expected_skewness(prediction: float, variance: float) -> float:
    """Least skewness to reckon with: v² / 2, v = Var C / prediction².

    That is 2 over the square of the degrees of freedom that the energy has: 2 where it is a single feature's, next to
    nothing where it is many features'. Few pairs don't show the tail that a single feature's saturation leaves.
    """
    return float(np.square(variance / np.square(np.float64(prediction))) / 2)


def _skewness(values: Array) -> float:
    """Size of the third standardised moment, less what so few values show without any; 0 where nothing varies."""
    centred = values - values.mean()
    spread = np.sqrt(np.square(centred).mean())
    square = ((centred / spread) ** 3).mean() ** 2 - 6 / len(values) if spread > 0 else 0.0
    return float(np.sqrt(max(square, 0.0)))
