"""Splitting a classifier where the papers do: features are what its last linear layer sees."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from geoframe.errors import FAILURES, EncoderRefused

OUTPUT = "output"  # the layer's name where the model's own output is the feature vector


class Split(NamedTuple):
    """A model in two parts: `head(features(x))` is the model's output."""

    features: nn.Module
    head: nn.Module | None
    layer: str


class _Call(NamedTuple):
    name: str
    seen: torch.Tensor
    made: torch.Tensor


def _is_linear(module: nn.Module) -> bool:
    """Fully connected, or a convolution that is one on a pooled map (timm's BiT heads)."""
    return isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and module.kernel_size == (1, 1))


def _linear_calls(model: nn.Module, x: torch.Tensor) -> tuple[list[_Call], object]:
    """Run the model once; return each call of a linear layer, in order, and the model's output."""
    calls: list[_Call] = []
    handles = [
        module.register_forward_hook(lambda _, inputs, made, name=name: calls.append(_Call(name, inputs[0], made)))
        for name, module in model.named_modules()
        if _is_linear(module)
    ]
    try:
        with torch.no_grad():
            output = model(x)
    finally:
        for handle in handles:
            handle.remove()
    return calls, output


def _example(input_shape: tuple[int, ...]) -> torch.Tensor:
    return torch.rand((1, *input_shape), generator=torch.Generator().manual_seed(0))


def _makes(call: _Call, output: object) -> bool:
    """Whether this call's result is the model's output, value for value (a view of it included)."""
    if not isinstance(output, torch.Tensor) or call.made.numel() != output.numel():
        return False
    return torch.equal(call.made.flatten(1), output) and (call.made.ndim == 2 or call.made.shape[2:].numel() == 1)


def find_head(model: nn.Module, input_shape: tuple[int, ...]) -> str | None:
    """Return the dotted name of the layer that makes the model's output, or None where no linear layer does."""
    calls, output = _linear_calls(model.eval(), _example(input_shape))
    if calls and _makes(calls[-1], output):
        return calls[-1].name
    return None


def _as_linear(layer: nn.Module) -> nn.Module:
    """Return the head as a map of vectors: a 1×1 convolution turns into the linear layer that it is."""
    if not isinstance(layer, nn.Conv2d):
        return layer
    linear = nn.Linear(layer.in_channels, layer.out_channels, bias=layer.bias is not None)
    with torch.no_grad():
        linear.weight.copy_(layer.weight.flatten(1))
        if layer.bias is not None:
            linear.bias.copy_(layer.bias)
    return linear.eval()


def split_head(model: nn.Module, input_shape: tuple[int, ...], label: str = "model") -> Split:
    """Split a classifier into the map to what its last linear layer sees, and that layer.

    The layer is found by running the model once, in eval mode, so it need not have a known name. It is replaced
    in `model` by an identity, and the two parts are checked against the whole.

    Parameters
    ----------
    model : torch.nn.Module
        Images (n, channel, height, width) to logits (n, class). It is changed: the features are this object.
    input_shape : tuple of int
        (channel, height, width).
    label : str
        The encoder's name, for messages.

    Raises
    ------
    EncoderRefused
        The output isn't made by a linear layer, or the parts don't give the model's output.
    """
    x = _example(input_shape)
    try:
        calls, output = _linear_calls(model.eval(), x)
    except FAILURES as error:  # the user's code can raise anything
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise EncoderRefused(f"encoder {label!r} fails on images of shape {tuple(input_shape)}: {reason}") from error
    if isinstance(output, torch.Tensor) and not bool(torch.isfinite(output).all()):
        raise EncoderRefused(
            f"encoder {label!r} returns NaN or infinite values: check its weights and its normalisation (mean, std)"
        )
    if not calls or not _makes(calls[-1], output):
        raise EncoderRefused(
            f"encoder {label!r}: its output is not made by a linear layer, so there is no classifier to split off: "
            "pass head=None (--head none) to measure the output itself, or give features and head to ModuleEncoder"
        )
    name = calls[-1].name
    layer = model.get_submodule(name)
    head = _as_linear(layer)
    features: nn.Module = nn.Identity() if not name else model
    if name:
        model.set_submodule(name, nn.Identity())
    _check_parts(features, head, x, output, label, name)
    return Split(features, head, name)


def _check_parts(features: nn.Module, head: nn.Module, x: torch.Tensor, output: object, label: str, name: str) -> None:
    """Refuse a model that uses its head's weights elsewhere, so that the identity doesn't give the head's input."""
    problem = "the parts don't give the model's output"
    try:
        with torch.no_grad():
            parts = head(features(x))
        same = parts.shape == torch.as_tensor(output).shape and torch.allclose(
            parts, torch.as_tensor(output), rtol=1e-4, atol=1e-5, equal_nan=True
        )
    except FAILURES as error:
        same, problem = False, str(error)
    if not same:
        raise EncoderRefused(
            f"encoder {label!r} can't be split at {name!r} ({problem}): "
            "pass head=None (--head none), or give features and head to ModuleEncoder"
        )
