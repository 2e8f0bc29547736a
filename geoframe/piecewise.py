"""Reading a loaded encoder as a piecewise-linear network, layer by layer, for the exact search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs
import torch
import torch.nn.functional as F
from torch import nn

from geoframe.errors import EncoderRefused
from geoframe.geometry.enclosure import Bend, Map, Operation, Pool, Step, flattened
from geoframe.geometry.piecewise_line import PiecewiseLinear

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

KNOWN = "chains of Linear, Conv2d, BatchNorm, ReLU, LeakyReLU, pooling, Dropout and Flatten"
SILENT = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d)  # in eval mode


class _Unknown(Exception):
    """A layer that the exact search doesn't know; with what is unknown about it, where it isn't the type."""


@attrs.frozen(eq=False)
class _Weighted:
    """A layer `run(h, weight) + bias`; `spatial` is the number of dimensions behind the channel's."""

    run: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    weight: torch.Tensor
    bias: torch.Tensor
    spatial: int

    def map(self) -> Map:
        """Return it as a step."""
        weight, terms = self.weight, math.prod(self.weight.shape[1:])
        bias = self.bias.view(-1, *[1] * self.spatial)
        return Map(lambda h: self.run(h, weight), self._spread(terms), bias, terms)

    def _spread(self, terms: int) -> Operation:
        """Multiply by |W|, or by a little more: a CPU's float32 convolutions are five times as fast and sum directly.

        Other devices' may sum in transformed space, where small results have large relative errors.
        """
        size = self.weight.abs()
        if not self.spatial or size.device.type != "cpu":
            return lambda e: self.run(e, size)
        single = (size * (1 + (terms + 16) * torch.finfo(torch.float32).eps)).float()
        return lambda e: self.run(e.float(), single).double()


@attrs.frozen(eq=False)
class _Scale:
    """A factor and a shift for each channel, or one for all: normalisation, batch normalisation."""

    scale: torch.Tensor
    shift: torch.Tensor
    spatial: int

    def map(self) -> Map:
        """Return it as a step."""
        shape = (-1, *[1] * self.spatial)
        scale, size = self.scale.view(shape), self.scale.abs().view(shape)
        return Map(lambda h: h * scale, lambda e: e * size, self.shift.view(shape), 1)


_Layer = _Weighted | _Scale | Step


def piecewise_network(encoder: LoadedEncoder) -> PiecewiseLinear:
    """Return the classifier as linear maps and kinks, raw pixels to logits, float64.

    Raises
    ------
    EncoderRefused
        Where a layer isn't piecewise linear, or not one that the exact search knows; it is named.
    """
    assert encoder.head is not None
    layers: list[_Layer] = [_normalisation(encoder)]
    for name, module in (*chain(encoder.network, ""), *chain(encoder.head, "head")):
        try:
            read = _read(module, encoder)
        except _Unknown as detail:
            raise EncoderRefused(
                f"search='exact' is for {KNOWN}, but layer {name!r} of encoder {encoder.label!r} is a "
                f"{type(module).__name__}{detail}: use search='grid'"
            ) from None
        for layer in read:
            _append(layers, layer)
    return _assembled(layers, encoder)


