"""Reading a loaded classifier as an MLP on flat images: affine layers and kinks in turn, for the exact sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from geoframe.errors import EncoderRefused
from geoframe.geometry.relu_line import Affine, Kink
from geoframe.piecewise import SILENT, chain, hooked, scale_and_shift

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


def sweep_layers(encoder: LoadedEncoder) -> list[Affine | Kink] | None:
    """Affine layers and kinks in turn, raw pixels to logits, float64; None where it isn't an MLP on flat images."""
    assert encoder.head is not None
    modules = [module for _, module in (*chain(encoder.network, ""), *chain(encoder.head, "head"))]
    if type(modules[0]) is not nn.Flatten or modules[0].start_dim != 1:
        return None
    layers: list[Affine | Kink] = []
    for module in modules:
        layer = None if hooked(module) else _layer(module)
        if layer is None:
            return None
        layers += layer
    merged = _alternating(layers)
    if not merged or not isinstance(merged[0], Affine):
        return None
    return [on_raw_pixels(encoder, merged[0]), *merged[1:]]


def _layer(module: nn.Module) -> list[Affine | Kink] | None:
    if type(module) in (*SILENT, nn.Flatten):
        return []
    if type(module) is nn.Linear:
        return [affine_of(module)]
    if type(module) is nn.BatchNorm1d:
        scale, shift = scale_and_shift(module)
        return [Affine(torch.diag(scale), shift)]
    if type(module) is nn.ReLU:
        return [Kink()]
    if type(module) is nn.LeakyReLU and 0 <= module.negative_slope <= 1:
        return [Kink(module.negative_slope)]
    return None


def affine_of(linear: nn.Linear) -> Affine:
    """Return a linear layer in float64."""
    weight = linear.weight.detach().double()
    bias: torch.Tensor | None = linear.bias  # a parameter, a buffer, or a tensor that pruning has put there
    return Affine(weight, weight.new_zeros(len(weight)) if bias is None else bias.detach().double())


def on_raw_pixels(encoder: LoadedEncoder, layer: Affine) -> Affine:
    """Fold the encoder's normalisation into its first layer."""
    like = torch.empty(encoder.input_shape, dtype=torch.float64, device=encoder.device)
    mean, std = (t[0].double().expand_as(like).flatten() for t in (encoder.mean, encoder.std))
    return Affine(layer.weight / std, layer.bias - layer.weight @ (mean / std))


def _compose(inner: Affine, outer: Affine) -> Affine:
    """Outer after inner."""
    diagonal = torch.equal(inner.weight, torch.diag(inner.weight.diagonal()))
    weight = outer.weight * inner.weight.diagonal() if diagonal else outer.weight @ inner.weight
    return Affine(weight, outer.weight @ inner.bias + outer.bias)


def _alternating(layers: list[Affine | Kink]) -> list[Affine | Kink]:
    """Merge neighbours, so that affine layers and kinks take turns, affine at the end."""
    merged: list[Affine | Kink] = []
    for layer in layers:
        last = merged[-1] if merged else None
        if isinstance(layer, Affine) and isinstance(last, Affine):
            merged[-1] = _compose(last, layer)
        elif isinstance(layer, Kink) and isinstance(last, Kink):
            merged[-1] = Kink(last.slope * layer.slope)  # 0 ≤ slopes ≤ 1: signs are kept
        else:
            merged.append(layer)
    if merged and isinstance(merged[-1], Kink):
        raise EncoderRefused("search='exact': a classifier whose logits are rectified has ties everywhere")
    return merged
