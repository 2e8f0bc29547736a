"""Jacobians and spectra against closed forms."""

from __future__ import annotations

import pytest
import torch

from geoframe.geometry.spectrum import decompose, jacobian, leading
from tests.networks import SHAPE, SIZE, conv_net, relu_net


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_both_modes_give_the_jacobian(batch: int) -> None:
    x = torch.rand(1, *SHAPE, dtype=torch.float64)
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE, 50), torch.nn.Tanh()).double()
    for phi in (relu_net().double(), wide):
        phi.requires_grad_(False)
        want = torch.autograd.functional.jacobian(lambda t, phi=phi: phi(t)[0], x).flatten(1)
        with torch.no_grad():
            torch.testing.assert_close(jacobian(phi, x, batch), want, rtol=1e-12, atol=1e-14)


def test_singular_values_of_a_known_matrix() -> None:
    torch.manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(n, n, dtype=torch.float64)).Q for n in (4, 9))
    values = torch.tensor([5.0, 2.0, 1e-6, 1e-12], dtype=torch.float64)
    found = decompose(left @ torch.diag(values) @ right[:4], complete=True)
    torch.testing.assert_close(found.values[:3], values[:3], rtol=1e-9, atol=0)
    assert abs(float(found.values[3]) - 1e-12) < 1e-14  # of J itself: its Gram matrix would lose it
    torch.testing.assert_close((found.right[:2] @ right[:2].T).abs(), torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(found.right @ found.right.T, torch.eye(9, dtype=torch.float64))


def test_leading_triples_need_no_jacobian() -> None:
    phi = conv_net().double().eval().requires_grad_(False)
    x = torch.rand(1, 3, 12, 12, dtype=torch.float64)
    whole = decompose(jacobian(phi, x, 16))
    with torch.no_grad():
        found = leading(phi, x, 5)
    torch.testing.assert_close(found.values, whole.values[:5], rtol=1e-9, atol=1e-12)
    overlap = (found.right * whole.right[:5]).sum(1).abs()
    torch.testing.assert_close(overlap, torch.ones(5, dtype=torch.float64), rtol=0, atol=1e-7)
    torch.testing.assert_close((found.left * whole.left[:5]).sum(1).abs(), overlap, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("rank", "k"), [(0, 1), (0, 4), (1, 4), (3, 4), (4, 4), (12, 11)])
@pytest.mark.parametrize("fails", [False, True])
def test_leading_triples_of_a_jacobian_of_low_rank(
    monkeypatch: pytest.MonkeyPatch, rank: int, k: int, fails: bool
) -> None:
    import scipy.sparse.linalg as sparse

    def give_up(*args: object, **kwargs: object) -> None:
        raise sparse.ArpackNoConvergence("No convergence", [], [])

    if fails:
        monkeypatch.setattr(sparse, "svds", give_up)
    torch.manual_seed(0)
    matrix = torch.randn(12, rank, dtype=torch.float64) @ torch.randn(rank, 20, dtype=torch.float64)
    with torch.no_grad():
        found = leading(lambda t: t @ matrix.T, torch.rand(1, 20, dtype=torch.float64), k)
    torch.testing.assert_close(found.values, decompose(matrix).values[:k], rtol=1e-9, atol=1e-12)
    identity = torch.eye(k, dtype=torch.float64)
    torch.testing.assert_close(found.right @ found.right.T, identity)
    torch.testing.assert_close(found.left @ found.left.T, identity)
    torch.testing.assert_close(found.left @ matrix @ found.right.T, torch.diag(found.values), rtol=1e-9, atol=1e-11)
