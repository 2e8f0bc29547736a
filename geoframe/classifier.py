"""A loaded classifier as bounds need it: logits in float64, and the matrix of its last layer."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import attrs
import torch
from torch import nn

from geoframe.errors import EncoderRefused

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

_AFFINE = 1e3  # units of rounding that an affine head's values may differ by


def fine_classifier(encoder: LoadedEncoder) -> LoadedEncoder:
    """Return a float64 copy with its head, made once, whose passes count for the encoder.

    The encoder itself where it, or its head, can't run in float64.
    """
    return encoder.derived(_fine_classifier)


def _fine_classifier(encoder: LoadedEncoder) -> LoadedEncoder:
    fine = encoder.double()
    if fine is None or encoder.head is None:
        return encoder
    head = copy.deepcopy(encoder.head).double()
    twin = attrs.evolve(fine, head=head, passes=0.0, on_pass=encoder.count, double=[fine])
    x = torch.full((1, *encoder.input_shape), 0.5, dtype=torch.float64, device=encoder.device)
    try:
        return twin if twin.logits(x).dtype == torch.float64 else encoder
    except (RuntimeError, TypeError, NotImplementedError):  # constants or kernels that are float32 only
        return encoder


def head_weight(encoder: LoadedEncoder, x: torch.Tensor) -> torch.Tensor:
    """Matrix W (class, feature) of a head that is affine, f = Wφ + b, whatever it is made of.

    It is read off plain linear layers, and made of the values at 0 and unit vectors otherwise.

    Parameters
    ----------
    encoder : LoadedEncoder
    x : torch.Tensor
        (n, channel, height, width), in the encoder's precision: images whose features are tried.

    Raises
    ------
    EncoderRefused
        Where the head is not affine, so that there is no such matrix.
    """
    assert encoder.head is not None
    plain = _plain_weight(encoder.head)
    if plain is not None:
        return plain.to(x.dtype)
    features = encoder.features(x)
    unit = torch.eye(features.shape[1], dtype=features.dtype, device=features.device)
    bias = encoder.head(torch.zeros_like(unit[:1]))
    weight: torch.Tensor = (encoder.head(unit) - bias).T
    logits = encoder.head(features)
    scale = features.abs() @ weight.abs().T + bias.abs()
    if ((features @ weight.T + bias - logits).abs() > _AFFINE * torch.finfo(logits.dtype).eps * scale).any():
        raise EncoderRefused(
            f"encoder {encoder.label!r}: its head is not a linear layer, but the bounds need its matrix"
        )
    return weight


def _plain_weight(head: nn.Module) -> torch.Tensor | None:
    """W of a linear layer, or the product of several; None of anything that may do more than its class says.

    Values at unit vectors would lose it under a large bias: (W + b) − b, in float32, is W to the digits that b leaves.
    """
    if head._forward_hooks or head._forward_pre_hooks or "forward" in vars(head):
        return None
    if type(head) is nn.Linear:
        return head.weight.detach()
    if type(head) is not nn.Sequential:
        return None
    parts = [_plain_weight(part) for part in head if type(part) not in (nn.Identity, nn.Dropout) or part.training]
    matrices = [part.double() for part in parts if part is not None]
    if not parts or len(matrices) < len(parts):
        return None
    product = matrices[0]
    for matrix in matrices[1:]:
        product = matrix @ product
    return product
