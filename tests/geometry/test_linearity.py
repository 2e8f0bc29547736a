"""Distance up to which a map is like its linearisation, against closed forms and the plain loop."""

from __future__ import annotations

import math

import pytest
import torch

from geoframe.geometry.linearity import cosine, first_unlike
from geoframe.geometry.pushforward import pushforward
from geoframe.geometry.rays import NotFinite

STEPS = torch.linspace(0, 2, 201, dtype=torch.float64)


def circle(x: torch.Tensor) -> torch.Tensor:
    """Angle to a point of the unit circle; linearised at 0: (1, α)."""
    return torch.stack([x[:, 0].cos(), x[:, 0].sin()], 1)


def test_cosine_of_zeros() -> None:
    one = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    other = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    assert cosine(one, other).tolist() == [1.0, 0.0, 0.0, -1.0]


def test_a_circle_leaves_its_tangent_where_trigonometry_says() -> None:
    """cos of the angle between (cos α, sin α) and (1, α) is cos(α − arctan α)."""
    x = torch.zeros(1, 1, dtype=torch.float64)
    directions = torch.tensor([[1.0], [-1.0], [2.0], [0.0]], dtype=torch.float64)
    changes = pushforward(circle, x.expand(4, 1).contiguous(), directions)[1]
    alpha = torch.linspace(0, 2, 200_001, dtype=torch.float64)
    exact = float(alpha[(alpha - alpha.atan()).cos() < 0.95][0])
    for batch in (1, 3, 1000):
        found = first_unlike(circle, x, directions, changes, STEPS, 0.95, batch)
        assert found.tolist() == [math.ceil(exact * 100), math.ceil(exact * 100), math.ceil(exact * 50), 201]


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_the_plain_loop(batch: int) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3)).double()
    x, directions = torch.rand(1, 6).double(), 3 * torch.randn(15, 6).double()
    with torch.no_grad():
        changes = pushforward(net, x.expand(15, 6).contiguous(), directions)[1]
        found = first_unlike(net, x, directions, changes, STEPS, 0.95, batch)
        for ray, v in enumerate(directions):
            want = len(STEPS)
            for k, alpha in enumerate(STEPS):
                a, b = net(x + alpha * v)[0], net(x)[0] + alpha * changes[ray]
                if float(torch.nn.functional.cosine_similarity(a, b, dim=0)) < 0.95:
                    want = k
                    break
            assert int(found[ray]) == want
    assert 0 < int((found < 201).sum()) < 15


def test_what_is_not_finite() -> None:
    x = torch.zeros(1, 1)
    with pytest.raises(NotFinite):
        first_unlike(lambda t: t.log1p(), x, -torch.ones(1, 1), -torch.ones(1, 1), STEPS.float(), 0.95, 10)
