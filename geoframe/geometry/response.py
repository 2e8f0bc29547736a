"""Finite responses and their linear prediction along antipodal pairs of directions (A.1, A.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from geoframe.geometry.pushforward import Map, squared_norms

Directions = Callable[[int, int], torch.Tensor]
Push = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
FEW = 32  # rows of a batch in which one more would be felt


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


def pairs_within(rows: int) -> int:
    """Antipodal pairs that fit into a batch of so many rows, beside x where it is one of them."""
    return max(1, rows // 2 if rows <= FEW + 1 else (rows - 1) // 2)


class Displacements:
    """Φ(x ± v) − Φ(x) of one encoder at one image, in batches [x, x + v₁…, x − v₁…].

    Batches of other sizes differ in their last bits, so Φ(x) comes out of a batch of the same size. In large ones x is
    a row; for small ones Φ(x) is computed once, in a batch that holds x throughout, and subtracted row by row: the last
    bits of a row depend on how many rows there are and on its place among them, and on nothing else where rows don't
    mix.

    Parameters
    ----------
    phi : callable
        Encoder, (n, …) to (n, d).
    x : torch.Tensor
        The image, (1, …), raw pixels; directions are taken to its precision.
    """

    def __init__(self, phi: Map, x: torch.Tensor) -> None:
        self.phi, self.x = phi, x
        self._at_rest: dict[int, torch.Tensor] = {}
        self._buffer = x.new_empty(0)

    def points(self, u: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Return x ± ηu, (2n, …), for u (n, …); in a buffer that the next call fills again."""
        return self._filled(u, scale)[1:]

    def at_rest(self, rows: int) -> torch.Tensor:
        """Return Φ(x), (rows, d), as it comes out of a batch of so many rows."""
        if rows not in self._at_rest:
            self._at_rest[rows] = self.phi(self._repeated(rows))
        return self._at_rest[rows]

    def ends(self, u: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """Return Φ(x ± ηu), (2n, d), and Φ(x), (2n, d) row by row or (1, d) for all."""
        batch = self._filled(u, scale)
        if len(batch) <= FEW + 1:
            return self.phi(batch[1:]), self.at_rest(len(batch) - 1)
        features = self.phi(batch)
        return features[1:], features[:1]

    def along(self, u: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Return Φ(x ± ηu) − Φ(x), (2n, d)."""
        features, rest = self.ends(u, scale)
        return features - rest

    def _filled(self, u: torch.Tensor, scale: float) -> torch.Tensor:
        rows = 1 + 2 * len(u)
        if len(self._buffer) != rows:
            self._buffer = self._repeated(rows)
        torch.add(self.x, u.to(self.x), alpha=scale, out=self._buffer[1 : 1 + len(u)])
        torch.sub(self.x, u.to(self.x), alpha=scale, out=self._buffer[1 + len(u) :])
        return self._buffer

    def _repeated(self, rows: int) -> torch.Tensor:
        return self.x.expand(rows, *self.x.shape[1:]).clone(memory_format=_layout(self.x))


def energy_and_level(features: torch.Tensor, rest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ‖Φ(x ± ηu) − Φ(x)‖² and ‖Φ(x ± ηu)‖² + ‖Φ(x)‖² of each row, (2n,), float64."""
    return squared_norms(features - rest), squared_norms(features) + squared_norms(rest[:1])


def pair_responses(
    moves: Displacements, draw: Directions, pairs: int, scales: Sequence[float], block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure the finite response along antipodal pairs, all scales with the same directions.

    Parameters
    ----------
    moves : Displacements
        Of the encoder at the image.
    draw : callable
        `draw(start, stop)` gives unit directions start…stop−1, (stop − start, …), on the image's device.
    pairs, block : int
        Number of base directions, and how many go into one batch: see `pairs_within`.
    scales : sequence of float
        Perturbation sizes η, raw-pixel L2.

    Returns
    -------
    response : torch.Tensor
        N_i = [D_η(x, u_i) + D_η(x, −u_i)] / (2η²), (pairs, scale), float64, on the CPU.
    level : torch.Tensor
        Mean of ‖Φ(x)‖² + ‖Φ(x ± ηu)‖² over the pairs, (scale,), float64: what rounding is relative to.
    """
    response, level = [], []
    for rows, u in blocks_of(draw, pairs, block):
        count = rows.stop - rows.start
        energies, levels = [], []
        for scale in scales:
            energy, squares = (
                part.view(2, block)[:, :count].mean(0) for part in energy_and_level(*moves.ends(u, scale))
            )
            energies.append(energy / scale**2)
            levels.append(squares.sum())
        response.append(torch.stack(energies, 1).cpu())
        level.append(torch.stack(levels).cpu())
    return torch.cat(response), torch.stack(level).sum(0) / pairs


def block_responses(
    moves: Displacements, u: torch.Tensor, scales: Sequence[float], rows: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure the finite response along one block of pairs at several scales, which share batches.

    Parameters
    ----------
    moves : Displacements
        Of the encoder at the image.
    u : torch.Tensor
        Unit directions (pair, …).
    scales : sequence of float
    rows : int
        Images in a batch: 2 · pairs · scales of them, and x in large ones.

    Returns
    -------
    response, level : torch.Tensor
        (pair, scale) and (scale,), float64, on the CPU: see `pair_responses`.
    """
    u, most = u.to(moves.x), pairs_within(rows)
    size = even_blocks(len(u), most)
    together = max(1, most // size)
    energies, levels = [], []
    for part in torch.split(u, size):
        found = []
        for start in range(0, len(scales), together):
            steps = u.new_tensor(scales[start : start + together])
            ends = moves.ends((steps.view(-1, 1, *[1] * (u.ndim - 1)) * part).flatten(0, 1))
            shape = (2, len(steps), len(part))
            energy, squares = (values.view(shape).mean(0).T for values in energy_and_level(*ends))
            found.append(torch.stack([energy / steps.square(), squares]))
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
