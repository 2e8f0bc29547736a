"""Exact first crossing along rays for piecewise-linear networks of any depth, convolutional ones too.

On a piece of a ray x + t·v, with τ ∈ [−1, 1] along it, every unit is enclosed as centre + tilt·τ ± reach. Linear layers
keep that form; a ReLU or a maximum over a window is enclosed between the chord of its upper bound and the tangent of
its lower bound that has the chord's slope, which is exact where one line wins all over the piece. So the margins
z_y − z_j of the held class y are enclosed, with an error that falls with the square of the piece's length. The held
class is certain up to the first zero of their lower bound; from there a new, shorter piece begins. On a piece without a
kink the margins are linear, and their first zero is the answer. The method is ours; the paper searches in steps.

`reach` includes a bound of every rounding error (float64, sums of n terms in any order). The held class counts as
overtaken where a margin is below 0 by more than that bound: no such excursion is missed, however narrow it is. A margin
within a few of the bounds is a tie, which goes to the class of the lower index, as argmax has it. The interval ends at
the margin's computed zero before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import torch

from geoframe.geometry.enclosure import EPS, ROUNDINGS, Enclosure, Map, Step

NEVER = float("inf")
FIRST_PIECE = 1 / 32  # of the cap: where no piece has been tried yet
_ROUNDED = 2.0  # a reach of so many times the bound of rounding errors alone is no kink's
_DOUBTFUL = 1e4  # a reach of so many times the last such bound may be
_TIED = 4.0  # bounds of rounding errors within which a margin may be a tie
_SHORTEST = 8 * EPS  # piece, of the cap
_LEAST, _AGAIN, _MOST = 0.02, 0.7, 4.0  # next piece, of the last: at least, after a failure, after a success


@attrs.frozen(eq=False)
class PiecewiseLinear:
    """A classifier: `first` on the image, then `rest`, then the last linear layer.

    Attributes
    ----------
    first : sequence of callable
        Steps up to the first kink: linear in t, so applied once a ray.
    rest : sequence of callable
        Steps up to the last linear layer.
    weight, bias : torch.Tensor
        The last linear layer, (class, feature) and (class,).
    """

    first: Sequence[Step]
    rest: Sequence[Step]
    weight: torch.Tensor
    bias: torch.Tensor


def first_crossings(
    network: PiecewiseLinear, start: torch.Tensor, direction: torch.Tensor, held: torch.Tensor, cap: float
) -> torch.Tensor:
    """Find where the held class is first overtaken: sup{t : class held on [0, t)}, up to the cap.

    Parameters
    ----------
    network : PiecewiseLinear
        Raw pixels to logits.
    start, direction : torch.Tensor
        (ray, …) as the network takes images, float64.
    held : torch.Tensor
        (ray,), int64.
    cap : float
        Largest t.

    Returns
    -------
    torch.Tensor
        (ray,), float64: 0 where the start has another class, infinite where the class holds up to the cap.
    """
    if not len(held):
        return torch.empty(0, dtype=start.dtype, device=start.device)
    return _Search(network, start, direction, held, cap).run()


def logits(network: PiecewiseLinear, x: torch.Tensor) -> torch.Tensor:
    """Run the network on points (n, …), as pieces of no length: (n, class), float64."""
    point = Enclosure(x, torch.zeros_like(x), torch.zeros_like(x))
    for step in (*network.first, *network.rest):
        point = step(point)
    return torch.nn.functional.linear(point.centre, network.weight, network.bias)


class _Search:
    """A block of rays; each round encloses one piece of every ray that isn't decided yet."""

    def __init__(
        self,
        network: PiecewiseLinear,
        start: torch.Tensor,
        direction: torch.Tensor,
        held: torch.Tensor,
        cap: float,
    ) -> None:
        self.network, self.held, self.cap = network, held, cap
        line = Enclosure(start, direction * cap, (start.abs() + cap * direction.abs()) * ROUNDINGS * EPS)
        for step in network.first:
            line = step(line)
        self.origin, self.slope, self.rounding = line.centre, line.tilt / cap, line.reach
        own = network.weight[held]
        self.weight, self.bias = own[:, None] - network.weight, network.bias[held][:, None] - network.bias
        self.spread = self.weight.abs()
        self.lower = torch.arange(len(network.weight), device=held.device) < held[:, None]
        self.tie = torch.zeros_like(self.bias)
        self.now = torch.zeros(len(held), dtype=start.dtype, device=start.device)
        self.length = torch.full_like(self.now, FIRST_PIECE * cap)
        self.found = torch.full_like(self.now, NEVER)

    def run(self) -> torch.Tensor:
        """Return the first crossing of each ray."""
        rays = torch.arange(len(self.held), device=self.held.device)
        margin = self.margins(rays, self.now, self.now)
        self.noise = torch.maximum(margin.reach.amax(1), self._resolution())
        self.tie = torch.where(self.lower, _TIED * self.noise[:, None], 0.0)
        margin = self.margins(rays, self.now, self.now)
        other = (margin.centre + margin.reach < 0).any(1)
        self.found[other] = 0.0
        rays = rays[~other]
        while len(rays):
            self._round(rays)
            rays = rays[self.found[rays].isinf() & (self.now[rays] < self.cap)]
        return self.found

    def margins(self, rays: torch.Tensor, begin: torch.Tensor, end: torch.Tensor) -> Enclosure:
        """Enclose logit of the held class minus each other one, (ray, class), on pieces; its own is 0 ± 0.

        Less what a tie needs to be below 0 where it goes to the other class.
        """
        shape = (-1, *[1] * (self.origin.ndim - 1))
        middle, half = ((begin + end) / 2).view(shape), ((end - begin) / 2).view(shape)
        slope = self.slope[rays]
        z = Enclosure(torch.addcmul(self.origin[rays], middle, slope), half * slope, self.rounding[rays])
        for step in self.network.rest:
            z = step(z)
        difference, spread, bias = self.weight[rays], self.spread[rays], self.bias[rays]
        last = Map(lambda h: _rows(difference, h), lambda h: _rows(spread, h), bias, difference.shape[2])
        found = last(z)
        return Enclosure(found.centre - self.tie[rays], found.tilt, found.reach)

    def _resolution(self) -> torch.Tensor:
        """Rounding of margins if no unit were off and nothing cancelled out: where all units are off, reach is 0."""
        size = self.origin.abs() + self.cap * self.slope.abs()
        z = Enclosure(size, torch.zeros_like(size), torch.zeros_like(size))
        for step in self.network.rest:
            z = step.majorant()(z) if isinstance(step, Map) else step(z)
        return EPS * (_rows(self.spread, z.centre) + self.bias.abs()).amax(1)

    def _round(self, rays: torch.Tensor) -> None:
        begin = self.now[rays]
        end = torch.clamp(begin + self.length[rays], max=self.cap)
        margin = self.margins(rays, begin, end)
        share = first_zero(margin.centre - margin.reach, margin.tilt)
        held = share.isinf()
        certain = torch.where(held, end, begin + share.clamp(max=1) * (end - begin))
        self.now[rays] = certain
        self.length[rays] = _next_length(margin, end - begin, share)
        short = end - begin <= _SHORTEST * self.cap
        doubtful = ~held & (short | (margin.reach.amax(1) <= _DOUBTFUL * self.noise[rays]))
        if doubtful.any():
            picked = Enclosure(*(t[doubtful] for t in _parts(margin)))
            self._settle(rays[doubtful], begin[doubtful], end[doubtful], picked)

    def _settle(self, rays: torch.Tensor, begin: torch.Tensor, end: torch.Tensor, margin: Enclosure) -> None:
        """Decide pieces that have no kink, and those that are too short to be cut."""
        at_begin, at_end = self.margins(rays, begin, begin), self.margins(rays, end, end)
        noise = (at_begin.reach + at_end.reach).amax(1)  # at a kink within rounding of an end it shows at that end
        self.noise[rays] = noise = torch.maximum(self.noise[rays], noise)
        linear = margin.reach.amax(1) <= _ROUNDED * noise
        short = end - begin <= _SHORTEST * self.cap
        overtaken = margin.centre - margin.tilt.abs() + margin.reach < 0
        margins = margin.centre + self.tie[rays]
        crosses = margins - margin.tilt.abs() < 0
        overtaken &= crosses | (margin.tilt.abs() <= self.tie[rays])  # a margin that only comes near 0 isn't a tie yet
        margins = torch.where(crosses, margins, margin.centre)
        share = first_zero(margins.masked_fill(~overtaken, NEVER), margin.tilt)
        crossing = torch.where(linear, begin + share * (end - begin), NEVER)
        overtaken_at_end = (at_end.centre + at_end.reach < 0).any(1)
        crossing = torch.where(short & ~linear & overtaken_at_end, begin, crossing)
        self.found[rays] = crossing
        passed = (linear | short) & crossing.isinf()
        self.now[rays] = torch.where(passed, end, self.now[rays])
        self.length[rays] = torch.where(passed, _MOST * (end - begin), self.length[rays])


