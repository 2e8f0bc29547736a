"""The L2 ball around each image of a batch."""

from __future__ import annotations

import torch


def norms(v: torch.Tensor) -> torch.Tensor:
    """L2 norm of each image of a batch, (n, 1, 1, 1)."""
    found: torch.Tensor = torch.linalg.vector_norm(v.flatten(1), dim=1).reshape(-1, *(1,) * (v.ndim - 1))
    return found


def to_length(v: torch.Tensor, length: float) -> torch.Tensor:
    """Scale each image to a length; zero stays zero."""
    least = torch.finfo(v.dtype).tiny * max(1.0, length)  # so that the factor is finite
    return v * (length / norms(v).clamp_min(least))


def in_ball(v: torch.Tensor, radius: float) -> torch.Tensor:
    """Shorten what is longer than the radius."""
    return v * (radius / norms(v).clamp_min(radius))


def point_of_ball(like: torch.Tensor, radius: float, generator: torch.Generator) -> torch.Tensor:
    """Draw a point for each image, uniform in the ball around zero: on the CPU, whatever device it goes to."""
    direction = torch.randn(like.shape, generator=generator)
    share = torch.rand((len(like),) + (1,) * (like.ndim - 1), generator=generator) ** (1 / like[0].numel())
    return (to_length(direction, radius) * share).to(like.device)
