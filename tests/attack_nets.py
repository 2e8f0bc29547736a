"""Classifiers whose nearest boundary is known."""

from __future__ import annotations

import torch

import geoframe as gf
from tests.networks import SHAPE, SIZE
from tests.rays import points

MEAN, STD = 0.4, 0.3


def linear(classes: int = 4, seed: int = 0) -> gf.ModuleEncoder:
    """Logits W (x − mean) / std + b of raw pixels x."""
    head = torch.nn.Linear(SIZE, classes)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        head.weight.copy_(torch.randn(classes, SIZE, generator=generator))
        head.bias.copy_(torch.randn(classes, generator=generator))
    return gf.ModuleEncoder(
        torch.nn.Flatten(), head=head, input_shape=SHAPE, mean=MEAN, std=STD, name=f"linear{classes}"
    )


def distances(encoder: gf.ModuleEncoder, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Class of each image, and its L2 distance to the nearest boundary: margin over the weights' difference."""
    weight, bias = encoder.head.weight.detach().double() / STD, encoder.head.bias.detach().double()
    logits = (x.double().flatten(1) - MEAN) @ weight.T + bias
    held = logits.argmax(1)
    margin = logits.gather(1, held[:, None]) - logits
    away = (weight[held][:, None] - weight[None]).norm(dim=2)
    return held, torch.where(away > 0, margin / away, torch.inf).min(1).values


def images(n: int, seed: int = 0) -> torch.Tensor:
    return points(n, seed)
