"""Singular values and vectors of a loaded encoder's Jacobian at an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from geoframe.errors import BadInput
from geoframe.geometry.spectrum import Spectrum, decompose, jacobian, leading

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

LARGEST_BASIS = 4096  # inputs with more pixels have no complete basis here: it would take d² numbers


def spectrum_at(encoder: LoadedEncoder, x: torch.Tensor, complete: bool = False) -> Spectrum:
    """Decompose the Jacobian of the features at one raw-pixel image (1, channel, height, width), in float64.

    Where the encoder can't run in float64, J is taken in float32 and decomposed in float64.
    """
    fine = encoder.double() or encoder
    matrix = jacobian(fine.features, x.to(fine.dtype), encoder.micro_batch)
    encoder.count(2 * min(matrix.shape))
    return decompose(matrix, complete)


def basis_at(encoder: LoadedEncoder, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Complete basis of input space, (pixel, pixel), by descending singular value, and the values: 0 beyond J's."""
    found = spectrum_at(encoder, x, complete=True)
    values = found.values.new_zeros(len(found.right))
    values[: len(found.values)] = found.values
    return found.right, values


def leading_at(encoder: LoadedEncoder, x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Leading right singular vectors (k, pixel) and values (k,) of a large encoder, J never formed.

    As many as J has where k is not less than its smaller side.
    """
    fine = encoder.double() or encoder
    x = x.to(fine.dtype)
    if k >= min(fine.features(x).shape[1], x[0].numel()):
        whole = spectrum_at(encoder, x)
        return whole.right[:k], whole.values[:k]
    found = leading(fine.features, x, k)
    return found.right, found.values


class Chosen(NamedTuple):
    """Right singular vectors that a probe walks along.

    Attributes
    ----------
    place : torch.Tensor
        (direction,), int64: which of the complete basis they are, 0 being that of the largest value.
    vectors : torch.Tensor
        (direction, pixel).
    values : torch.Tensor
        (direction,): 0 from J's smaller side on; before it, below the numerical rank, rounding.
    """

    place: torch.Tensor
    vectors: torch.Tensor
    values: torch.Tensor


def chosen_at(probe: str, encoder: LoadedEncoder, x: torch.Tensor, n: int | None) -> Chosen:
    """Right singular vectors for a probe to walk along.

    Parameters
    ----------
    probe : str
        Its name, for the message.
    encoder : LoadedEncoder
    x : torch.Tensor
        (1, channel, height, width).
    n : int or None
        None is the complete basis of input space by descending value; a number takes that many of it, evenly spaced,
        the first one always (of inputs with more than 4096 pixels: the leading ones).

    Raises
    ------
    BadInput
        Where the complete basis is too large.
    """
    pixels = x[0].numel()
    if pixels <= LARGEST_BASIS:
        vectors, values = basis_at(encoder, x)
        chosen = torch.linspace(0, pixels - 1, min(n or pixels, pixels)).round().long()
        return Chosen(chosen, vectors[chosen], values[chosen])
    if n is None:
        raise BadInput(f"{probe}: {pixels} pixels are too many for a complete basis: give n_directions")
    vectors, values = leading_at(encoder, x, n)
    return Chosen(torch.arange(len(values)), vectors, values)
