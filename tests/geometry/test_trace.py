"""The sketch of a Jacobian's range: what it knows exactly, and what it leaves."""

from __future__ import annotations

import pytest
import torch

from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward
from geoframe.geometry.trace import Sketch, pullbacks, sketch_range
from tests.networks import SHAPE, SIZE, relu_net


def sketched(net: torch.nn.Module, k: int, x: torch.Tensor) -> tuple[Sketch, torch.Tensor]:
    def push(u: torch.Tensor) -> torch.Tensor:
        return pushforward(net, x.expand_as(u).contiguous(), u.to(x.dtype))[1]

    with torch.no_grad():
        sketch = sketch_range(net, push, x, unit_directions(SHAPE, 0, "x", 0, k, "sketch").to(x.dtype), batch=3)
    return sketch, torch.autograd.functional.jacobian(net, x).reshape(-1, SIZE)


@pytest.mark.parametrize(("k", "complete"), [(3, False), (6, True), (40, True)])
def test_captured_and_left_make_up_the_prediction(k: int, complete: bool) -> None:
    """Of 8 features; their mean and variance over directions are what the sphere says."""
    x = torch.rand(1, *SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sketch, jacobian = sketched(relu_net().double(), k, x)
    u = unit_directions(SHAPE, 1, "y", 0, 4000).double()
    tangents = u.flatten(1) @ jacobian.T
    captured = sketch.captured(u)
    assert (sketch.basis is None) is complete
    torch.testing.assert_close(captured + sketch.left(tangents), tangents.square().sum(1))
    assert float(captured.mean()) == pytest.approx(sketch.mean, rel=0.05)
    assert float(captured.var()) == pytest.approx(sketch.variance, rel=0.15)
    total = float(jacobian.square().sum()) / SIZE
    assert sketch.mean == pytest.approx(total) if complete else sketch.mean < total


def test_pullbacks_are_rows_of_the_jacobian() -> None:
    net, x = relu_net().double(), torch.rand(1, *SHAPE, dtype=torch.float64)
    with torch.no_grad():
        rows = pullbacks(net, x, torch.eye(8, dtype=torch.float64), batch=3)
    torch.testing.assert_close(rows, torch.autograd.functional.jacobian(net, x).reshape(8, SIZE))


def test_an_isotropic_map_has_no_variance() -> None:
    x = torch.zeros(1, *SHAPE, dtype=torch.float64)
    sketch, _ = sketched(torch.nn.Flatten(), SIZE, x)
    assert sketch.mean == pytest.approx(1.0)
    assert sketch.variance == pytest.approx(0.0, abs=1e-12)


def test_memory_bounds_the_pullbacks_at_once() -> None:
    net, x = relu_net(), torch.rand(1, *SHAPE)
    covectors, sizes = torch.eye(8), []

    def phi(points: torch.Tensor) -> torch.Tensor:
        sizes.append(len(points))
        return net(points)

    every = pullbacks(phi, x, covectors, batch=8)
    assert sizes == [1, 7]
    sizes.clear()
    torch.testing.assert_close(pullbacks(phi, x, covectors, batch=8, memory=1), every)
    assert sizes == [1] * 8
