"""Isotropic random unit directions, keyed so that they depend on nothing but their key."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch


def stream_key(*parts: object) -> int:
    """Return a 128-bit key for a random stream; each part counts, in order, by its text."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def unit_direction(
    shape: Sequence[int], seed: int, image_id: str, index: int, purpose: str = "direction"
) -> np.ndarray:
    """Draw one unit vector, uniform on the sphere: a normalised Gaussian vector (A.2).

    Parameters
    ----------
    shape : sequence of int
        Shape of the direction; the sphere lives in its flattened space.
    seed, image_id, index, purpose
        Key of the draw. A counter-based generator (Philox) is keyed by all of them, so a direction
        doesn't depend on the device, the batch, or how many others are drawn.

    Returns
    -------
    numpy.ndarray
        float32, of `shape`, of L2 norm 1.
    """
    generator = np.random.Generator(np.random.Philox(key=stream_key(purpose, seed, image_id, index)))
    gaussian = generator.standard_normal(tuple(shape), dtype=np.float32)
    norm = np.sqrt(np.einsum("i,i->", gaussian.ravel(), gaussian.ravel(), dtype=np.float64))
    gaussian /= np.float32(norm)
    return gaussian


def unit_directions(
    shape: Sequence[int], seed: int, image_id: str, start: int, stop: int, purpose: str = "direction"
) -> torch.Tensor:
    """Draw directions start…stop−1 of one image.

    Returns
    -------
    torch.Tensor
        (stop − start, *shape), float32, on the CPU.
    """
    block = np.empty((stop - start, *shape), dtype=np.float32)
    for row, index in enumerate(range(start, stop)):
        block[row] = unit_direction(shape, seed, image_id, index, purpose)
    return torch.from_numpy(block)


def orthogonal_directions(axis: torch.Tensor, n: int, rng: torch.Generator) -> torch.Tensor:
    """Draw unit vectors orthogonal to an axis, uniform on the sphere of its complement.

    Parameters
    ----------
    axis : torch.Tensor
        (d,), float64, not zero.
    n : int
        How many.
    rng : torch.Generator
        On the CPU.

    Returns
    -------
    torch.Tensor
        (n, d), float64; products with the unit axis are at rounding level.
    """
    unit = axis / axis.norm()
    gaussian = torch.randn(n, len(axis), generator=rng, dtype=torch.float64)
    for _ in range(2):  # once more removes what rounding left
        gaussian -= (gaussian @ unit)[:, None] * unit
    lengths: torch.Tensor = torch.linalg.vector_norm(gaussian, dim=1, keepdim=True)
    return gaussian / lengths
