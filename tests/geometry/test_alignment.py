"""Energies on singular vectors against closed forms and simulation."""

from __future__ import annotations

import torch

from geoframe.geometry.alignment import cosine_to, cumulative_energy, isotropic_energy, pulled_energy
from geoframe.geometry.spectrum import decompose


def matrix(rank: int = 3) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(5, rank, dtype=torch.float64) @ torch.randn(rank, 9, dtype=torch.float64)


def test_known_vectors() -> None:
    found = decompose(matrix())
    mixed = 0.6 * found.right[0] + 0.8 * found.right[2]
    null = torch.linalg.svd(matrix(), full_matrices=True).Vh[7]
    rows = torch.stack([mixed, 2 * found.right[1], null, mixed + null, torch.zeros(9).double()])
    energy = cumulative_energy(rows, found.right, 3)
    want = torch.tensor([[0.36, 0.36, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0.18, 0.18, 0.5, 0.5, 0.5]]).double()
    torch.testing.assert_close(energy[:4], want, rtol=0, atol=1e-7)
    assert energy[4].isnan().all()
    cosine = cosine_to(torch.stack([-mixed, null, 0 * mixed]), found.right[0])
    torch.testing.assert_close(cosine[:2], torch.tensor([0.6, 0.0], dtype=torch.float64), atol=1e-12, rtol=0)
    assert cosine[2].isnan()


def test_what_lies_beyond_the_rank_does_not_count() -> None:
    """The last rows are an arbitrary basis of a part of the null space, so they must not add energy."""
    right = decompose(matrix()).right
    vectors = torch.randn(4, 9, dtype=torch.float64)
    turned = torch.cat([right[:3], torch.linalg.qr(torch.randn(2, 2).double()).Q @ right[3:]])
    torch.testing.assert_close(cumulative_energy(vectors, right, 3), cumulative_energy(vectors, turned, 3))


def test_baselines_are_what_simulation_gives() -> None:
    found = decompose(matrix())
    generator = torch.Generator().manual_seed(1)
    inside = torch.randn(40_000, 3, generator=generator, dtype=torch.float64) @ found.right[:3]
    torch.testing.assert_close(
        cumulative_energy(inside, found.right, 3).mean(0), isotropic_energy(5, 3), rtol=0, atol=0.01
    )
    pulled = torch.randn(40_000, 5, generator=generator, dtype=torch.float64) @ matrix()
    draws = torch.randn(40_000, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        cumulative_energy(pulled, found.right, 3).mean(0), pulled_energy(found.values, 3, draws), rtol=0, atol=0.01
    )
    assert isotropic_energy(3, 0).isnan().all()
    assert pulled_energy(torch.zeros(3).double(), 0, draws[:, :3]).isnan().all()