def chain(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """Modules of nested sequences in the order in which they run; one that is used twice comes twice."""
    if type(module) is nn.Sequential and not hooked(module):
        for child, inner in module._modules.items():
            assert inner is not None
            yield from chain(inner, f"{name}.{child}" if name else child)
    else:
        yield name or type(module).__name__, module


def hooked(module: nn.Module) -> bool:
    """Whether hooks, or a forward of its own, may change what a module is given or returns."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def scale_and_shift(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> tuple[torch.Tensor, torch.Tensor]:
    """Factor and shift of each channel of a batch normalisation in eval mode, float64."""
    mean, variance = norm.running_mean, norm.running_var
    if not isinstance(mean, torch.Tensor) or not isinstance(variance, torch.Tensor):
        kind = type(norm).__name__
        raise EncoderRefused(f"search='exact': a {kind} without running statistics mixes the images of a batch")
    scale = (variance.double() + norm.eps).rsqrt()
    shift = -mean.double() * scale
    weight: torch.Tensor | None = norm.weight
    bias: torch.Tensor | None = norm.bias
    if weight is not None:
        scale, shift = scale * weight.double(), shift * weight.double()
    return scale, shift if bias is None else shift + bias.double()


def _normalisation(encoder: LoadedEncoder) -> _Scale:
    mean, std = encoder.mean.double().flatten(), encoder.std.double().flatten()
    return _Scale(1 / std, -mean / std, 2)


def _read(module: nn.Module, encoder: LoadedEncoder) -> list[_Layer]:
    if hooked(module):
        raise _Unknown(" with hooks or a forward of its own")
    if type(module) in SILENT:
        return []
    if type(module) is nn.Flatten:
        return [_flatten(module)]
    if type(module) is nn.BatchNorm1d:
        return [_Scale(*scale_and_shift(module), 0)]
    if type(module) is nn.BatchNorm2d:
        return [_Scale(*scale_and_shift(module), 2)]
    if type(module) is nn.Linear:
        return [_Weighted(F.linear, *_weights(module), 0)]
    if type(module) is nn.Conv2d:
        return [_convolution(module)]
    if type(module) in (nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.MaxPool2d, nn.AdaptiveMaxPool2d):
        return [_pooling(module, encoder)]
    if type(module) in (nn.ReLU6, nn.Hardtanh):
        return _clamp(module, encoder)
    return [_kink(module)]


def _weights(module: nn.Linear | nn.Conv2d) -> tuple[torch.Tensor, torch.Tensor]:
    weight = module.weight.detach().double().contiguous()
    bias = module.bias
    return weight, weight.new_zeros(len(weight)) if bias is None else bias.detach().double()


def _flatten(module: nn.Flatten) -> Step:
    if module.start_dim != 1 or module.end_dim != -1:
        raise _Unknown(" of some dimensions only")
    return flattened


def _convolution(module: nn.Conv2d) -> _Weighted:
    if module.padding_mode != "zeros":
        raise _Unknown(f" with padding_mode={module.padding_mode!r}")
    stride, padding, dilation, groups = module.stride, module.padding, module.dilation, module.groups

    def run(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.conv2d(h, weight, None, stride, padding, dilation, groups)

    return _Weighted(run, *_weights(module), 2)


def _pooling(module: nn.Module, encoder: LoadedEncoder) -> Step:
    everything = 4 * math.prod(encoder.input_shape[1:])  # a bound of what a window holds
    if isinstance(module, nn.AdaptiveAvgPool2d):
        return Map(module, module, None, everything)
    if isinstance(module, nn.AvgPool2d):
        if (module.divisor_override or 1) < 0:
            raise _Unknown(" with a negative divisor")
        return Map(module, module, None, everything)
    if isinstance(module, nn.AdaptiveMaxPool2d):
        return Bend(_with_places(nn.AdaptiveMaxPool2d(module.output_size, return_indices=True)))
    assert isinstance(module, nn.MaxPool2d)
    window = module.kernel_size, module.stride, module.padding, module.dilation
    return Bend(_with_places(nn.MaxPool2d(*window, return_indices=True, ceil_mode=module.ceil_mode)))


def _with_places(module: nn.Module) -> Pool:
    def pool(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maxima, places = module(value)
        return maxima, places

    return pool


def _kink(module: nn.Module) -> Bend:
    if type(module) is nn.ReLU:
        return Bend(slope=0.0)
    if type(module) is nn.LeakyReLU and 0 <= module.negative_slope <= 1:
        return Bend(slope=float(module.negative_slope))
    raise _Unknown


def _clamp(module: nn.Module, encoder: LoadedEncoder) -> list[_Layer]:
    """Two ReLUs: upper − max(0, upper − lower − max(0, z − lower))."""
    assert isinstance(module, nn.Hardtanh)
    low, high = module.min_val, module.max_val

    def shifted(scale: float, shift: float) -> _Scale:
        one = torch.ones(1, dtype=torch.float64, device=encoder.device)
        return _Scale(scale * one, shift * one, 0)

    return [shifted(1, -low), Bend(slope=0.0), shifted(-1, high - low), Bend(slope=0.0), shifted(-1, high)]


def _append(layers: list[_Layer], layer: _Layer) -> None:
    """Add a layer, folded into the last one where they merge."""
    last = layers[-1]
    if isinstance(layer, _Scale) and isinstance(last, _Weighted | _Scale) and _same_channels(last, layer):
        layers[-1] = _scaled(last, layer)
    elif isinstance(layer, Bend) and isinstance(last, Bend) and (layer.pool is None or last.pool is None):
        layers[-1] = Bend(layer.pool or last.pool, last.slope * layer.slope)  # slopes are in [0, 1]: signs are kept
    else:
        layers.append(layer)


def _same_channels(inner: _Weighted | _Scale, outer: _Scale) -> bool:
    return outer.scale.numel() == 1 or inner.spatial == outer.spatial


def _scaled(inner: _Weighted | _Scale, outer: _Scale) -> _Weighted | _Scale:
    shift = inner.bias if isinstance(inner, _Weighted) else inner.shift
    shift = shift * outer.scale + outer.shift
    if isinstance(inner, _Scale):
        return attrs.evolve(inner, scale=inner.scale * outer.scale, shift=shift)
    weight = inner.weight * outer.scale.view(-1, *[1] * (inner.weight.ndim - 1))
    return attrs.evolve(inner, weight=weight, bias=shift)


def _assembled(layers: list[_Layer], encoder: LoadedEncoder) -> PiecewiseLinear:
    last = layers[-1]
    if isinstance(last, Bend) and last.slope < 1:
        raise EncoderRefused("search='exact': a classifier whose logits are rectified has ties everywhere")
    if isinstance(last, _Weighted) and not last.spatial:
        layers, weight, bias = layers[:-1], last.weight, last.bias
    else:
        weight = torch.eye(_classes(encoder), dtype=torch.float64, device=encoder.device)
        bias = torch.zeros_like(weight[0])
    steps = [layer.map() if isinstance(layer, _Weighted | _Scale) else layer for layer in layers]
    bends = [i for i, step in enumerate(steps) if isinstance(step, Bend)]
    split = bends[0] if bends else len(steps)
    return PiecewiseLinear(steps[:split], steps[split:], weight, bias)


def _classes(encoder: LoadedEncoder) -> int:
    assert encoder.head is not None
    image = torch.zeros(1, *encoder.input_shape, device=encoder.device)
    return int(torch.as_tensor(encoder.head(encoder.network(image))).shape[1])
