"""Sampling of the response ratio until its standard error is small enough, scale by scale (ours).

A pilot of a few pairs at every scale tells how many pairs each scale needs and how many Jacobian–vector products all of
them: the denominator is common, and on the plateau most of its error is the numerator's too. Both are added where they
are needed, at the least cost together, in few rounds. The estimator is that of `geoframe.geometry.controlled`.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import torch

from geoframe.geometry.controlled import Array, Moments, moments
from geoframe.geometry.response import Directions
from geoframe.geometry.trace import Push, Sketch

BLOCK = 8  # pairs that are added at once, whatever the batch: how it divides them changes numbers by rounding alone
PILOT = 16  # pairs at every scale before anything is decided
GROWTH = 3  # most that one round may multiply the pairs by: a pilot's variance is rough
PUSHED = 1.25  # pairs that one Jacobian–vector product costs as much as
TRIED = 32  # numbers of Jacobian–vector products that a plan compares

Respond = Callable[[torch.Tensor, list[int]], torch.Tensor]


@attrs.frozen(eq=False)
class AdaptiveEstimate:
    """Estimate over the scales of one image; arrays are (scale,).

    Attributes
    ----------
    ratio, ratio_se, response : array
    pairs : array of int
        Antipodal pairs measured.
    prediction, prediction_se : float
    pushforwards : int
        Jacobian–vector products along the pairs.
    """

    ratio: Array
    ratio_se: Array
    response: Array
    pairs: np.ndarray
    prediction: float
    prediction_se: float
    pushforwards: int


@attrs.define(eq=False)
class AdaptiveSampler:
    """Adds pairs to the scales that need them.

    Attributes
    ----------
    respond : callable
        `respond(u, scales)`: N of a block of unit directions (pair, …) at scales given by number, (pair, scale),
        float64, on the CPU.
    push : callable
        J u of a block of directions, (pair, feature).
    draw : callable
        `draw(start, stop)` gives unit directions.
    sketch : Sketch
        Of J, from directions independent of these.
    scales : int
        Number of scales.
    most : int
        Pairs at one scale; rounded down to whole blocks.
    """

    respond: Respond
    push: Push
    draw: Directions
    sketch: Sketch
    scales: int
    most: int
    _responses: list[list[Array]] = attrs.field(factory=list, init=False)
    _captured: list[Array] = attrs.field(factory=list, init=False)
    _left: list[Array] = attrs.field(factory=list, init=False)

    def run(self, target: float) -> AdaptiveEstimate:
        """Measure until every scale's relative standard error is at most `target`, or `most` pairs are used up."""
        self._responses = [[] for _ in range(self.scales)]
        most = max(self.most // BLOCK, 1) * BLOCK
        pairs = np.full(self.scales, min(PILOT, most))
        pushes = 0 if self.sketch.basis is None else int(pairs[0])
        while True:
            self._extend(pairs, pushes)
            found = [self._moments(k) for k in range(self.scales)]
            short = {k: m for k, m in enumerate(found) if pairs[k] < most and _falls_short(m, pairs[k], pushes, target)}
            if not short:
                return _estimate(found, pairs, pushes, target)
            plan = _Plan.of(short, pairs, pushes, target, most)
            for k, needed in plan.pairs.items():
                pairs[k] = min(needed, GROWTH * pairs[k])
            pushes = min(plan.pushes, GROWTH * pushes)

    def _extend(self, pairs: np.ndarray, pushes: int) -> None:
        """Measure the blocks that are missing: their directions are drawn once for all scales."""
        for index in range(max(int(pairs.max()), pushes) // BLOCK):
            start = index * BLOCK
            scales = [k for k in range(self.scales) if len(self._responses[k]) == index and start < pairs[k]]
            pushed = len(self._left) == index and start < pushes
            if not scales and not pushed:
                continue
            u = self.draw(start, start + BLOCK)
            if len(self._captured) == index:
                self._captured.append(self.sketch.captured(u).cpu().numpy())
            if pushed:
                self._left.append(self.sketch.left(self.push(u)).cpu().numpy())
            if scales:
                for k, response in zip(scales, self.respond(u, scales).numpy().T, strict=True):
                    self._responses[k].append(response)

    def _moments(self, k: int) -> Moments:
        left = np.concatenate(self._left) if self._left else np.empty(0)
        captured = np.concatenate(self._captured)
        return moments(np.concatenate(self._responses[k]), captured, left, self.sketch.mean, self.sketch.variance)


def _falls_short(found: Moments, pairs: int, pushes: int, target: float) -> bool:
    """Whether more pairs are needed; a ratio that is infinite or undefined needs none, nor one of 0 without spread."""
    return bool(np.isfinite(found.ratio)) and not bool(found.bound(pairs, pushes) <= target * abs(found.ratio))


@attrs.frozen
class _Plan:
    """Numbers of pairs at the scales that fall short, and of Jacobian–vector products, that should do."""

    pairs: dict[int, int]
    pushes: int

    @classmethod
    def of(cls, short: dict[int, Moments], pairs: np.ndarray, pushes: int, target: float, most: int) -> _Plan:
        """Find the cheapest; where `most` pairs don't do, the missing ones count as they would."""
        tried = np.unique(_whole(np.geomspace(pushes, most, TRIED))) if pushes else np.zeros(1, dtype=np.int64)
        cost, needed = PUSHED * tried, {}
        for k, found in short.items():
            candidates = np.arange(pairs[k], most + 1, BLOCK)
            with np.errstate(all="ignore"):  # a target that nothing reaches
                bound = found.bound(candidates, tried[:, None]) / (target * abs(found.ratio))
                missing = most * np.square(bound[:, -1])
            enough = bound <= 1
            enough[tried == pushes, 0] = False  # what there is falls short, whatever rounding says here
            needed[k] = np.where(enough.any(1), candidates[enough.argmax(1)], most)
            cost = cost + np.where(enough.any(1), needed[k], missing)
        best = int(np.argmin(cost))
        return cls({k: int(numbers[best]) for k, numbers in needed.items()}, int(tried[best]))


def _whole(counts: Array) -> np.ndarray:
    """Round down to whole blocks."""
    return (counts / BLOCK + 1e-9).astype(np.int64) * BLOCK


def _estimate(found: list[Moments], pairs: np.ndarray, pushes: int, target: float) -> AdaptiveEstimate:
    left = found[0].left
    return AdaptiveEstimate(
        ratio=np.array([m.ratio for m in found]),
        ratio_se=np.array([m.standard_error(int(n), pushes, target) for m, n in zip(found, pairs, strict=True)]),
        response=np.array([m.response for m in found]),
        pairs=pairs.copy(),
        prediction=found[0].prediction,
        prediction_se=float(np.sqrt(left / pushes)) if pushes else 0.0,
        pushforwards=pushes,
    )
