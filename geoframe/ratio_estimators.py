"""The two ways in which `RatioProbe` estimates r_η of one image with a loaded encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np
import torch

from geoframe.geometry import response
from geoframe.geometry.adaptive import BLOCK, AdaptiveSampler
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.ratio import Array, estimate_ratio
from geoframe.geometry.response import block_responses, even_blocks
from geoframe.geometry.trace import sketch_range

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

SKETCH = 48  # directions that the range of J is sketched from
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
    u : torch.Tensor
        The first block of directions, as batched when measuring.
    """

    ratio: Array
    ratio_se: Array
    response: Array
    level: Array
    directions: np.ndarray
    prediction: float
    prediction_se: float
    u: torch.Tensor


@attrs.frozen(eq=False)
class ImageDirections:
    """The unit directions of one image, on the encoder's device."""

    encoder: LoadedEncoder
    seed: int
    image_id: str
    purpose: str = "direction"

    def __call__(self, start: int, stop: int) -> torch.Tensor:
        """Directions start…stop−1, (stop − start, channel, height, width)."""
        shape = self.encoder.input_shape
        return unit_directions(shape, self.seed, self.image_id, start, stop, self.purpose).to(self.encoder.device)


def paper_estimate(
    encoder: LoadedEncoder, x: torch.Tensor, draw: ImageDirections, scales: Sequence[float], pairs: int, jvps: int
) -> Measured:
    """The paper's: a fixed number of pairs at every scale, of which the first `jvps` predict (A.2)."""
    block = even_blocks(pairs, (encoder.micro_batch - 1) // 2)
    jvp_block = even_blocks(jvps, max(1, encoder.micro_batch // 4))
    energies, level = response.pair_responses(encoder.features, x, draw, pairs, scales, block)
    predictions = response.linear_predictions(encoder.pushforward, x, draw, jvps, jvp_block)
    found = estimate_ratio(energies.numpy(), predictions.numpy())
    return Measured(
        ratio=found.ratio,
        ratio_se=found.ratio_se,
        response=found.response,
        level=level.numpy(),
        directions=np.full(len(scales), 2 * pairs),
        prediction=found.prediction,
        prediction_se=found.prediction_se,
        u=draw(0, block),
    )


def adaptive_estimate(
    encoder: LoadedEncoder, x: torch.Tensor, draw: ImageDirections, scales: Sequence[float], most: int, target: float
) -> Measured:
    """Ours: pairs are added to a scale until its relative standard error is `target`, at most `most` (see
    `geoframe.geometry.controlled` and `geoframe.geometry.adaptive`).
    """
    level = np.zeros(len(scales))

    def respond(u: torch.Tensor, chosen: list[int]) -> torch.Tensor:
        energies, levels = block_responses(encoder.features, x, u, [scales[k] for k in chosen], encoder.micro_batch)
        level[chosen] = levels.numpy()
        return energies

    def push(u: torch.Tensor) -> torch.Tensor:
        return encoder.push_at(x, u)

    directions = attrs.evolve(draw, purpose="sketch")(0, SKETCH)
    sketch = sketch_range(encoder.features, push, x, directions, max(1, encoder.micro_batch // 4))
    encoder.count((PULLBACK_COST - 1) * len(sketch.pullback))
    found = AdaptiveSampler(respond, push, draw, sketch, len(scales), most).run(target)
    return Measured(
        ratio=found.ratio,
        ratio_se=found.ratio_se,
        response=found.response,
        level=level,
        directions=2 * found.pairs,
        prediction=found.prediction,
        prediction_se=found.prediction_se,
        u=draw(0, even_blocks(BLOCK, (encoder.micro_batch - 1) // 2)),
    )
