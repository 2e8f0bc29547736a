"""The optimisers that a recipe can name: torch's own, with torch's defaults beside the recipe's fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch.nn import Parameter

if TYPE_CHECKING:
    from geoframe.training.recipe import Training


def optimiser_of(training: Training, parameters: Iterable[Parameter]) -> torch.optim.Optimizer:
    """Build a recipe's optimiser; weight decay is an L2 term of the gradient in all of them."""
    lr, decay = training.lr, training.weight_decay
    if training.optimiser == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=decay)
    if training.optimiser == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=lr, momentum=training.momentum, weight_decay=decay)
    return torch.optim.SGD(parameters, lr=lr, momentum=training.momentum, weight_decay=decay)
