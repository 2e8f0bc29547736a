"""Measured floating-point noise of a displacement Φ(x + ηu) − Φ(x), and of a derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from geoframe.geometry.pushforward import Map, pushforward, squared_norms
from geoframe.geometry.response import Displacements

Array = npt.NDArray[np.float64]
QUARTER = float(torch.finfo(torch.float32).eps) / 4  # features' own rounding, as a share of their length, at least
PIXEL_STEP = 1e-6  # a pixel's share of a step that float32 still resolves: 16 units of rounding
RESOLVED = 0.25  # largest share of noise in a displacement's energy at which all of the noise shows


def noise_against_float64(
    moves: Displacements, exact: Displacements, u: torch.Tensor, scale: float, used: int
) -> float:
    """Energy of the error of float32 displacements, against the same encoder in float64.

    The float64 displacement is taken at the exact x ± ηu, so the error holds everything that
    float32 does: rounding of the input, of Φ(x ± ηu) and of Φ(x).

    Parameters
    ----------
    moves, exact : Displacements
        Of the encoder at the image, in float32 and in float64.
    u : torch.Tensor
        A block of directions (pairs, …), float32, batched as when measuring.
    scale : float
        η, raw-pixel L2.
    used : int
        How many of the pairs are compared.

    Returns
    -------
    float
        Mean of ‖error‖² over the 2·used displacements, in squared feature units.
    """
    measured = _first(moves.along(u, scale), used)
    return float(squared_norms(measured.double() - exact.along(u[:used], scale)).mean())


def noise_against_derivative(moves: Displacements, phi: Map, u: torch.Tensor, scale: float, used: int) -> float:
    """Energy of what the derivative leaves unexplained of a step so small that Φ is linear over it.

    For encoders that can't run in float64. Rounding leaves as much at η as at a smaller step, Φ's curvature less:
    so the least of η, η/10 and η/100 is taken, among the steps that pixels and features still resolve. What is left
    of the curvature counts as noise, so this errs on the side of more. A step that moves no feature shows no noise: the
    rounding of the features themselves counts at least. The realised step (x ± hu) − x is the exact tangent. Parameters
    and result as in `noise_against_float64`.
    """
    least = PIXEL_STEP * moves.x[0].numel() ** 0.5
    steps = [scale, *(step for step in (scale / 10, scale / 100) if step >= least)]
    found = [_unexplained(moves, phi, u, step, used) for step in steps]
    least_noise = QUARTER**2 * float(squared_norms(moves.at_rest(2)[:1]).sum())
    return max(min([left for left, linear in found if left <= RESOLVED * linear], default=found[0][0]), least_noise)


def _unexplained(moves: Displacements, phi: Map, u: torch.Tensor, step: float, used: int) -> tuple[float, float]:
    """Mean energy of a displacement that is left beside its linear prediction, and that of the prediction."""
    moved, steps = moves.along(u, step), moves.points(u, step) - moves.x
    _, linear = pushforward(phi, moves.x.expand_as(steps).contiguous(), steps)
    energy, predicted = (float(squared_norms(_first(v, used)).mean()) for v in (moved - linear, linear))
    return energy, predicted


def _first(rows: torch.Tensor, used: int) -> torch.Tensor:
    """Rows of the first pairs, both signs, of (2·pairs, d)."""
    return rows.view(2, len(rows) // 2, -1)[:, :used].flatten(0, 1)


def noise_fractions(
    measure: Callable[[float], float], scales: Sequence[float], energy: Array, level: Array, enough: float
) -> Array:
    """Share of rounding noise in the measured energy at every scale.

    Measured rung by rung from the smallest scale on, until it is below `enough`. From there on the noise
    is carried along at its measured size relative to the features' squared length (`level`), which
    is what rounding scales with: the response has left the noise behind by then.

    Parameters
    ----------
    measure : callable
        η to noise energy.
    scales : sequence of float
        Any order.
    energy, level : array (scale,)
        Mean ‖Φ(x ± ηu) − Φ(x)‖², and mean ‖Φ(x)‖² + ‖Φ(x ± ηu)‖².
    enough : float
        Fraction below which no further rung is measured.

    Returns
    -------
    array (scale,)
        Noise energy over measured energy; infinite where the measured energy is 0 or overflowed.
    """
    fractions = np.full(len(scales), np.inf)
    relative: float | None = None
    for i in np.argsort(scales, kind="stable"):
        noise = measure(float(scales[i])) if relative is None else relative * level[i]
        if 0 < energy[i] < np.inf:
            fractions[i] = noise / energy[i]
        if relative is None and fractions[i] < enough:
            relative = noise / float(level[i])
    return fractions


def derivative_gap(phi: Map, x: torch.Tensor, u: torch.Tensor, step: float) -> float:
    """Relative distance between a pushforward and the one-sided differences along ±u.

    The larger of ‖[Φ(x ± hu) − Φ(x)] / h ∓ Ju‖ / ‖Ju‖. A central difference wouldn't do: it is blind to
    a symmetric kink.

    Parameters
    ----------
    phi : callable
        Encoder, in the precision of x.
    x, u : torch.Tensor
        Image and direction, both (1, …).
    step : float
        h, raw-pixel L2.

    Returns
    -------
    float
        Of order h where Φ is differentiable at x; large on a kink (max-pool ties on flat backgrounds).
        NaN where nothing moves at all, infinite where only the pushforward is 0.
    """
    value, exact = pushforward(phi, x, u)
    moved = phi(torch.cat([x + step * u, x - step * u])) - value
    gap = float(squared_norms(moved / step - torch.cat([exact, -exact])).max().sqrt())
    length = float(squared_norms(exact).sqrt())
    if length == 0.0:
        return float("nan") if gap == 0.0 else float("inf")
    return gap / length
