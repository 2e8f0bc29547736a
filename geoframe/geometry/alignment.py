"""Energy of vectors on right singular vectors, and what random vectors of the row space have (fig. 10, I.3)."""

from __future__ import annotations

import torch


def cumulative_energy(vectors: torch.Tensor, right: torch.Tensor, rank: int) -> torch.Tensor:
    """Share of a vector's squared length on the first k right singular vectors, for each k.

    Parameters
    ----------
    vectors : torch.Tensor
        (n, input).
    right : torch.Tensor
        v_i, (component, input), by descending singular value.
    rank : int
        Components from here on add nothing: their vectors are an arbitrary basis of a part of the null space.

    Returns
    -------
    torch.Tensor
        (n, component); the last one is the share in the row space. NaN for a zero vector.
    """
    energy = (vectors @ right.T).square()
    energy[:, rank:] = 0.0
    return energy.cumsum(1) / vectors.square().sum(1, keepdim=True)


def isotropic_energy(components: int, rank: int) -> torch.Tensor:
    """Expectation of `cumulative_energy` for an isotropic random vector of the row space: k / rank up to the rank."""
    if rank == 0:
        return torch.full((components,), float("nan"), dtype=torch.float64)
    return (torch.arange(1, components + 1, dtype=torch.float64) / rank).clamp(max=1)


def pulled_energy(values: torch.Tensor, rank: int, draws: torch.Tensor) -> torch.Tensor:
    """Mean of `cumulative_energy` over Jᵀz, isotropic random z: a gradient of random features, steered by J alone.

    Parameters
    ----------
    values : torch.Tensor
        Singular values, (component,).
    rank : int
        See `cumulative_energy`.
    draws : torch.Tensor
        Standard normal, (draw, component): z on the left singular vectors.

    Returns
    -------
    torch.Tensor
        (component,).
    """
    energy = (draws * values).square()
    energy[:, rank:] = 0.0
    return (energy.cumsum(1) / energy.sum(1, keepdim=True)).mean(0)


def cosine_to(vectors: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """|cos| of the angle between vectors (n, input) and a unit direction (input,); NaN for a zero vector."""
    lengths: torch.Tensor = vectors.norm(dim=1)
    return (vectors @ direction).abs() / lengths
