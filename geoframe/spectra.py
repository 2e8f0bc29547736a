"""Singular values and vectors of a loaded encoder's Jacobian at an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from geoframe.geometry.spectrum import Spectrum, decompose, jacobian, leading

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


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
