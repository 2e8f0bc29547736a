"""See the pre-activations of a network's ReLU modules, and tell whose sign differs between inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

# Where the derivative of each activation jumps.
KINKS: dict[type[nn.Module], tuple[float, ...]] = {nn.ReLU: (0.0,), nn.LeakyReLU: (0.0,), nn.ReLU6: (0.0, 6.0)}


class Sides:
    """For each call of an activation and each neuron: was any input below a kink, and was any above it?"""

    def __init__(self) -> None:
        self._below: list[torch.Tensor] = []
        self._above: list[torch.Tensor] = []
        self._call = 0

    def start_pass(self) -> None:
        """Count calls from 0 again: a new forward pass begins."""
        self._call = 0

    def see(self, values: torch.Tensor, kinks: tuple[float, ...]) -> None:
        """Add the pre-activations (n, …) of one call."""
        below = torch.stack([(values < kink).any(dim=0) for kink in kinks])
        above = torch.stack([(values > kink).any(dim=0) for kink in kinks])
        if self._call == len(self._below):
            self._below.append(below)
            self._above.append(above)
        else:
            self._below[self._call] |= below
            self._above[self._call] |= above
        self._call += 1

    def crossed(self) -> list[int]:
        """Count, for each call in order, the boundaries that have inputs strictly on both sides."""
        return [int((below & above).sum()) for below, above in zip(self._below, self._above, strict=True)]


@contextmanager
def watched(network: nn.Module) -> Iterator[Sides]:
    """Collect the sides of every pre-activation within the block; the hooks are gone after it, come what may."""
    sides = Sides()
    seen = [module for module in network.modules() if type(module) in KINKS]
    handles = [module.register_forward_pre_hook(_hook(sides, KINKS[type(module)])) for module in seen]
    try:
        yield sides
    finally:
        for handle in handles:
            handle.remove()


def _hook(sides: Sides, kinks: tuple[float, ...]) -> Any:
    def see(_module: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        sides.see(args[0].detach(), kinks)

    return see
