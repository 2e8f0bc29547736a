"""What the Jacobian at one point says: its squared norm, and where a linearised classifier changes class."""

from __future__ import annotations

from typing import NamedTuple

import torch

from geoframe.geometry.pushforward import Map, squared_norms
from geoframe.geometry.trace import pullbacks


class Crossings(NamedTuple):
    """Distances to the linearised boundaries of one class.

    Attributes
    ----------
    values : torch.Tensor
        (class − 1,), float64: q_j / ‖∇(f^y − f^j)‖; infinite where the margin has no gradient.
    classes : torch.Tensor
        (class − 1,), int64: j.
    """

    values: torch.Tensor
    classes: torch.Tensor


def linear_crossings(classifier: Map, x: torch.Tensor, logits: torch.Tensor, y: int, batch: int) -> Crossings:
    """Distance along the gradient at which each other class overtakes y in the linearisation at x.

    Parameters
    ----------
    classifier : callable
        (n, …) to logits (n, class), rows independent.
    x, logits : torch.Tensor
        The point (1, …) and its logits (class,).
    y : int
        The class predicted there.
    batch : int
        Gradients at once.
    """
    classes = torch.cat([torch.arange(y), torch.arange(y + 1, len(logits))]).to(logits.device)
    eye = torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    gradients = pullbacks(classifier, x, eye[y] - eye[classes], batch)
    margins = (logits[y] - logits[classes]).double().cpu()
    return Crossings(margins / squared_norms(gradients).sqrt().cpu(), classes.cpu())


def squared_jacobian(phi: Map, x: torch.Tensor, batch: int) -> float:
    """‖J_φ(x)‖² = tr JᵀJ, exactly: one pullback an output, a batch at a time, J never held whole."""
    width = phi(x).shape[1]
    total = 0.0
    for begin in range(0, width, batch):
        covectors = torch.zeros(min(batch, width - begin), width, dtype=x.dtype, device=x.device)
        covectors[torch.arange(len(covectors)), begin + torch.arange(len(covectors))] = 1
        total += float(squared_norms(pullbacks(phi, x, covectors, batch)).sum())
    return total
