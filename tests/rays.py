"""Classifiers whose boundary is known."""

from __future__ import annotations

import torch

import geoframe as gf
from tests.networks import SHAPE


class SquaredDistance(torch.nn.Module):
    def __init__(self, centre: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("centre", centre.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) - self.centre).square().sum(1, keepdim=True)


def two_classes(slope: float, offset: float) -> torch.nn.Linear:
    head = torch.nn.Linear(1, 2)
    head.weight.data, head.bias.data = torch.tensor([[slope], [0.0]]), torch.tensor([offset, 0.0])
    return head


def half_space(w: torch.Tensor, b: float) -> gf.ModuleEncoder:
    """Class 0 where w·x + b > 0; a chain of linear layers, so that it can be searched exactly."""
    project = torch.nn.Linear(len(w), 1, bias=False)
    project.weight.data = w[None].clone()
    flat = torch.nn.Sequential(torch.nn.Flatten(), project)
    return gf.ModuleEncoder(flat, head=two_classes(1.0, b), input_shape=SHAPE)


def ball(centre: torch.Tensor, radius: float) -> gf.ModuleEncoder:
    """Class 0 inside the ball."""
    return gf.ModuleEncoder(SquaredDistance(centre), head=two_classes(-1.0, radius**2), input_shape=SHAPE)


def points(n: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(n, *SHAPE, generator=torch.Generator().manual_seed(seed))
