"""The response ratio's estimator and its standard error, from antipodal pairs (A.1, eq. 1)."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@attrs.frozen
class RatioEstimate:
    """Estimate over the scales of one image; arrays are (scale,), predictions are scalars."""

    ratio: Array
    ratio_se: Array
    response: Array
    prediction: float
    prediction_se: float


def estimate_ratio(response: Array, prediction: Array) -> RatioEstimate:
    r"""Estimate r_η = N̄_n / P̄_m with its standard error.

    Parameters
    ----------
    response : array (n, scale)
        N_i per antipodal pair, already divided by η².
    prediction : array (m,)
        P_i = ‖J u_i‖² of the first m ≤ n of the same directions.

    Returns
    -------
    RatioEstimate
        `response` is N̄_n. Values are NaN or infinite where the prediction is 0 or a response overflowed.

    Notes
    -----
    The estimator is the paper's (A.2); its variance is ours, by the delta method, with the covariance of
    the pairs that numerator and denominator share:

    .. math:: \mathrm{Var}\, r ≈ \{ s²(N − rP)/n + (1/m − 1/n)\, r² s²(P) \} / \bar P²

    with moments from the m shared pairs; it can't be negative. Treating the 2n displacements as
    independent would understate the standard error by up to √2.
    """
    n, m = len(response), len(prediction)
    shared = response[:m]
    with np.errstate(all="ignore"):
        mean_response, mean_prediction = response.mean(0), float(prediction.mean())
        ratio = mean_response / mean_prediction
        residual = (shared - ratio * prediction[:, None]).var(0, ddof=1)
        own = float(prediction.var(ddof=1))
        variance = (residual / n + (1 / m - 1 / n) * ratio**2 * own) / mean_prediction**2
    return RatioEstimate(
        ratio=ratio,
        ratio_se=np.sqrt(variance),
        response=mean_response,
        prediction=mean_prediction,
        prediction_se=float(np.sqrt(own / m)),
    )
