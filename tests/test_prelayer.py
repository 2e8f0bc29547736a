"""The layer before the last activation is found whatever follows it, and refused where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from geoframe.errors import EncoderRefused
from geoframe.geometry.spectrum import jacobian
from geoframe.prelayer import before_activation
from tests.networks import SHAPE, SIZE, conv_net, loaded, relu_net


class Reused(nn.Module):
    """One activation module that is called twice, as torchvision's residual blocks do."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Linear(SIZE, 9), nn.Linear(9, 7), nn.ReLU(inplace=True)

    def before(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.act(self.first(x.flatten(1))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.before(x))


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(SIZE, 9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.flatten(1)).relu()


def chain(*after: nn.Module) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    before = nn.Sequential(nn.Flatten(), nn.Linear(SIZE, 20), nn.ReLU(), nn.Linear(20, 12))
    return before, nn.Sequential(before, *after)


@pytest.mark.parametrize(
    "after",
    [
        (nn.ReLU(),),
        (nn.ReLU(inplace=True), nn.Dropout(0.3)),
        (nn.LeakyReLU(0.2), nn.Unflatten(1, (12, 1, 1)), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        (nn.GELU(), nn.Identity()),
        (nn.Tanh(),),
    ],
)
def test_the_input_of_the_last_activation(after: tuple[nn.Module, ...]) -> None:
    before, net = chain(*after)
    encoder = loaded(net, mean=0.4, std=0.5)
    x = torch.rand(5, *SHAPE)
    with torch.no_grad():
        found = before_activation(encoder, x[:1])
        torch.testing.assert_close(found.features(x), before((x - 0.4) / 0.5))
        fine = found.double()
        assert fine is not None
        assert fine.features(x.double()).dtype == torch.float64
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in encoder.network.modules())


def test_an_activation_that_is_called_twice_and_in_place() -> None:
    torch.manual_seed(1)
    net = Reused()
    encoder = loaded(net)
    x = torch.rand(1, *SHAPE)
    seen: list[float] = []
    encoder.on_pass = seen.append
    with torch.no_grad():
        found = before_activation(encoder, x)
        torch.testing.assert_close(found.features(x), net.before(x))
        want = net.second.weight @ (net.first.weight * (net.first(x.flatten(1)) > 0).T)
        torch.testing.assert_close(jacobian(found.features, x, 4), want)
        value, tangent = found.pushforward(x, torch.ones_like(x))
        torch.testing.assert_close(tangent[0], want.sum(1))
        torch.testing.assert_close(value, net.before(x))
    assert sum(seen) == encoder.passes > 0


@pytest.mark.parametrize("net", [relu_net(), nn.Sequential(conv_net(), nn.ReLU(), nn.Linear(32, 4)), Functional()])
def test_refused_where_no_activation_makes_the_features(net: nn.Module) -> None:
    shape = (3, 6, 6) if any(isinstance(m, nn.Conv2d) for m in net.modules()) else SHAPE
    encoder = loaded(net, shape)
    with torch.no_grad(), pytest.raises(EncoderRefused, match=r"'toy' has no activation module.*layer='post'"):
        before_activation(encoder, torch.rand(1, *shape))
