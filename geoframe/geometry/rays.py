"""Step search along rays: the last step before the class first changes (Neural Expansion, A.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import attrs
import torch

Classifier = Callable[[torch.Tensor], torch.Tensor]

# Two logits that differ by less than this share of the largest one may swap when computed another way.
NEAR_TIE = 1e-4


class NotFinite(ValueError):
    """A classifier returned NaN or infinity along a ray, before its class changed."""


class Line(Protocol):
    """Logits along a block of rays x + t·v."""

    def logits(self, rays: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Logits of some of the rays (by index) at the same steps t: (len(rays), len(t), class)."""
        ...

    def logits_plain(self, rays: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """The same one by one, as the plain loop computes them: rays and t (m,), result (m, class)."""
        ...


@attrs.define(eq=False)
class PlainLine:
    """Every point of every ray through the whole classifier.

    Attributes
    ----------
    classifier : callable
        Raw pixels (m, …) to logits (m, class).
    start, direction : torch.Tensor
        x and v, (ray, …).
    """

    classifier: Classifier
    start: torch.Tensor
    direction: torch.Tensor

    def logits(self, rays: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """See `Line`."""
        start, direction = self.start[rays].unsqueeze(1), self.direction[rays].unsqueeze(1)
        steps = t.view(1, -1, *[1] * (start.ndim - 2))
        points = torch.addcmul(start, direction, steps).flatten(0, 1)
        return self.classifier(points).view(len(rays), len(t), -1)

    def logits_plain(self, rays: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """See `Line`."""
        steps = t.view(-1, *[1] * (self.start.ndim - 1))
        return self.classifier(torch.addcmul(self.start[rays], self.direction[rays], steps))


class LinearFirstLine:
    """The same for a classifier that starts with a linear layer: Wx + b and Wv are computed once a ray.

    Parameters
    ----------
    plain : PlainLine
        The rays.
    weight, bias : torch.Tensor
        The first layer on raw pixels, normalisation folded in: (hidden, pixel) and (hidden,).
    rest : callable
        Pre-activations (m, hidden) to logits (m, class).
    """

    def __init__(self, plain: PlainLine, weight: torch.Tensor, bias: torch.Tensor, rest: Classifier) -> None:
        self.plain, self.rest = plain, rest
        self.offset = torch.nn.functional.linear(plain.start.flatten(1), weight, bias)
        self.slope = torch.nn.functional.linear(plain.direction.flatten(1), weight)

    def logits(self, rays: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """See `Line`."""
        offset, slope = self.offset[rays].unsqueeze(1), self.slope[rays].unsqueeze(1)
        hidden = torch.addcmul(offset, slope, t.view(1, -1, 1)).flatten(0, 1)
        return self.rest(hidden).view(len(rays), len(t), -1)

    def logits_plain(self, rays: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """See `Line`."""
        return self.plain.logits_plain(rays, t)


def steps_to(cap: float, step: float, through: float | None = None) -> torch.Tensor:
    """Distances 0, δ, 2δ, … up to the cap, which is always the last one, and `through` among them; float64."""
    near = 1e-9 * cap
    steps = [k * step for k in range(math.floor(cap / step + 1e-9) + 1)]
    for exact in (cap, through):
        if exact is not None and 0 < exact <= cap:
            steps = sorted([t for t in steps if abs(t - exact) > near] + [exact])
    return torch.tensor(steps, dtype=torch.float64)


def first_change(line: Line, held: torch.Tensor, steps: torch.Tensor, batch: int) -> torch.Tensor:
    """Find the first step at which the class is not the held one.

    Finished rays are dropped; the fewer are left, the more steps of each go into one batch.

    Parameters
    ----------
    line : Line
        A block of rays, at most `batch`.
    held : torch.Tensor
        (ray,), int64: the class that counts as unchanged.
    steps : torch.Tensor
        (step,), float64, in the order in which they are tried; signed.
    batch : int
        Points evaluated at once.

    Returns
    -------
    torch.Tensor
        (ray,), int64: index of the step; len(steps) where the class never changes.

    Raises
    ------
    NotFinite
        Where logits are NaN or infinite before the class changes.
    """
    found = torch.full_like(held, len(steps))
    active = torch.arange(len(held), device=held.device)
    done = 0
    while len(active) and done < len(steps):
        width = max(1, min(batch // len(active), len(steps) - done))
        t = steps[done : done + width].to(held.device)
        changed, broken = _changed(line, active, t, held[active])
        event = changed | broken
        hit = event.any(1)
        first = event[hit].int().argmax(1)
        if broken[hit].gather(1, first[:, None]).any():
            raise NotFinite("the logits aren't finite along a ray")
        found[active[hit]] = done + first
        active, done = active[~hit], done + width
    return found


def _changed(line: Line, rays: torch.Tensor, t: torch.Tensor, held: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether the class is not the held one, and whether logits aren't finite, (ray, step) each.

    Near ties are decided the plain way.
    """
    step = t.to(torch.float32)
    logits = line.logits(rays, step)
    changed = logits.argmax(2) != held[:, None]
    top = logits.topk(2, dim=2).values if logits.shape[2] > 1 else logits.repeat(1, 1, 2)
    near = ~((top[..., 0] - top[..., 1]) > NEAR_TIE * logits.abs().amax(2))  # True for NaN and infinity too
    broken = ~logits.isfinite().all(2)
    if near.any() and not isinstance(line, PlainLine):
        row, column = near.nonzero(as_tuple=True)
        plain = line.logits_plain(rays[row], step[column])
        broken[row, column] = ~plain.isfinite().all(1)
        changed[row, column] = plain.argmax(1) != held[row]
    return changed, broken


@attrs.frozen(eq=False)
class Intervals:
    """Generalization intervals of n rays.

    Attributes
    ----------
    gi : torch.Tensor
        (n,), float64: the last step before the class first changes; 0 where the start has another class.
    censored : torch.Tensor
        (n,), bool: the class never changed up to the cap.
    """

    gi: torch.Tensor
    censored: torch.Tensor


def grid_search(line: Line, held: torch.Tensor, steps: torch.Tensor, batch: int) -> Intervals:
    """Search a block of rays step by step (A.4): parameters as in `first_change`, steps from 0 on."""
    first = first_change(line, held, steps, batch).cpu()
    last = (first - 1).clamp(min=0)
    return Intervals(gi=steps.abs()[last], censored=first == len(steps))


def refined_search(line: Line, held: torch.Tensor, steps: torch.Tensor, halvings: int, batch: int) -> Intervals:
    """Search a block of rays on steps of any spacing (not 0), then halve the step on which the class changes (ours).

    Parameters
    ----------
    line, held, steps, batch
        As in `first_change`.
    halvings : int
        Each takes one more point a ray, in the middle of log t, or of t on the first step.

    Returns
    -------
    Intervals
        The last points known to hold the class.
    """
    first = first_change(line, held, steps, batch).cpu()
    rays = (first < len(steps)).nonzero()[:, 0]
    bracket = torch.cat([steps.new_zeros(1), steps])
    low, high = bracket[first], steps[first.clamp(max=len(steps) - 1)]
    for _ in range(halvings if len(rays) else 0):
        middle = torch.where(low > 0, (low * high).sqrt(), high / 2)[rays]
        logits = line.logits_plain(rays.to(held.device), middle.to(held.device, torch.float32))
        changed = logits.argmax(1).cpu() != held.cpu()[rays]
        high[rays] = torch.where(changed, middle, high[rays])
        low[rays] = torch.where(changed, low[rays], middle)
    return Intervals(gi=low, censored=first == len(steps))


def join(parts: list[Intervals]) -> Intervals:
    """Join the results of blocks."""
    return Intervals(torch.cat([p.gi for p in parts]), torch.cat([p.censored for p in parts]))
