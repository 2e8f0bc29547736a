"""Encoders whose response is known, and ones that misbehave; shared by the tests."""

from __future__ import annotations

import math

import torch

from geoframe.encoder import Network, Shape
from geoframe.loaded import LoadedEncoder
from geoframe.probeset import Images

SHAPE: Shape = (1, 6, 6)
SIZE = math.prod(SHAPE)


class Linear(torch.nn.Module):
    def __init__(self, size: int = SIZE, out: int = 5) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(size, out, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ self.weight


class Square(torch.nn.Module):
    """(a·x)² with |a| = 1: r = 1 + 3η² / (4 (a·x)² (d + 2))."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1).sum(1, keepdim=True) / math.sqrt(x[0].numel())) ** 2


class Sine(torch.nn.Module):
    """(sin, cos)(ω x₁): r = (2 − 2 E cos(ωηs)) d / (ωη)², s one coordinate of the sphere."""

    def __init__(self, omega: float = 40.0) -> None:
        super().__init__()
        self.omega = omega

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        phase = self.omega * x.flatten(1)[:, :1]
        return torch.cat([phase.sin(), phase.cos()], 1)


def relu_net(size: int = SIZE, seed: int = 0) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(size, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)
        )


def conv_net(seed: int = 0) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.GELU(),
            torch.nn.Conv2d(8, 8, 3, stride=2),
            torch.nn.SiLU(),
            torch.nn.AdaptiveAvgPool2d(2),
            torch.nn.Flatten(),
        )


def loaded(network: torch.nn.Module, shape: Shape = SHAPE, **fields: object) -> LoadedEncoder:
    """Load a network that the test owns."""
    built = Network(features=network, input_shape=shape, **fields)  # type: ignore[arg-type]
    return LoadedEncoder.from_network(built, "toy")


def some_images(n: int = 3, shape: Shape = SHAPE, seed: int = 0) -> Images:
    generator = torch.Generator().manual_seed(seed)
    return Images(tuple(str(i) for i in range(n)), (-1,) * n, torch.rand(n, *shape, generator=generator))
