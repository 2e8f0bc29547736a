"""Exact first crossing along rays for piecewise-linear classifiers: no step size, no excursion missed.

Along a ray x + t·v the first hidden layer's pre-activations are linear in t. Between two of their sign changes
(breakpoints) the second layer's pre-activations are linear too, and change slope by one column of its weights at each
breakpoint, so that they are updated instead of multiplied anew. The method is ours; the paper searches in steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch

NEVER = float("inf")
WINDOW = 32  # breakpoints a ray that are dealt with at once
_REFINED = 2**22  # numbers in the largest temporary of a refinement
_TINY = 1e-300
_ROUNDINGS = 16  # units of rounding of the largest possible sum that a margin may be wrong by


@attrs.frozen(eq=False)
class Affine:
    """z = W h + b: weight (out, in) and bias (out,), float64."""

    weight: torch.Tensor
    bias: torch.Tensor


@attrs.frozen(eq=False)
class Kink:
    """h = z where z > 0, slope · z elsewhere: ReLU (slope 0) or LeakyReLU."""

    slope: float = 0.0

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        """Apply it."""
        return z.clamp(min=0) if self.slope == 0 else torch.where(z > 0, z, self.slope * z)


Layers = Sequence[Affine | Kink]


def first_crossings(
    layers: Layers, start: torch.Tensor, direction: torch.Tensor, held: torch.Tensor, cap: float
) -> torch.Tensor:
    """Find where the held class is first overtaken: sup{t : class held on [0, t)}, up to the cap.

    Parameters
    ----------
    layers : sequence of Affine and Kink
        The classifier, affine and kink in turn, affine layers at both ends; raw pixels to logits.
    start, direction : torch.Tensor
        (ray, pixel), float64.
    held : torch.Tensor
        (ray,), int64.
    cap : float
        Largest t.

    Returns
    -------
    torch.Tensor
        (ray,), float64: 0 where the start has another class, infinite where the class holds up to the cap.
    """
    target = Held(held, _rounding(layers, start, direction, cap))
    first, rest = layers[0], layers[1:]
    assert isinstance(first, Affine)
    offset = torch.nn.functional.linear(start, first.weight, first.bias)
    slope = direction @ first.weight.T
    if not rest:
        ends = torch.stack([offset, offset + cap * slope], 1)
        return _first_overtaking(start.new_tensor([0.0, cap]).expand(len(start), 2), target.margins(ends), target)
    kink, second, deeper = rest[0], rest[1], rest[2:]
    assert isinstance(kink, Kink)
    assert isinstance(second, Affine)
    return _Sweep(offset, slope, kink, second, deeper, target, cap).run()


def logits(layers: Layers, x: torch.Tensor) -> torch.Tensor:
    """Run the layers on points (n, pixel): (n, class), float64."""
    for layer in layers:
        x = layer(x) if isinstance(layer, Kink) else torch.nn.functional.linear(x, layer.weight, layer.bias)
    return x


@attrs.frozen(eq=False)
class Held:
    """The classes that rays should keep.

    Attributes
    ----------
    classes : torch.Tensor
        (ray,), int64.
    slack : torch.Tensor
        (ray,), what rounding may make of a margin that is 0.
    """

    classes: torch.Tensor
    slack: torch.Tensor

    def __getitem__(self, rays: torch.Tensor) -> Held:
        return Held(self.classes[rays], self.slack[rays])

    def margins(self, logits: torch.Tensor) -> torch.Tensor:
        """Logit of the held class minus each other logit, (ray, …, class); infinite for the held class itself."""
        own = self.classes.view(-1, *[1] * (logits.ndim - 1)).expand(*logits.shape[:-1], 1)
        return (logits.gather(-1, own) - logits).scatter(-1, own, NEVER)

    def overtaken(self, margins: torch.Tensor) -> torch.Tensor:
        """Where another class wins, (ray, …, class); of a tie, within the slack, the lower index, as argmax has it."""
        shape = (-1, *[1] * (margins.ndim - 1))
        slack = self.slack.view(shape)
        lower = torch.arange(margins.shape[-1], device=margins.device) < self.classes.view(shape)
        return margins < torch.where(lower, slack, -slack)


def _rounding(layers: Layers, start: torch.Tensor, direction: torch.Tensor, cap: float) -> torch.Tensor:
    """Bound what rounding makes of logits along rays, (ray,): from the sizes of all terms that are added up."""
    size = start.abs() + cap * direction.abs()
    for layer in layers:
        if isinstance(layer, Affine):
            size = torch.nn.functional.linear(size, layer.weight.abs(), layer.bias.abs())
    return _ROUNDINGS * torch.finfo(size.dtype).eps * size.amax(1)


def _first_overtaking(times: torch.Tensor, margins: torch.Tensor, held: Held) -> torch.Tensor:
    """First zero of the least margin, linear between points: times (n, point), margins (n, point, class)."""
    overtaken = held.overtaken(margins)
    hit = overtaken.any(2).any(1)
    place = overtaken.any(2).int().argmax(1)
    row = torch.arange(len(times), device=times.device)
    before = (place - 1).clamp(min=0)
    high, low = margins[row, before], margins[row, place]
    share = torch.where(low < 0, high / (high - low), 1.0)  # a tie begins where it is reached
    share = torch.where(overtaken[row, place], share, NEVER).amin(1).clamp(0, 1)
    crossing = times[row, before] + share * (times[row, place] - times[row, before])
    crossing = torch.where(place == 0, times[:, 0], crossing)
    return torch.where(hit, crossing, NEVER)


class _Sweep:
    """Sweep of a block of rays over the first layer's breakpoints, window by window; finished rays are dropped."""

    def __init__(
        self,
        offset: torch.Tensor,
        slope: torch.Tensor,
        kink: Kink,
        second: Affine,
        deeper: Layers,
        held: Held,
        cap: float,
    ) -> None:
        self.deeper, self.held, self.cap = deeper, held, cap
        self.columns = second.weight.T.contiguous()
        crossing = -offset / slope
        inside = (crossing > 0) & (crossing < cap)  # False for NaN and infinities: a constant unit has no breakpoint
        self.times, self.units = torch.where(inside, crossing, cap).sort(1)
        change = slope.abs() * (1 - kink.slope)
        self.change = torch.where(inside, change, 0.0).gather(1, self.units)
        self.last = int(inside.sum(1).max()) if len(inside) else 0
        active = (offset > 0) | ((offset == 0) & (slope > 0))
        self.value = torch.nn.functional.linear(kink(offset), second.weight, second.bias)
        self.slope = torch.where(active, slope, kink.slope * slope) @ second.weight.T
        self.now = torch.zeros(len(offset), dtype=offset.dtype, device=offset.device)

    def run(self) -> torch.Tensor:
        """Return the first crossing of each ray."""
        found = torch.full_like(self.now, NEVER)
        rays = torch.arange(len(found), device=found.device)
        for begin in range(0, self.last + 1, WINDOW):
            times, values = self._window(rays, begin)
            crossing = _crossing(times, values, self.deeper, self.held[rays])
            found[rays] = crossing
            rays = rays[crossing.isinf()]
            if not len(rays):
                break
        return found

    def _window(self, rays: torch.Tensor, begin: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Second layer's pre-activations at the next breakpoints: times (ray, point), values (ray, point, unit)."""
        end = min(begin + WINDOW, self.last)
        change, columns = self.change[rays, begin:end], self.columns[self.units[rays, begin:end]]
        breaks, now = self.times[rays, begin:end], self.now[rays, None]
        times = torch.cat([breaks, breaks.new_full((len(rays), 1), self.cap)], 1) if end == self.last else breaks
        since = (times[:, :, None] - breaks[:, None, :]).clamp(min=0) * change[:, None, :]
        value, slope = self.value[rays, None], self.slope[rays, None]
        values = torch.baddbmm(torch.addcmul(value, times[:, :, None] - now[:, :, None], slope), since, columns)
        self.now[rays], self.value[rays] = times[:, -1], values[:, -1]
        self.slope[rays] = slope[:, 0] + torch.bmm(change[:, None, :], columns)[:, 0]
        return torch.cat([now, times], 1), torch.cat([value, values], 1)


def _crossing(times: torch.Tensor, values: torch.Tensor, deeper: Layers, held: Held) -> torch.Tensor:
    """First crossing within one window of pre-activations that are linear between the points."""
    if not deeper:
        return _first_overtaking(times, held.margins(values), held)
    kink, affine = deeper[0], deeper[1]
    assert isinstance(kink, Kink)
    assert isinstance(affine, Affine)
    if len(deeper) > 2:
        each = torch.split(torch.arange(len(times), device=times.device), 1)
        rows = [_deep(times[ray[0]], values[ray[0]], deeper, held[ray]) for ray in each]
        return torch.cat(rows)
    return _last_hidden(times, values, kink, affine, held)


def _last_hidden(times: torch.Tensor, values: torch.Tensor, kink: Kink, affine: Affine, held: Held) -> torch.Tensor:
    """First crossing where one hidden layer is left: only segments that may hold one are looked into.

    Within a segment a unit that changes sign bends away from its chord by at most (1 − slope)·|z₀z₁|/|z₀ − z₁|,
    which bounds how far the logits can leave theirs.
    """
    logits = torch.nn.functional.linear(kink(values), affine.weight, affine.bias)
    margin = held.margins(logits)
    before, after = values[:, :-1], values[:, 1:]
    bend = (before * after).neg_().clamp_(min=0).div_((before - after).abs_().add_(_TINY))
    reach = (1 - kink.slope) * (bend @ affine.weight.abs().T)
    own = reach.gather(2, held.classes.view(-1, 1, 1).expand(-1, reach.shape[1], 1))
    least = torch.minimum(margin[:, :-1], margin[:, 1:]) - reach - own
    suspect = (least < held.slack.view(-1, 1, 1)).any(2)
    found = torch.full_like(times[:, 0], NEVER)
    rays, segments = suspect.nonzero(as_tuple=True)
    width = max(1, _REFINED // values.shape[2] // (values.shape[2] // 4 + 2))
    for begin in range(0, len(rays), width):
        ray, segment = rays[begin : begin + width], segments[begin : begin + width]
        ends = times[ray, segment], times[ray, segment + 1], before[ray, segment], after[ray, segment]
        found.scatter_reduce_(0, ray, _refined(*ends, kink, affine, held[ray]), "amin")
    return found


def _refined(
    begin: torch.Tensor,
    end: torch.Tensor,
    before: torch.Tensor,
    after: torch.Tensor,
    kink: Kink,
    affine: Affine,
    held: Held,
) -> torch.Tensor:
    """First crossing in segments on which pre-activations are linear: logits at every sign change of a unit."""
    flips = before * after < 0
    shares = torch.where(flips, before / (before - after), 1.0).sort(1).values
    shares = shares[:, : int(flips.sum(1).max())]
    shares = torch.cat([shares.new_zeros(len(shares), 1), shares, shares.new_ones(len(shares), 1)], 1)
    points = torch.addcmul(before[:, None], shares[:, :, None], (after - before)[:, None])
    logits = torch.nn.functional.linear(kink(points), affine.weight, affine.bias)
    times = torch.addcmul(begin[:, None], shares, (end - begin)[:, None])
    return _first_overtaking(times, held.margins(logits), held)


def _deep(times: torch.Tensor, values: torch.Tensor, layers: Layers, held: Held) -> torch.Tensor:
    """First crossing of one ray through any number of layers: points are added where a unit changes sign."""
    for layer in layers:
        if isinstance(layer, Affine):
            values = torch.nn.functional.linear(values, layer.weight, layer.bias)
        else:
            times, values = _bent(times, values, layer)
    return _first_overtaking(times[None], held.margins(values[None]), held)


def _bent(times: torch.Tensor, values: torch.Tensor, kink: Kink) -> tuple[torch.Tensor, torch.Tensor]:
    """Apply a kink to a polyline: (point,) and (point, unit), with a point more at each sign change."""
    before, after = values[:-1], values[1:]
    segment, unit = (before * after < 0).nonzero(as_tuple=True)
    share = before[segment, unit] / (before[segment, unit] - after[segment, unit])
    added = torch.addcmul(before[segment], share[:, None], after[segment] - before[segment])
    added[torch.arange(len(unit), device=unit.device), unit] = 0.0
    new = torch.addcmul(times[segment], share, times[segment + 1] - times[segment])
    times, order = torch.cat([times, new]).sort(stable=True)
    return times, kink(torch.cat([values, added])[order])
