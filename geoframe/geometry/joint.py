"""Finite responses of several outputs of one network (features, logits, a margin), from the same forward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import torch

from geoframe.geometry.pushforward import Map, squared_norms
from geoframe.geometry.response import Directions, PairBatch, blocks_of

JointMap = Callable[[torch.Tensor], tuple[torch.Tensor, ...]]
"""(n, …) to one tensor (n, d) for each output."""


@attrs.frozen(eq=False)
class JointResponses:
    """Responses of every output along antipodal pairs.

    Attributes
    ----------
    energy : torch.Tensor
        N_i = [D_η(x, u_i) + D_η(x, −u_i)] / (2η²), (output, pair, scale), float64, on the CPU.
    level : torch.Tensor
        Mean of ‖f(x)‖² + ‖f(x ± ηu)‖², (output, scale), float64: what rounding is relative to.
    """

    energy: torch.Tensor
    level: torch.Tensor


def joint_responses(
    phi: JointMap, x: torch.Tensor, draw: Directions, pairs: int, scales: Sequence[float], block: int
) -> JointResponses:
    """Measure the finite response of several outputs; parameters as in `geoframe.geometry.response.pair_responses`."""
    batch = PairBatch(x, block)
    energies, levels = [], []
    for rows, u in blocks_of(draw, pairs, block):
        count = rows.stop - rows.start
        found = [_at_scale(phi(batch.at(u, scale)), block, count, scale) for scale in scales]
        energies.append(torch.stack([energy for energy, _ in found], 2).cpu())
        levels.append(torch.stack([level for _, level in found], 1).cpu())
    return JointResponses(torch.cat(energies, 1), torch.stack(levels).sum(0) / pairs)


def _at_scale(outputs: Sequence[torch.Tensor], block: int, count: int, scale: float) -> tuple[torch.Tensor, ...]:
    """Energies (output, pair) of the first `count` pairs of a block, and their levels' sum (output,)."""
    energies, levels = [], []
    for output in outputs:
        moved = squared_norms(output[1:] - output[:1]).view(2, block)[:, :count]
        lengths = squared_norms(output)
        energies.append(moved.mean(0) / scale**2)
        levels.append(lengths[0] * count + lengths[1:].view(2, block)[:, :count].mean(0).sum())
    return torch.stack(energies), torch.stack(levels)


def part(phi: JointMap, place: int) -> Map:
    """Return one output of a joint map as a map of its own."""
    return lambda x: phi(x)[place]