def first_zero(middle: torch.Tensor, tilt: torch.Tensor) -> torch.Tensor:
    """Where on the piece, as a share of it, the least of the lines middle + tilt·τ (n, line) first gets below 0."""
    left, right = middle - tilt, middle + tilt
    share = torch.where(left < 0, 0.0, torch.where(right < 0, left / (left - right), NEVER))
    return share.amin(1)


def _next_length(margin: Enclosure, length: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Length at whose end the least lower bound would be 0, were margins straight and reach ∝ length²."""
    held = share.isinf()
    place = 2 * share.clamp(max=1)[:, None] - 1
    value = (margin.centre + place * margin.tilt).clamp(min=0)
    rate, bend = 2 * margin.tilt / length[:, None], margin.reach / length[:, None] ** 2
    meets = (rate + (rate**2 + 4 * bend * value).sqrt()) / (2 * bend)
    meets = torch.where(margin.reach > 0, meets, NEVER).amin(1).nan_to_num_(0.0, NEVER)
    return meets.clamp(_LEAST * length, torch.where(held, _MOST, _AGAIN) * length)


def _rows(weight: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Multiply each row by its own matrix; h may hold several batches of rows."""
    return torch.einsum("ncd,bnd->bnc", weight, h.view(-1, len(weight), h.shape[1])).flatten(0, 1)


def _parts(z: Enclosure) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return z.centre, z.tilt, z.reach
