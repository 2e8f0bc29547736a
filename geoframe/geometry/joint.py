"""Finite responses of several outputs of one network (features, logits, a margin), from the same forward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import torch

from geoframe.geometry.pushforward import Map
from geoframe.geometry.response import Directions, Displacements, blocks_of, energy_and_level

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
    """Measure the finite response of several outputs at x; see `geoframe.geometry.response.pair_responses`."""
    widths = [output.shape[1] for output in phi(x)]
    moves = Displacements(lambda points: torch.cat(phi(points), 1), x)
    energies, levels = [], []
    for rows, u in blocks_of(draw, pairs, block):
        count = rows.stop - rows.start
        found = [_by_output(*moves.ends(u, scale), widths)[..., :count] for scale in scales]
        energy, level = torch.stack(found, 3)  # each (output, pair, scale)
        energies.append((energy / energy.new_tensor(scales).square()).cpu())
        levels.append(level.sum(1).cpu())
    return JointResponses(torch.cat(energies, 1), torch.stack(levels).sum(0) / pairs)


def _by_output(features: torch.Tensor, rest: torch.Tensor, widths: list[int]) -> torch.Tensor:
    """Energy and level of each output and pair, means over both signs: (2, output, pair)."""
    split = zip(torch.split(features, widths, 1), torch.split(rest, widths, 1), strict=True)
    found = [torch.stack(energy_and_level(*ends)) for ends in split]
    return torch.stack(found, 1).view(2, len(widths), 2, len(features) // 2).mean(2)


def part(phi: JointMap, place: int) -> Map:
    """Return one output of a joint map as a map of its own."""
    return lambda x: phi(x)[place]
