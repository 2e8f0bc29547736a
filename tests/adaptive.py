"""Adaptive sampling of a network's ratio at one image, in float64, without the framework."""

from __future__ import annotations

import torch

from geoframe.geometry.adaptive import AdaptiveEstimate, AdaptiveSampler
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward
from geoframe.geometry.response import Displacements, block_responses
from geoframe.geometry.trace import sketch_range
from tests.networks import SHAPE


def grey(shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    """An image of 0.5 throughout, as a batch of one."""
    return torch.full((1, *shape), 0.5, dtype=torch.float64)


def sample(
    net: torch.nn.Module,
    scales: list[float],
    target: float,
    most: int = 4096,
    seed: int = 0,
    rows: int = 33,
    k: int = 4,
    x: torch.Tensor | None = None,
) -> AdaptiveEstimate:
    """Run the sampler, its directions drawn with `seed`."""
    x, net = grey() if x is None else x, net.double()
    shape, moves = tuple(x.shape[1:]), Displacements(net, x)

    def draw(start: int, stop: int) -> torch.Tensor:
        return unit_directions(shape, seed, "x", start, stop).double()

    def push(u: torch.Tensor) -> torch.Tensor:
        return pushforward(net, x.expand_as(u).contiguous(), u)[1]

    def respond(u: torch.Tensor, chosen: list[int]) -> torch.Tensor:
        return block_responses(moves, u, [scales[i] for i in chosen], rows)[0]

    with torch.no_grad():
        sketch = sketch_range(net, push, x, unit_directions(shape, seed, "x", 0, k, "sketch").double(), batch=8)
        return AdaptiveSampler(respond, push, draw, sketch, len(scales), most).run(target)
