r"""Lower bounds of the generalization interval along rays (Neural Expansion, Theorems 1 and 2, eqs. 5–7).

On a ray x₀ + t·d with f(x₀ + t·d) = f(x₀) + t·J_f d + R(t), class y at x₀, margin q₀ = f^y − max_{i≠y} f^i and
δ(T) = sup_{[0,T]} ‖R(t)‖₁, another class i can be ahead at t only if

.. math:: q_0 \le t\,|(J_f d)_y - (J_f d)_i| + |R_y - R_i| \le t\,\|J_f d\|_1 + \delta(t),

since |a_y − a_i| ≤ ‖a‖₁. Only two coordinates enter, so √2‖J_f d‖₂ or max_i [(J_f d)_i − (J_f d)_y]₊ may stand for
‖J_f d‖₁. The undivided inequality holds at every change of class, so that checking it tests the program; divided, it
is a lower bound of the interval.
"""

from __future__ import annotations

import math

import attrs
import torch


def margin(logits: torch.Tensor, y: int) -> torch.Tensor:
    """q₀: logit of class y minus the largest other one; (…, class) to (…)."""
    others = torch.cat([logits[..., :y], logits[..., y + 1 :]], -1)
    return logits[..., y] - others.amax(-1)


def slopes(change: torch.Tensor, y: int) -> torch.Tensor:
    """How fast the margin can shrink, three ways.

    Parameters
    ----------
    change : torch.Tensor
        J_f d, (ray, class).
    y : int
        The class held.

    Returns
    -------
    torch.Tensor
        (ray, 3): ‖J_f d‖₁, √2‖J_f d‖₂ and max_i [(J_f d)_i − (J_f d)_y]₊. The third is never above the others.
    """
    overtaking = (change - change[:, y : y + 1]).amax(1).clamp(min=0)
    return torch.stack([change.abs().sum(1), math.sqrt(2) * change.norm(dim=1), overtaking], 1)


def residuals(logits: torch.Tensor, change: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """δ at each step: the largest ‖f(x₀ + t·d) − f(x₀) − t·J_f d‖₁ so far.

    Parameters
    ----------
    logits : torch.Tensor
        (ray, step, class); the first step is t = 0.
    change : torch.Tensor
        J_f d, (ray, class).
    steps : torch.Tensor
        t, (step,).

    Returns
    -------
    torch.Tensor
        (ray, step), never falling. Between steps the residual is not looked at.
    """
    linear = logits[:, :1] + steps[:, None] * change[:, None]
    return (logits - linear).abs().sum(2).cummax(1).values


def first_changed(logits: torch.Tensor, y: int) -> torch.Tensor:
    """Index of the first step whose class is not y, (ray,); the number of steps where there is none."""
    changed = logits.argmax(2) != y
    return torch.where(changed.any(1), changed.int().argmax(1), logits.shape[1])


def lower_bound(q0: torch.Tensor, delta: torch.Tensor, slope: torch.Tensor, cap: float) -> torch.Tensor:
    """min(T, (q₀ − δ(T)) / slope) for T = cap, of shapes that broadcast; 0 where it says nothing (δ ≥ q₀)."""
    left = q0 - delta
    return torch.where(left > 0, (left / slope).clamp(max=cap), 0.0)


def useful_form(q0: torch.Tensor, delta: torch.Tensor, slope: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """T* = sup{T : T·slope + δ(T) < q₀} ≤ GI, of the steps; (ray,) from δ (ray, step) and slope (ray,).

    Ours: the theorem with the T that serves it best, instead of the δ of the whole ray.
    """
    holds = (steps * slope[:, None] + delta < q0).int().cumprod(1).sum(1)
    return steps[(holds - 1).clamp(min=0)]


def gradient_bound(probability: float, operator_norm: float, sigma: float) -> tuple[float, float]:
    """Bounds (5) of ‖∇_x L‖ for cross-entropy: √2(1 − p_y)‖W‖_op σ₁, and the looser √2‖W‖_op σ₁."""
    loose = math.sqrt(2) * operator_norm * sigma
    return (1 - probability) * loose, loose


@attrs.frozen(eq=False)
class RayBounds:
    """What the bounds say on n rays, and what was measured.

    Attributes
    ----------
    margin : torch.Tensor
        q₀, (ray,).
    gi, censored : torch.Tensor
        (ray,): the last step before the class first changes, and whether it never does.
    crossing : torch.Tensor
        (ray,): the first step of another class; NaN where censored.
    residual, residual_cap : torch.Tensor
        (ray,): δ up to the first changed step (the cap where there is none), and up to the cap.
    lower : torch.Tensor
        (ray, slope): lower bounds of the interval with δ up to the cap, one for each slope.
    useful : torch.Tensor
        (ray,): T* with the first slope.
    broken : torch.Tensor
        (ray,), bool: a ray that changes class although t·slope + δ(t) < q₀ − tolerance for one of the slopes.
    """

    margin: torch.Tensor
    gi: torch.Tensor
    censored: torch.Tensor
    crossing: torch.Tensor
    residual: torch.Tensor
    residual_cap: torch.Tensor
    lower: torch.Tensor
    useful: torch.Tensor
    broken: torch.Tensor


def ray_bounds(
    logits: torch.Tensor, change: torch.Tensor, y: int, steps: torch.Tensor, slope: torch.Tensor, tolerance: float
) -> RayBounds:
    """Compare bounds and measurement on rays that start at the same point.

    Parameters
    ----------
    logits : torch.Tensor
        (ray, step, class), at steps from 0 to the cap.
    change : torch.Tensor
        J_f d, (ray, class).
    y : int
        The class at the start.
    steps : torch.Tensor
        (step,).
    slope : torch.Tensor
        (ray, slope): what stands for ‖J_f d‖₁, that itself first.
    tolerance : float
        Rounding to be allowed in logits.
    """
    q0, delta, first = margin(logits[:, 0], y), residuals(logits, change, steps), first_changed(logits, y)
    censored = first == len(steps)
    last = first.clamp(max=len(steps) - 1)
    reached = delta.gather(1, last[:, None])
    short = steps[last][:, None] * slope + reached < q0[:, None] - tolerance
    return RayBounds(
        margin=q0,
        gi=steps[(first - 1).clamp(min=0)],  # 0 where two classes tie at the start
        censored=censored,
        crossing=torch.where(censored, float("nan"), steps[last]),
        residual=reached[:, 0],
        residual_cap=delta[:, -1],
        lower=lower_bound(q0[:, None], delta[:, -1:], slope, float(steps[-1])),
        useful=useful_form(q0[:, None], delta, slope[:, 0], steps),
        broken=short.any(1) & ~censored,
    )
