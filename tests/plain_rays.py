"""A.4's step search, written plainly: all rays one step at a time, none dropped."""

from __future__ import annotations

from collections.abc import Callable

import torch

Classifier = Callable[[torch.Tensor], torch.Tensor]


def plain_search(
    classifier: Classifier, start: torch.Tensor, direction: torch.Tensor, held: torch.Tensor, steps: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last step before the class first changes, and whether it never does."""
    alive = classifier(start).argmax(1) == held
    gi = torch.zeros(len(held), dtype=torch.float64)
    for t in steps[1:]:
        points = start + t.to(start.dtype) * direction
        alive = alive & (classifier(points).argmax(1) == held)
        gi[alive] = t
    return gi, alive
