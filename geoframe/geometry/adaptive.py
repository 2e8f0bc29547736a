"""Sampling of the response ratio until its standard error is small enough, scale by scale (ours).

A pilot of a few pairs at every scale tells how many each scale needs; pairs are added only where they are, in few
rounds. The estimator is that of `geoframe.geometry.controlled`.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import torch

from geoframe.geometry.controlled import Array, Moments, moments
from geoframe.geometry.response import Directions
from geoframe.geometry.trace import Push, Sketch

BLOCK = 8  # pairs that are added at once, whatever the batch: numbers don't depend on it
PILOT = 16  # pairs at every scale before anything is decided
GROWTH = 3  # most that one round may multiply the pairs by: a pilot's variance is rough
DENOMINATOR = 0.5  # share of the squared target that the denominator's own error may take

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
            short = np.array([_falls_short(m, n, pushes, target) for m, n in zip(found, pairs, strict=True)])
            short &= pairs < most
            if not short.any():
                return _estimate(found, pairs, pushes)
            pushes = self._pushes_needed(found, short, pushes, target, most)
            candidates = np.arange(BLOCK, most + 1, BLOCK)
            for k in np.flatnonzero(short):
                pairs[k] = _pairs_needed(found[k], int(pairs[k]), pushes, target, candidates)

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

    def _pushes_needed(self, found: list[Moments], short: np.ndarray, pushes: int, target: float, most: int) -> int:
        """Jacobian–vector products until the denominator's error takes its share of the target at most."""
        if not pushes:
            return 0
        first = found[int(np.flatnonzero(short)[0])]
        needed = first.left / (DENOMINATOR * (target * first.prediction) ** 2)
        return max(pushes, min(_whole(min(needed, GROWTH * pushes)), most))


def _whole(count: float) -> int:
    """Round up to whole blocks."""
    return int(np.ceil(count / BLOCK)) * BLOCK


def _falls_short(found: Moments, pairs: int, pushes: int, target: float) -> bool:
    """Whether more pairs are needed; a ratio that is 0, infinite or undefined needs none."""
    return found.standard_error(pairs, pushes) > target * abs(found.ratio)


def _pairs_needed(found: Moments, pairs: int, pushes: int, target: float, candidates: np.ndarray) -> int:
    """Least number of pairs, above the present one, that should do; within what one round may add."""
    candidates = candidates[(candidates > pairs)]
    allowed = candidates[: max(1, int(np.searchsorted(candidates, GROWTH * pairs, side="right")))]
    few = np.minimum(allowed, pushes) if pushes else allowed
    error = found.widening(few) * np.sqrt(found.variance(allowed, pushes))
    enough = np.flatnonzero(error <= target * abs(found.ratio))
    return int(allowed[enough[0]] if len(enough) else allowed[-1])


def _estimate(found: list[Moments], pairs: np.ndarray, pushes: int) -> AdaptiveEstimate:
    left = found[0].left
    return AdaptiveEstimate(
        ratio=np.array([m.ratio for m in found]),
        ratio_se=np.array([m.standard_error(n, pushes) for m, n in zip(found, pairs, strict=True)]),
        response=np.array([m.response for m in found]),
        pairs=pairs.copy(),
        prediction=found[0].prediction,
        prediction_se=float(np.sqrt(left / pushes)) if pushes else 0.0,
        pushforwards=pushes,
    )
