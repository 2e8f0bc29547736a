"""The two ways in which `RatioProbe` estimates r_η of one image with a loaded encoder."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import attrs
import numpy as np
import torch

from geoframe.errors import EncoderRefused
from geoframe.geometry import response
from geoframe.geometry.adaptive import AdaptiveSampler
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.ratio import Array, estimate_ratio
from geoframe.geometry.response import block_responses, even_blocks, pairs_within
from geoframe.geometry.trace import NotAdjoint, NotFinite, Push, Sketch, sketch_range

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder
    from geoframe.precision import Ladder

LOOSE = 0.04  # target from which on half the sketch will do
PULLED = 8  # pullbacks at once, which keep all activations
SKETCH = 32  # directions that the range of J is sketched from
PULLBACK_COST = 2.0  # forward passes that one vector–Jacobian product counts for


@attrs.frozen(eq=False)
class Measured:
    """What an estimator finds at one image; arrays are (scale,).

    Attributes
    ----------
    ratio, ratio_se, response : array
    level : array
        Mean of ‖Φ(x)‖² + ‖Φ(x ± ηu)‖²: what rounding is relative to.
    directions : array of int
        Directions measured, both antipodes counted.
    prediction, prediction_se : float
    """

    ratio: Array
    ratio_se: Array
    response: Array
    level: Array
    directions: np.ndarray
    prediction: float
    prediction_se: float


@attrs.frozen(eq=False)
class ImageDirections:
    """The unit directions of one image, on the encoder's device.

    On a GPU the next block is drawn in a thread, while the device works, and copied asynchronously.
    """

    encoder: LoadedEncoder
    seed: int
    image_id: str
    purpose: str = "direction"
    _ahead: dict[tuple[int, int], Future[torch.Tensor]] = attrs.field(factory=dict, init=False)

    def __call__(self, start: int, stop: int) -> torch.Tensor:
        """Directions start…stop−1, (stop − start, channel, height, width)."""
        if self.encoder.device.type != "cuda":
            return self._drawn(start, stop).to(self.encoder.device)
        drawn = self._ahead.pop((start, stop), None)
        block = self._drawn(start, stop) if drawn is None else drawn.result()
        self._ahead.clear()
        following = stop, 2 * stop - start
        self._ahead[following] = _drawing().submit(self._drawn, *following)
        return block.pin_memory().to(self.encoder.device, non_blocking=True)

    def _drawn(self, start: int, stop: int) -> torch.Tensor:
        return unit_directions(self.encoder.input_shape, self.seed, self.image_id, start, stop, self.purpose)


@cache
def _drawing() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "directions")


def paper_estimate(
    encoder: LoadedEncoder,
    ladder: Ladder,
    x: torch.Tensor,
    draw: ImageDirections,
    scales: Sequence[float],
    pairs: int,
    jvps: int,
) -> Measured:
    """The paper's: a fixed number of pairs at every scale, of which the first `jvps` predict (A.2)."""
    block = even_blocks(pairs, pairs_within(encoder.micro_batch))
    jvp_block = even_blocks(jvps, max(1, encoder.micro_batch // 4))
    energies, level = np.empty((pairs, len(scales))), np.empty(len(scales))
    for moves, members in ladder.groups(range(len(scales))):
        found = response.pair_responses(moves, draw, pairs, [scales[k] for k in members], block)
        energies[:, members], level[members] = (part.numpy() for part in found)
    predictions = response.linear_predictions(encoder.pushforward, x, draw, jvps, jvp_block)
    estimate = estimate_ratio(energies, predictions.numpy())
    return Measured(
        ratio=estimate.ratio,
        ratio_se=estimate.ratio_se,
        response=estimate.response,
        level=level,
        directions=np.full(len(scales), 2 * pairs),
        prediction=estimate.prediction,
        prediction_se=estimate.prediction_se,
    )


def adaptive_estimate(
    encoder: LoadedEncoder,
    ladder: Ladder,
    x: torch.Tensor,
    draw: ImageDirections,
    scales: Sequence[float],
    most: int,
    target: float,
) -> Measured:
    """Ours: pairs are added to a scale until its relative standard error is `target`, at most `most`.

    See `geoframe.geometry.controlled` and `geoframe.geometry.adaptive`.
    """
    level = np.zeros(len(scales))

    def respond(u: torch.Tensor, chosen: list[int]) -> torch.Tensor:
        energies = torch.empty(len(u), len(chosen), dtype=torch.float64)
        for moves, members in ladder.groups(chosen):
            found, levels = block_responses(moves, u, [scales[k] for k in members], encoder.micro_batch)
            energies[:, [chosen.index(k) for k in members]] = found
            level[members] = levels.numpy()
        return energies

    def push(u: torch.Tensor) -> torch.Tensor:
        return encoder.push_at(x, u)

    size = SKETCH if target < LOOSE else SKETCH // 2
    try:
        sketch = _sketched(encoder, push, x, attrs.evolve(draw, purpose="sketch")(0, size))
    except NotFinite:
        return _nothing(len(scales))
    found = AdaptiveSampler(respond, push, draw, sketch, len(scales), most).run(target)
    return Measured(
        ratio=found.ratio,
        ratio_se=found.ratio_se,
        response=found.response,
        level=level,
        directions=2 * found.pairs,
        prediction=found.prediction,
        prediction_se=found.prediction_se,
    )


def _nothing(scales: int) -> Measured:
    """What is found at an image without derivative: nothing is valid there, as with the paper's estimator."""
    empty = np.full(scales, np.nan)
    return Measured(empty, empty, empty, np.zeros(scales), np.zeros(scales, dtype=np.int64), np.nan, np.nan)


def _sketched(encoder: LoadedEncoder, push: Push, x: torch.Tensor, directions: torch.Tensor) -> Sketch:
    """Sketch the range of J; refuse an encoder whose reverse mode isn't of the same J."""
    batch = max(1, min(PULLED, encoder.micro_batch // 4))
    try:
        sketch = sketch_range(encoder.features, push, x, directions, batch, encoder.memory)
    except NotAdjoint as error:
        if "does not require grad" in str(error):
            raise EncoderRefused(
                f"encoder {encoder.label!r} has no reverse-mode derivative: remove .detach() and torch.no_grad() from "
                "its forward (RatioProbe(estimator='paper') needs forward mode only)"
            ) from error
        raise EncoderRefused(
            f"encoder {encoder.label!r} has no reverse-mode derivative that agrees with its forward-mode one "
            f"({error}): RatioProbe(estimator='paper') needs none"
        ) from error
    encoder.count((PULLBACK_COST - 1) * len(sketch.pullback))
    return sketch


def first_block(encoder: LoadedEncoder, draw: ImageDirections, pairs: int) -> torch.Tensor:
    """Return the first directions, as many as go into one batch: noise is measured on them."""
    return draw(0, even_blocks(pairs, pairs_within(encoder.micro_batch)))
