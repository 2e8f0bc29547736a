"""How far a map stays close to its linearisation along rays (Neural Expansion, §5.1.3, A.4)."""

from __future__ import annotations

import torch

from geoframe.geometry.pushforward import Map
from geoframe.geometry.rays import NotFinite


def cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Cosine of the angle between rows, (…, d) to (…); 1 between two zeros, 0 between a zero and anything else."""
    lengths = one.norm(dim=-1), other.norm(dim=-1)
    product = lengths[0] * lengths[1]
    cos = (one * other).sum(-1) / torch.where(product > 0, product, 1.0)
    return torch.where((lengths[0] == 0) & (lengths[1] == 0), 1.0, cos)


def first_unlike(
    phi: Map,
    x: torch.Tensor,
    directions: torch.Tensor,
    changes: torch.Tensor,
    steps: torch.Tensor,
    threshold: float,
    batch: int,
) -> torch.Tensor:
    """Find the first step at which cos(φ(x + αd), φ(x) + αJd) is below the threshold; finished rays are dropped.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, d), rows independent.
    x : torch.Tensor
        (1, …).
    directions, changes : torch.Tensor
        d, (ray, …), and J d, (ray, d).
    steps : torch.Tensor
        α, (step,), ascending from 0.
    threshold : float
        Least cosine.
    batch : int
        Points evaluated at once.

    Returns
    -------
    torch.Tensor
        (ray,), int64: index of the step; len(steps) where the map stays like its linearisation.

    Raises
    ------
    NotFinite
        Where the map is NaN or infinite.
    """
    value = phi(x)
    found = torch.full((len(directions),), len(steps), device=x.device)
    active = torch.arange(len(directions), device=x.device)
    done = 0
    while len(active) and done < len(steps):
        width = max(1, min(batch // len(active), len(steps) - done))
        alpha = steps[done : done + width]
        unlike = torch.cat(
            [
                _unlike(
                    phi, x, directions[rays], value[:, None] + alpha[:, None] * changes[rays, None], alpha, threshold
                )
                for rays in torch.split(active, batch)
            ]
        )
        hit = unlike.any(1)
        found[active[hit]] = done + unlike[hit].int().argmax(1)
        active, done = active[~hit], done + width
    return found


def _unlike(
    phi: Map, x: torch.Tensor, directions: torch.Tensor, linear: torch.Tensor, alpha: torch.Tensor, threshold: float
) -> torch.Tensor:
    """Whether map and linearisation, (ray, step, d), differ by more than the threshold, (ray, step)."""
    points = torch.addcmul(x[:, None], directions[:, None], alpha.view(-1, *[1] * (x.ndim - 1)))
    true = phi(points.flatten(0, 1)).view_as(linear)
    if not true.isfinite().all():
        raise NotFinite("its output isn't finite along a ray")
    return cosine(true, linear) < threshold
