"""Pushforwards against full Jacobians, and what a map without a derivative gives."""

from __future__ import annotations

import pytest
import torch

from geoframe.geometry.pushforward import central_difference, pushforward, shared_pushforward, squared_norms
from geoframe.numerics import exact_numerics
from tests.networks import SHAPE, conv_net, relu_net


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(2).transpose(1, 2).repeat(1, 1, 8) * torch.arange(1, 9).to(x)
        return self.inner(tokens, tokens, tokens, need_weights=False)[0].mean(1)


@pytest.mark.parametrize(("network", "channels"), [(conv_net(), 3), (Attention(), 1)])
def test_pushforward_is_the_jacobian_times_the_vector(network: torch.nn.Module, channels: int) -> None:
    phi = network.double().eval().requires_grad_(False)
    torch.manual_seed(0)
    x, v = torch.rand(2, 3, channels, 6, 6, dtype=torch.float64)
    with exact_numerics():
        value, tangent = pushforward(phi, x, v)
        torch.testing.assert_close(value, phi(x))
    for row in range(3):
        jacobian = torch.autograd.functional.jacobian(lambda t: phi(t)[0], x[row : row + 1])
        want = jacobian.flatten(1) @ v[row].flatten()
        torch.testing.assert_close(tangent[row], want, rtol=1e-10, atol=1e-12)


def test_central_difference_is_exact_for_quadratics() -> None:
    x, v = torch.rand(2, 4, 7, dtype=torch.float64)
    torch.testing.assert_close(central_difference(lambda t: t**2, x, v, 0.5), 2 * x * v)


def test_a_detached_map_gives_a_zero_tangent() -> None:
    x = torch.rand(2, 3)
    assert not pushforward(lambda t: t.detach() * 2, x, torch.ones(2, 3))[1].any()


def test_squared_norms_are_accumulated_in_float64() -> None:
    row = torch.full((1, 100_001), 1e-3)
    row[0, 0] = 1e4
    want = row.double().square().sum()
    assert float(squared_norms(row)) == pytest.approx(float(want), rel=1e-14)


@pytest.mark.parametrize("network", [relu_net(), conv_net()])
def test_tangents_that_share_their_point(network: torch.nn.Module) -> None:
    shape = (3, 9, 9) if isinstance(network[0], torch.nn.Conv2d) else SHAPE
    x, v = torch.rand(1, *shape), torch.randn(5, *shape)
    with torch.no_grad():
        shared = shared_pushforward(network.eval(), x, v)
        torch.testing.assert_close(shared, pushforward(network, x.expand_as(v).contiguous(), v)[1])
