"""Choices that are made by timing, when a cell starts: how many images a batch, and how derivatives are computed.

They change last digits, so they are recorded with the cell and used again when it is resumed. Only networks that take a
while are timed: for quick ones, timings are noise and there is little to win.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch

from geoframe.fusing import fused
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward, shared_pushforward
from geoframe.numerics import exact_numerics
from geoframe.precision import rounded

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

Derivative = Literal["batch", "shared"]
QUICK = 2e-3  # seconds an image that aren't worth a timing
LONG = 1.0  # seconds a batch, above which larger ones win nothing
BETTER = 0.9  # of the time: what a choice has to win, so that noise doesn't decide
TANGENTS = 4
ALIKE = 1e-3  # relative distance of derivatives in float32


def tuned_batch(encoder: LoadedEncoder, first: int, most: int) -> int:
    """Number of images in a forward pass: the first guess, or twice or four times as many where that is faster.

    Parameters
    ----------
    encoder : LoadedEncoder
    first, most : int
        The guess, and the largest number that memory allows.
    """
    network = encoder.derived(fused)
    best, rate = first, _seconds(network, first) / first
    if rate < QUICK or rate * first > LONG:
        return first
    for size in (2 * first, 4 * first):
        if size > most:
            break
        found = _seconds(network, size) / size
        if found < BETTER * rate:
            best, rate = size, found
    return best


def tuned_derivative(encoder: LoadedEncoder) -> Derivative:
    """Which way of computing Jacobian–vector products at one image is faster, among those that are right.

    "batch" sends dual numbers through an ordinary batch, the image repeated; "shared" runs the image once, and only
    the tangents as a batch (vmap), which not every network allows. `torch.func.linearize` isn't tried: it traces the
    network anew at every image, which takes longer than all the products that are needed there.
    """
    network = encoder.derived(fused)
    x = torch.full((1, *encoder.input_shape), 0.5, device=encoder.device)
    u = unit_directions(encoder.input_shape, 0, "tuning", 0, TANGENTS).to(x)
    repeated = x.expand_as(u).contiguous()
    with exact_numerics():
        try:
            batch, exact = _timed(lambda: pushforward(network._forward, repeated, u)[1])
            if batch < QUICK * TANGENTS:
                return "batch"
            shared, found = _timed(lambda: shared_pushforward(network._forward, x, u))
        except Exception:  # of any kind: vmap has no rule for an operation, the forward looks at values, no derivative
            return "batch"
    alike = bool((found - exact).norm() <= ALIKE * exact.norm())
    return "shared" if alike and shared < BETTER * batch else "batch"


def tuned_bfloat16(encoder: LoadedEncoder, size: int) -> bool:
    """Whether forward passes of `size` images are faster in bfloat16, and work."""
    network = encoder.derived(fused)
    exact = _seconds(network, size)
    if exact < QUICK * size:
        return False
    try:
        return _seconds(network.derived(rounded), size) < BETTER * exact
    except Exception:  # of any kind: an operation that bfloat16 doesn't have
        return False


def _seconds(encoder: LoadedEncoder, size: int) -> float:
    images = torch.full((size, *encoder.input_shape), 0.5, device=encoder.device)
    with exact_numerics():
        return _timed(lambda: encoder._forward(images))[0]


def _timed(run: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
    """Return the least seconds of two runs, after one to warm up."""
    result, least = run(), float("inf")
    for _ in range(2):
        start = time.perf_counter()
        result = run()
        result.sum().item()  # waits for the device
        least = min(least, time.perf_counter() - start)
    return least, result
