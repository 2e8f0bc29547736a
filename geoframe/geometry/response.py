"""Finite responses and their linear prediction along antipodal pairs of directions (A.1, A.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from geoframe.geometry.pushforward import Map, squared_norms

Directions = Callable[[int, int], torch.Tensor]
Push = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def even_blocks(total: int, largest: int) -> int:
    """Size of equal blocks, at most `largest`, that cover `total` with the least padding."""
    largest = max(1, min(largest, total))
    return math.ceil(total / math.ceil(total / largest))


def blocks_of(draw: Directions, total: int, size: int) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield directions in blocks of exactly `size`: the last is padded with zero vectors.

    Every block has the same shape, since another batch size gives other last bits.
    """
    for start in range(0, total, size):
        stop = min(start + size, total)
        block = draw(start, stop)
        missing = size - (stop - start)
        if missing:
            block = torch.cat([block, block.new_zeros((missing, *block.shape[1:]))])
        yield slice(start, stop), block


def _layout(x: torch.Tensor) -> torch.memory_format:
    return torch.channels_last if x.ndim == 4 else torch.contiguous_format


class PairBatch:
    """Batch [x, x + ηu₁…, x − ηu₁…], with one buffer for all scales and blocks.

    Φ(x) is computed in the same batch as Φ(x ± ηu), since batches differ in their last bits.
    """

    def __init__(self, x: torch.Tensor, pairs: int) -> None:
        self.x, self.pairs = x, pairs
        shape = (1 + 2 * pairs, *x.shape[1:])
        self.buffer = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=_layout(x))
        self.buffer[0] = x[0]

    def at(self, u: torch.Tensor, scale: float) -> torch.Tensor:
        """Fill the buffer for directions u (pairs, …) at one scale η."""
        torch.add(self.x, u, alpha=scale, out=self.buffer[1 : 1 + self.pairs])
        torch.sub(self.x, u, alpha=scale, out=self.buffer[1 + self.pairs :])
        return self.buffer


def displacements(phi: Map, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Φ(x ± ηu) − Φ(x), (2·pairs, d), and ‖Φ‖² of every row of the batch."""
    features = phi(batch)
    return features[1:] - features[:1], squared_norms(features)


def pair_responses(
    phi: Map, x: torch.Tensor, draw: Directions, pairs: int, scales: Sequence[float], block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure the finite response along antipodal pairs, all scales with the same directions.

    Parameters
    ----------
    phi : callable
        Encoder, (n, …) to (n, d).
    x : torch.Tensor
        The image, (1, …), raw pixels.
    draw : callable
        `draw(start, stop)` gives unit directions start…stop−1, (stop − start, …), on x's device.
    pairs, block : int
        Number of base directions, and how many go into one batch of 1 + 2·block rows.
    scales : sequence of float
        Perturbation sizes η, raw-pixel L2.

    Returns
    -------
    response : torch.Tensor
        N_i = [D_η(x, u_i) + D_η(x, −u_i)] / (2η²), (pairs, scale), float64, on the CPU.
    level : torch.Tensor
        Mean of ‖Φ(x)‖² + ‖Φ(x ± ηu)‖² over the pairs, (scale,), float64: what rounding is relative to.
    """
    batch = PairBatch(x, block)
    response, level = [], []
    for rows, u in blocks_of(draw, pairs, block):
        count = rows.stop - rows.start
        energies, norms = [], []
        for scale in scales:
            moved, squares = displacements(phi, batch.at(u, scale))
            both = squared_norms(moved).view(2, block)[:, :count]
            energies.append(both.mean(0) / scale**2)
            norms.append(squares[0] * count + squares[1:].view(2, block)[:, :count].mean(0).sum())
        response.append(torch.stack(energies, 1).cpu())
        level.append(torch.stack(norms).cpu())
    return torch.cat(response), torch.stack(level).sum(0) / pairs


def block_responses(
    phi: Map, x: torch.Tensor, u: torch.Tensor, scales: Sequence[float], rows: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure the finite response along one block of pairs at several scales, which share batches.

    Parameters
    ----------
    phi, x
        As in `pair_responses`.
    u : torch.Tensor
        Unit directions (pair, …).
    scales : sequence of float
    rows : int
        Images in a batch: 1 + 2 · pairs · scales of them, so 3 at least.

    Returns
    -------
    response, level : torch.Tensor
        (pair, scale) and (scale,), float64, on the CPU: see `pair_responses`.
    """
    size = even_blocks(len(u), (rows - 1) // 2)
    together = max(1, (rows - 1) // (2 * size))
    energies, levels = [], []
    for part in torch.split(u, size):
        found = []
        for start in range(0, len(scales), together):
            steps = u.new_tensor(scales[start : start + together]).view(-1, 1, *[1] * (u.ndim - 1))
            moves = (steps * part).flatten(0, 1)
            batch = torch.cat([x, x + moves, x - moves]).contiguous(memory_format=_layout(x))
            moved, squares = displacements(phi, batch)
            shape = (2, len(steps), len(part))
            energy = squared_norms(moved).view(shape).mean(0).T / steps.flatten().square()
            found.append(torch.stack([energy, squares[0] + squares[1:].view(shape).mean(0).T]))
        energy, level = torch.cat(found, 2)
        energies.append(energy.cpu())
        levels.append(level.cpu())
    return torch.cat(energies), torch.cat(levels).mean(0)


def linear_predictions(push: Push, x: torch.Tensor, draw: Directions, count: int, block: int) -> torch.Tensor:
    """Squared lengths of pushed-forward directions, P_i = ‖J u_i‖².

    Parameters
    ----------
    push : callable
        `push(x, v)` gives Φ(x) and J_Φ(x) v, row by row: see `geoframe.geometry.pushforward`.
    x, draw
        As in `pair_responses`.
    count, block : int
        Number of directions, and how many go into one batch.

    Returns
    -------
    torch.Tensor
        (count,), float64, on the CPU.
    """
    base = x.expand(block, *x.shape[1:]).contiguous(memory_format=_layout(x))
    found = []
    for rows, u in blocks_of(draw, count, block):
        _, tangent = push(base, u.contiguous(memory_format=_layout(x)))
        found.append(squared_norms(tangent)[: rows.stop - rows.start].cpu())
    return torch.cat(found)
