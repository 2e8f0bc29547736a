"""The layer before the last activation: the features as they are before their ReLU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from geoframe.errors import EncoderRefused
from geoframe.loaded import LoadedEncoder

ACTIVATIONS = (
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.PReLU,
    nn.RReLU,
    nn.ELU,
    nn.SELU,
    nn.CELU,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
    nn.Softplus,
    nn.Sigmoid,
    nn.Tanh,
    nn.Hardtanh,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.LogSigmoid,
    nn.Softsign,
)


class _Call(NamedTuple):
    """One call of an activation: which module, and its how-manieth call in a forward pass."""

    name: str
    number: int


class _Before(nn.Module):
    """Runs a network, and returns what one call of one of its activations was given."""

    def __init__(self, network: nn.Module, call: _Call) -> None:
        super().__init__()
        self.network = network
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen: list[torch.Tensor] = []

        def keep(_module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            seen.append(inputs[0].clone() if len(seen) == self.call.number else inputs[0])  # it may work in place

        handle = self.network.get_submodule(self.call.name).register_forward_pre_hook(keep)
        try:
            self.network(x)
        finally:
            handle.remove()
        return seen[self.call.number].flatten(1)


def at_layer(encoder: LoadedEncoder, x: torch.Tensor, layer: str) -> LoadedEncoder:
    """Return the encoder itself for "post"; for "pre" see `before_activation`."""
    return before_activation(encoder, x) if layer == "pre" else encoder


def before_activation(encoder: LoadedEncoder, x: torch.Tensor) -> LoadedEncoder:
    """Return the encoder whose features are the input of the activation that makes this encoder's features.

    Dropout, flattening and whatever else changes no value may follow the activation. The weights are shared, the head
    is left out, and passes count for the encoder.

    Parameters
    ----------
    encoder : LoadedEncoder
    x : torch.Tensor
        (n, channel, height, width): an image on which the activation is looked for.

    Raises
    ------
    EncoderRefused
        Where the features are not the output of an activation module: of a linear layer, a normalisation, pooling,
        or an activation that the network applies as a function.
    """
    call = _last_activation(encoder, x)
    if call is None:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has no activation module (nn.ReLU, nn.GELU, …) whose output is its features, "
            "so there is no layer before it: use layer='post'"
        )
    fine = encoder.double()
    return _wrapped(encoder, call, [None if fine is None else _wrapped(fine, call, [])])


def _wrapped(encoder: LoadedEncoder, call: _Call, double: list[LoadedEncoder | None]) -> LoadedEncoder:
    network = _Before(encoder.network, call)
    return encoder.twin(network, double=double)


def _last_activation(encoder: LoadedEncoder, x: torch.Tensor) -> _Call | None:
    """Last call of an activation module whose output is the features, value for value."""
    calls: list[tuple[_Call, torch.Tensor]] = []
    counts: dict[str, int] = {}

    def record(name: str, output: torch.Tensor) -> None:
        calls.append((_Call(name, counts.get(name, 0)), output.detach().clone()))  # a later layer may work in place
        counts[name] = counts.get(name, 0) + 1

    handles = [
        module.register_forward_hook(lambda _module, _inputs, output, name=name: record(name, output))
        for name, module in encoder.network.named_modules()
        if isinstance(module, ACTIVATIONS)
    ]
    try:
        features = encoder.features(x)
    finally:
        for handle in handles:
            handle.remove()
    same = [call for call, out in calls if out.numel() == features.numel() and torch.equal(out.flatten(1), features)]
    return same[-1] if same else None
