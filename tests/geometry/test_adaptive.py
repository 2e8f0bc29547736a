"""Adaptive sampling reaches its target where it can, spends where it must, and says the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geoframe.geometry.adaptive import BLOCK, PILOT, AdaptiveEstimate, AdaptiveSampler
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward
from geoframe.geometry.response import block_responses, pair_responses
from geoframe.geometry.trace import sketch_range
from tests.networks import SHAPE, SIZE, Linear, Square, relu_net


def sample(
    net: torch.nn.Module,
    scales: list[float],
    target: float,
    most: int = 4096,
    seed: int = 0,
    rows: int = 33,
    k: int = 4,
) -> AdaptiveEstimate:
    x = torch.full((1, *SHAPE), 0.5, dtype=torch.float64)
    net = net.double()

    def draw(start: int, stop: int) -> torch.Tensor:
        return unit_directions(SHAPE, seed, "x", start, stop).double()

    def push(u: torch.Tensor) -> torch.Tensor:
        return pushforward(net, x.expand_as(u).contiguous(), u)[1]

    def respond(u: torch.Tensor, chosen: list[int]) -> torch.Tensor:
        return block_responses(net, x, u, [scales[i] for i in chosen], rows)[0]

    with torch.no_grad():
        sketch = sketch_range(net, push, x, unit_directions(SHAPE, seed, "x", 0, k, "sketch").double(), batch=8)
        return AdaptiveSampler(respond, push, draw, sketch, len(scales), most).run(target)


def test_a_linear_map_takes_the_pilot_and_has_ratio_one() -> None:
    found = sample(Linear(), [0.1, 1.0, 10.0], 0.5)
    np.testing.assert_array_equal(found.pairs, PILOT)
    np.testing.assert_allclose(found.ratio, 1.0, atol=4 * found.ratio_se.max())


def test_the_square_of_a_projection() -> None:
    """R = 1 + 3η² / (4 (a·x)² (d + 2)); one feature, so that the denominator is exact."""
    scales = [0.1, 3.0, 30.0]
    found = sample(Square(), scales, 0.03)
    assert found.pushforwards == 0
    assert found.prediction_se == 0.0
    projection = 0.5 * np.sqrt(SIZE)
    want = 1 + 3 * np.square(scales) / (4 * projection**2 * (SIZE + 2))
    assert (np.abs(found.ratio - want) < 3.5 * found.ratio_se).all()
    assert (found.ratio_se <= 0.03 * found.ratio).all()
    assert found.pairs[0] < found.pairs[2]


def test_the_cap_is_kept_and_the_error_stays_honest() -> None:
    found = sample(Square(), [30.0], 1e-3, most=40)
    np.testing.assert_array_equal(found.pairs, 40)
    assert found.ratio_se[0] > 1e-3 * found.ratio[0]


def test_counts_are_whole_blocks_and_do_not_depend_on_the_batch() -> None:
    one, two = (sample(relu_net(), [0.1, 1.0, 5.0], 0.02, rows=rows) for rows in (3, 65))
    np.testing.assert_array_equal(one.pairs, two.pairs)
    assert (one.pairs % BLOCK == 0).all()
    np.testing.assert_allclose(one.ratio, two.ratio, rtol=1e-12)


def test_a_constant_map_ends() -> None:
    found = sample(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE, 3)).apply(_zero), [1.0], 0.01)
    np.testing.assert_array_equal(found.pairs, PILOT)
    assert not np.isfinite(found.ratio).any()


def _zero(module: torch.nn.Module) -> None:
    for parameter in module.parameters():
        torch.nn.init.zeros_(parameter)


@pytest.mark.parametrize("rows", [3, 7, 64])
def test_blocks_of_several_scales_are_the_same_responses(rows: int) -> None:
    net, x = relu_net().double(), torch.rand(1, *SHAPE, dtype=torch.float64)
    u, scales = unit_directions(SHAPE, 0, "x", 0, 6).double(), [0.1, 1.0, 2.0]
    with torch.no_grad():
        have = block_responses(net, x, u, scales, rows)
        want = pair_responses(net, x, lambda start, stop: u[start:stop], 6, scales, block=6)
    for one, two in zip(have, want, strict=True):
        torch.testing.assert_close(one, two)


def brute_force(net: torch.nn.Module, scales: list[float]) -> np.ndarray:
    """The ratio from 400,000 directions, with the prediction as a control variate."""
    net, x = net.double(), torch.full((1, *SHAPE), 0.5, dtype=torch.float64)
    u = torch.randn(400_000, *SHAPE, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    u /= u.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    with torch.no_grad():
        jacobian = torch.autograd.functional.jacobian(net, x).reshape(-1, SIZE)
        response, _ = pair_responses(net, x, lambda start, stop: u[start:stop], len(u), scales, block=20_000)
    control = (u.flatten(1) @ jacobian.T).square().sum(1)
    mean = float(jacobian.square().sum()) / SIZE
    slope = np.array([np.cov(control, response[:, k])[0, 1] / float(control.var()) for k in range(len(scales))])
    return np.asarray((response.mean(0).numpy() - slope * float(control.mean() - mean)) / mean)


def quadratic(scales: list[float]) -> np.ndarray:
    return 1 + 3 * np.square(scales) / (4 * 0.25 * SIZE * (SIZE + 2))


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.02, 0.05])
@pytest.mark.parametrize("kind", ["relu", "square"])
def test_intervals_hold_the_truth_at_every_scale(kind: str, target: float) -> None:
    """2,000 intervals a scale, stopping rule and all; a squared projection has the heaviest tail there is."""
    net, scales = (relu_net(), [0.1, 1.0, 3.0, 10.0]) if kind == "relu" else (Square(), [1.0, 10.0, 30.0, 100.0])
    want = brute_force(net, scales) if kind == "relu" else quadratic(scales)
    hits = []
    for seed in range(2000):
        found = sample(net, scales, target, seed=seed)
        hits.append(np.abs(found.ratio - want) < 1.96 * found.ratio_se)
    share = np.mean(hits, 0)
    print(kind, target, share)
    assert (share >= 0.92).all()
    assert (share <= 0.99).all()
