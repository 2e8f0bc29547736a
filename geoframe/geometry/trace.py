"""Mean energy of a Jacobian along random directions, E‖Ju‖² = tr JᵀJ / d, from a sketch of its range (ours).

The range finder of Hutch++ (Meyer, Musco, Musco & Woodruff 2021): a basis Q of what J makes of a few random directions
holds most of J's energy, ‖QᵀJ‖², and that part is exact. The rest, ‖(I − QQᵀ)J‖², is estimated along the directions
that are measured anyway.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import torch

from geoframe.geometry.pushforward import Map, squared_norms

Push = Callable[[torch.Tensor], torch.Tensor]
CHECKED = 3  # directions along which a complete basis is checked
ALIKE = 1e-3  # relative distance that rounding in float32 may make
SLACK = 1.5  # a complete basis takes feature products, a sketch of k about 2k: up to this, take the complete one


class NotAdjoint(ValueError):
    """Reverse mode gives another Jacobian than forward mode: a part without gradient, a backward of its own."""


@attrs.frozen(eq=False)
class Sketch:
    """Part of J's energy that is known exactly, and what tells it from the rest along a direction.

    Attributes
    ----------
    basis : torch.Tensor or None
        Q, (feature, k), orthonormal; None where it is complete, so that nothing is left of J beside it.
    pullback : torch.Tensor
        QᵀJ, (k, input).
    mean, variance : float
        Of ‖QᵀJu‖² over directions u that are uniform on the unit sphere of dimension d: ‖QᵀJ‖² / d, and
        2(‖A‖² − (tr A)² / d) / (d² + 2d) with A = QᵀJJᵀQ.
    """

    basis: torch.Tensor | None
    pullback: torch.Tensor
    mean: float
    variance: float

    def captured(self, u: torch.Tensor) -> torch.Tensor:
        """‖QᵀJu‖² of unit directions (n, …): (n,), float64. Its mean over all directions is `mean`."""
        return squared_norms(u.flatten(1) @ self.pullback.T)

    def left(self, tangents: torch.Tensor) -> torch.Tensor:
        """‖(I − QQᵀ)Ju‖² of pushed-forward directions Ju (n, feature): (n,), float64."""
        if self.basis is None:
            return torch.zeros(len(tangents), dtype=torch.float64, device=tangents.device)
        return squared_norms(tangents - (tangents @ self.basis) @ self.basis.T)


def sketch_range(phi: Map, push: Push, x: torch.Tensor, directions: torch.Tensor, batch: int) -> Sketch:
    """Sketch the range of the Jacobian at one point.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, feature), rows independent.
    push : callable
        Directions (n, …) to J u at x, (n, feature).
    x : torch.Tensor
        (1, …).
    directions : torch.Tensor
        (k, …), random, independent of those that are measured. With few features, J is taken whole instead.
    batch : int
        Pullbacks at once.

    Raises
    ------
    NotAdjoint
        Where pullbacks and pushforwards aren't of the same Jacobian.
    """
    features, k = phi(x).shape[1], len(directions)
    if features <= SLACK * k:
        basis = torch.eye(features, dtype=x.dtype, device=x.device)
        directions = directions[:CHECKED]
        pushed = push(directions)
    else:
        pushed = push(directions)
        basis = torch.linalg.qr(pushed.double().T)[0].to(x.dtype)
    pullback = pullbacks(phi, x, basis.T.contiguous(), batch)
    found, wanted = directions.flatten(1) @ pullback.T, pushed @ basis
    if not (found - wanted).norm() <= ALIKE * wanted.norm():
        raise NotAdjoint("reverse-mode and forward-mode derivatives differ")
    return _sketch(None if features <= SLACK * k else basis, pullback)


def _sketch(basis: torch.Tensor | None, pullback: torch.Tensor) -> Sketch:
    d = pullback.shape[1]
    gram = pullback.double() @ pullback.double().T
    trace = float(gram.trace())
    variance = 2 * max(float(gram.square().sum()) - trace**2 / d, 0.0) / (d**2 + 2 * d)
    return Sketch(basis, pullback, trace / d, variance)


def pullbacks(phi: Map, x: torch.Tensor, covectors: torch.Tensor, batch: int) -> torch.Tensor:
    """Jᵀw at one point for each of several covectors, by reverse mode.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, feature), rows independent.
    x : torch.Tensor
        (1, …).
    covectors : torch.Tensor
        (k, feature).
    batch : int
        Products at once.

    Returns
    -------
    torch.Tensor
        (k, input), in x's dtype.
    """
    found = []
    for part in torch.split(covectors, batch):
        with torch.enable_grad():
            points = x.detach().expand(len(part), *x.shape[1:]).clone().requires_grad_(True)
            found.append(torch.autograd.grad((phi(points) * part).sum(), points)[0].flatten(1))
    return torch.cat(found)
