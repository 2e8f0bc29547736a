"""Jacobian of a map at one point, and its singular value decomposition, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np
import torch

from geoframe.geometry.pushforward import Map, pushforward

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

_ROUNDING = 1e-12  # share of a product's length that is rounding, not another dimension of the range


@attrs.frozen(eq=False)
class Spectrum:
    """J = U Σ Vᵀ at one point.

    Attributes
    ----------
    values : torch.Tensor
        (k,), float64, descending.
    right, left : torch.Tensor
        Rows v_i (·, input) and u_i (·, feature). A complete basis has more right vectors than values:
        the rest spans the null space, in an arbitrary order.
    """

    values: torch.Tensor
    right: torch.Tensor
    left: torch.Tensor


def jacobian(phi: Map, x: torch.Tensor, batch: int) -> torch.Tensor:
    """Jacobian at one point, by whichever of forward and reverse mode takes fewer products.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, d), rows independent.
    x : torch.Tensor
        (1, …).
    batch : int
        Products at once.

    Returns
    -------
    torch.Tensor
        (d, input), in x's dtype.
    """
    features, inputs = phi(x).shape[1], x[0].numel()
    build = _by_rows if features <= inputs else _by_columns
    return build(phi, x, features if features <= inputs else inputs, batch)


def _by_rows(phi: Map, x: torch.Tensor, features: int, batch: int) -> torch.Tensor:
    """Reverse mode: row i is the gradient of feature i, many rows in one backward pass."""
    rows = []
    for start in range(0, features, batch):
        index = torch.arange(start, min(start + batch, features), device=x.device)
        with torch.enable_grad():
            points = x.detach().expand(len(index), *x.shape[1:]).clone().requires_grad_(True)
            picked = phi(points).gather(1, index[:, None]).sum()
            rows.append(torch.autograd.grad(picked, points)[0].flatten(1))
    return torch.cat(rows)


def _by_columns(phi: Map, x: torch.Tensor, inputs: int, batch: int) -> torch.Tensor:
    """Forward mode: column j is the pushforward of basis vector j."""
    columns = []
    for start in range(0, inputs, batch):
        index = torch.arange(start, min(start + batch, inputs), device=x.device)
        basis = torch.nn.functional.one_hot(index, inputs).to(x).view(len(index), *x.shape[1:])
        columns.append(pushforward(phi, x.expand_as(basis).contiguous(), basis)[1])
    return torch.cat(columns).T


def decompose(matrix: torch.Tensor, complete: bool = False) -> Spectrum:
    """Decompose J itself, never its Gram matrix, in float64.

    Parameters
    ----------
    matrix : torch.Tensor
        J, (feature, input).
    complete : bool
        Complete the right singular vectors to a basis of input space.
    """
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=complete)
    return Spectrum(values, right, left.T)


def rank_threshold(values: torch.Tensor, larger_side: int, dtype: torch.dtype) -> float:
    """Size from which a singular value isn't rounding: numpy's rule (`matrix_rank`) for a matrix computed in dtype."""
    return float(values[0]) * larger_side * torch.finfo(dtype).eps


def leading(phi: Map, x: torch.Tensor, k: int, seed: int = 0) -> Spectrum:
    """Leading singular triples without forming J: Lanczos (scipy's `svds`) on products with J and Jᵀ.

    Where J has fewer than k, J = 0 say, the values end in zeros, and the vectors are orthonormal all the same.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, d), in float64.
    x : torch.Tensor
        (1, …), float64.
    k : int
        How many; less than the smaller side of J.
    seed : int
        Of the start vector.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, svds

    shape = (phi(x).shape[1], x[0].numel())
    push, pull = _products(phi, x)
    operator = LinearOperator(shape, matvec=push, rmatvec=pull, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(min(shape))
    try:
        left, values, right = svds(operator, k=k, v0=start, tol=0.0, solver="arpack")
    except ArpackError:  # J = 0 has no start vector; or too many iterations
        left, values, right = _by_range(operator, k, np.random.default_rng(seed))
    order = np.argsort(-values, kind="stable")
    return Spectrum(*(torch.from_numpy(a[order].copy()).to(x.device) for a in (values, right, left.T)))


def _by_range(operator: LinearOperator, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, Σ, Vᵀ of k triples from a basis of the range of J: products with random vectors, until one adds nothing."""
    features, inputs = operator.shape
    basis = np.empty((features, 0))
    while basis.shape[1] < min(operator.shape):
        product = operator.matvec(rng.standard_normal(inputs))
        rest = product - basis @ (basis.T @ product)
        rest -= basis @ (basis.T @ rest)
        if np.linalg.norm(rest) <= _ROUNDING * np.linalg.norm(product):
            break
        basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    rows = np.stack([operator.rmatvec(column) for column in basis.T]) if basis.size else np.empty((0, inputs))
    inner, values, right = np.linalg.svd(rows, full_matrices=False)
    missing = np.zeros(max(0, k - len(values)))
    return (
        _completed(basis @ inner, k, rng),
        np.concatenate([values, missing])[:k],
        _completed(right.T, k, rng).T,
    )


def _completed(columns: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """The first k of orthonormal columns, and as many others orthogonal to them as are missing."""
    missing = max(0, k - columns.shape[1])
    random = rng.standard_normal((len(columns), missing))
    others = np.linalg.qr(np.column_stack([columns, random]))[0][:, columns.shape[1] :]
    return np.column_stack([columns, others])[:, :k]


def _products(
    phi: Map, x: torch.Tensor
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    def push(v: np.ndarray) -> np.ndarray:
        tangent = torch.from_numpy(np.ascontiguousarray(v.ravel())).to(x).view_as(x)
        return np.asarray(pushforward(phi, x, tangent)[1][0].cpu().numpy())

    def pull(u: np.ndarray) -> np.ndarray:
        with torch.enable_grad():
            point = x.detach().clone().requires_grad_(True)
            weighted = phi(point)[0] @ torch.from_numpy(np.ascontiguousarray(u.ravel())).to(x)
            return np.asarray(torch.autograd.grad(weighted, point)[0].flatten().cpu().numpy())

    return push, pull
