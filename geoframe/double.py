"""The float64 copy of a loaded encoder."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import nn

from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward
from geoframe.numerics import exact_numerics
from geoframe.piecewise import hooked

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

FINE_STEP = 1e-9  # of an image's length: 1/60 of float32's rounding, and a million times float64's


def double_copy(encoder: LoadedEncoder) -> LoadedEncoder | None:
    """Return a float64 copy without head, whose passes count for the encoder; None where it can't run in float64."""
    if encoder.device.type == "mps":  # no float64 there
        return None
    try:
        network = copy.deepcopy(encoder.network).double()
        if encoder.device.type == "cpu":
            _shift_depthwise(network)
        twin = encoder.twin(network, mean=encoder.mean.double(), std=encoder.std.double(), dtype=torch.float64)
        with exact_numerics():
            works = _resolves_float64(twin)
    except Exception:  # of any kind, as a rule of constants or kernels that are float32 only
        return None
    return twin if works else None


class ShiftedProducts(nn.Module):
    """A depthwise convolution as a sum of shifted copies: torch's own in float64 takes the channels one by one.

    A tenth of the time on a CPU; the same sum in another order.
    """

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.bias = convolution.weight, convolution.bias
        self.stride, self.dilation = convolution.stride, convolution.dilation
        top, left = (int(side) for side in convolution.padding)
        self.padding = (left, left, top, top)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve (n, channel, height, width)."""
        x = nn.functional.pad(x, self.padding)
        size = [
            (length - dilation * (taps - 1) - 1) // stride + 1
            for length, taps, stride, dilation in zip(
                x.shape[2:], self.weight.shape[2:], self.stride, self.dilation, strict=True
            )
        ]
        total = None if self.bias is None else self.bias.view(1, -1, 1, 1)
        for row in range(self.weight.shape[2]):
            for column in range(self.weight.shape[3]):
                rows, columns = (
                    slice(tap * dilation, tap * dilation + stride * (length - 1) + 1, stride)
                    for tap, length, stride, dilation in zip(
                        (row, column), size, self.stride, self.dilation, strict=True
                    )
                )
                part = x[:, :, rows, columns] * self.weight[:, 0, row, column].view(1, -1, 1, 1)
                total = part if total is None else total + part
        assert total is not None
        return total


def _shift_depthwise(network: nn.Module) -> None:
    for name, module in list(network.named_modules()):
        if _is_depthwise(module):
            network.set_submodule(name, ShiftedProducts(module))


def _is_depthwise(module: nn.Module) -> TypeGuard[nn.Conv2d]:
    return (
        type(module) is nn.Conv2d
        and 1 < module.groups == module.in_channels == module.out_channels
        and module.padding_mode == "zeros"
        and not isinstance(module.padding, str)
        and not hooked(module)
    )


def _resolves_float64(twin: LoadedEncoder) -> bool:
    """Whether steps far below float32's resolution add up: a layer that computes in float32 rounds them away."""
    shape, place = twin.input_shape, twin.device
    generator = torch.Generator().manual_seed(0)
    x = torch.full((1, *shape), 0.5, dtype=torch.float64) + 0.01 * torch.randn(1, *shape, generator=generator)
    x, u = x.to(place), unit_directions(shape, 0, "double", 0, 1).double().to(place)
    step = FINE_STEP * float(x.norm())
    features = twin._forward(torch.cat([x, x + step * u, x + 2 * step * u]))
    if features.dtype != torch.float64:
        return False
    once, twice = features[1] - features[0], features[2] - features[0]
    if not bool(once.any()):  # flat, or rounded away
        return not bool(pushforward(twin._forward, x, u)[1].any())
    return float((twice - 2 * once).norm()) <= 0.1 * float(once.norm())
