"""Enclosures of a network's units on a piece of a line, and how layers pass them on.

A unit is enclosed as centre + tilt·τ ± reach for τ ∈ [−1, 1]. Linear layers keep that form; a ReLU or a maximum over a
window is enclosed between the chord of its upper bound and a parallel below it, which is exact where one line wins all
over the piece. `reach` includes a bound of every rounding error (float64, sums of n terms in any order). The method is
ours.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import torch

EPS = torch.finfo(torch.float64).eps
ROUNDINGS = 16  # elementwise operations up to the next sum, generously

Operation = Callable[[torch.Tensor], torch.Tensor]
Pool = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


@attrs.frozen(eq=False)
class Enclosure:
    """centre + tilt · τ ± reach for τ in [−1, 1]: three tensors (piece, …)."""

    centre: torch.Tensor
    tilt: torch.Tensor
    reach: torch.Tensor


@attrs.frozen(eq=False)
class Map:
    """z = W h + b for any linear operation.

    Attributes
    ----------
    apply, spread : callable
        h to W h and h to |W| h; batches (n, …), float64.
    bias : torch.Tensor or None
        Broadcasts against a batch.
    terms : int
        Products that are added up for a unit: bounds the rounding error.
    """

    apply: Operation
    spread: Operation
    bias: torch.Tensor | None
    terms: int

    def __call__(self, z: Enclosure) -> Enclosure:
        """Apply it."""
        slack = (self.terms + ROUNDINGS) * EPS
        lines = self.apply(torch.cat([z.centre, z.tilt]))
        centre, tilt = lines[: len(z.centre)], lines[len(z.centre) :]
        magnitude = z.centre.abs().add_(z.tilt.abs())
        reach = self.spread(torch.add(z.reach * (1 + slack), magnitude, alpha=slack))
        if self.bias is not None:
            centre, reach = centre + self.bias, torch.add(reach, self.bias.abs(), alpha=slack)
        return Enclosure(centre, tilt, reach)

    def majorant(self) -> Map:
        """Return |W| h + |b|, which bounds how large the terms of later sums can be."""
        return Map(self.spread, self.spread, None if self.bias is None else self.bias.abs(), self.terms)


@attrs.frozen(eq=False)
class Bend:
    """Maximum over windows, then h = z where z > 0, slope · z elsewhere.

    Attributes
    ----------
    pool : callable or None
        Maxima and their places in the flattened (height, width) of a channel; None: no windows.
    slope : float
        Between 0 (ReLU) and 1 (no kink).
    """

    pool: Pool | None = None
    slope: float = 1.0

    def __call__(self, z: Enclosure) -> Enclosure:
        """Apply it."""
        high, low = z.centre + z.reach, z.centre - z.reach
        left, right = self._upper(high - z.tilt), self._upper(high + z.tilt)
        first, rise = self._lower(low, z.tilt, -1)
        last, fall = self._lower(low, z.tilt, 1)
        return _between(left, right, (first, rise), (last, fall))

    def _upper(self, value: torch.Tensor) -> torch.Tensor:
        value = value if self.pool is None else self.pool(value)[0]
        return _leaky(value, self.slope)

    def _lower(self, low: torch.Tensor, tilt: torch.Tensor, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Line of the lower bound, middle and tilt, that is the largest at one end of the piece."""
        if self.pool is not None:
            _, place = self.pool(torch.add(low, tilt, alpha=end))
            flat = place.flatten(2)
            low, tilt = (t.flatten(2).gather(2, flat).view_as(place) for t in (low, tilt))
        if self.slope == 1:
            return low, tilt
        above = torch.add(low, tilt, alpha=end) > 0
        return torch.where(above, low, self.slope * low), torch.where(above, tilt, self.slope * tilt)


Step = Callable[[Enclosure], Enclosure]  # a Map, a Bend, or a change of shape


def flattened(z: Enclosure) -> Enclosure:
    """Make vectors of feature maps."""
    return Enclosure(z.centre.flatten(1), z.tilt.flatten(1), z.reach.flatten(1))


def _between(
    left: torch.Tensor,
    right: torch.Tensor,
    first: tuple[torch.Tensor, torch.Tensor],
    last: tuple[torch.Tensor, torch.Tensor],
) -> Enclosure:
    """Enclose a convex function by its chord and a parallel below it, through where two lines under it meet.

    Any mean of the two lines is below the function: the one with the chord's slope is taken, or the nearest to it.
    """
    tilt, top = (right - left) / 2, (right + left) / 2
    share = ((tilt - first[1]) / (last[1] - first[1])).nan_to_num_(0.5).clamp_(0, 1)
    bottom = torch.lerp(first[0], last[0], share) - (torch.lerp(first[1], last[1], share) - tilt).abs_()
    return Enclosure((top + bottom) / 2, tilt, ((top - bottom) / 2).clamp_(min=0))


def _leaky(value: torch.Tensor, slope: float) -> torch.Tensor:
    if slope == 1:
        return value
    return value.clamp(min=0) if slope == 0 else torch.where(value > 0, value, slope * value)
