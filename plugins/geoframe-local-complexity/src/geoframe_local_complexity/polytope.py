"""The neighbourhood of an image: a cross-polytope with a random orthonormal frame."""

from __future__ import annotations

import torch


def orthonormal_frame(dim: int, n: int, rng: torch.Generator) -> torch.Tensor:
    """Draw `n` ≤ `dim` orthonormal vectors, uniformly.

    Returns
    -------
    torch.Tensor
        (n, dim), float64, on the CPU.
    """
    gaussian = torch.randn(dim, n, generator=rng, dtype=torch.float64)
    q, r = torch.linalg.qr(gaussian)
    signed: torch.Tensor = q * torch.sign(torch.diagonal(r))  # without the signs Q would not be uniform
    return signed.T


def vertices(x: torch.Tensor, frame: torch.Tensor, radius: float) -> torch.Tensor:
    """Return the vertices x ± r v_p of the cross-polytope around one image.

    Parameters
    ----------
    x : torch.Tensor
        (channel, height, width), raw [0, 1] pixels.
    frame : torch.Tensor
        (n, channel · height · width), orthonormal.
    radius : float
        r, raw-pixel L2.

    Returns
    -------
    torch.Tensor
        (2 n, channel, height, width), in x's dtype and on its device.
    """
    steps = radius * frame.reshape(-1, *x.shape).to(x.device)
    return (x.double() + torch.cat([steps, -steps])).to(x.dtype)
