"""The float64 copy is the same map, also where its depthwise convolutions are sums of shifted copies."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from geoframe.double import ShiftedProducts
from geoframe.geometry.pushforward import pushforward
from tests.networks import loaded


@pytest.mark.parametrize("stride", [1, (2, 3)])
@pytest.mark.parametrize("padding", [0, (2, 1)])
@pytest.mark.parametrize("dilation", [1, (1, 2)])
@pytest.mark.parametrize("bias", [True, False])
def test_shifted_products_are_a_depthwise_convolution(
    stride: int | tuple[int, int], padding: int | tuple[int, int], dilation: int | tuple[int, int], bias: bool
) -> None:
    convolution = nn.Conv2d(
        4, 4, (3, 2), stride=stride, padding=padding, dilation=dilation, groups=4, bias=bias, dtype=torch.float64
    )
    x, v = torch.rand(2, 2, 4, 11, 10, dtype=torch.float64)
    with torch.no_grad():
        for one, two in zip(
            pushforward(convolution, x, v), pushforward(ShiftedProducts(convolution), x, v), strict=True
        ):
            torch.testing.assert_close(one, two, rtol=1e-13, atol=1e-14)


def test_only_plain_depthwise_convolutions_are_replaced() -> None:
    hooked = nn.Conv2d(4, 4, 3, groups=4)
    hooked.register_forward_hook(lambda _module, _inputs, output: output + 1)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.Conv2d(4, 4, 3, groups=4),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(4, 4, 3, groups=4, padding=1, padding_mode="reflect"),
        hooked,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    encoder = loaded(net, shape=(3, 16, 16))
    twin = encoder.double()
    assert twin is not None
    assert [isinstance(module, ShiftedProducts) for module in twin.network] == [False, True, *5 * [False]]
    x = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(twin.features(x.double()).float(), encoder.features(x))
