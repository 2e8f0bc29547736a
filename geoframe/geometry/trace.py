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
COARSE = 4.0  # roundings of features in a coarser format that it may make
SLACK = 1.5  # a complete basis takes feature products, a sketch of k about 2k: up to this, take the complete one


class NotAdjoint(ValueError):
    """Reverse mode gives another Jacobian than forward mode: a part without gradient, a backward of its own."""


class NotFinite(ValueError):
    """The Jacobian isn't finite at the point."""


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
        tangents = tangents.to(self.basis.dtype)
        return squared_norms(tangents - (tangents @ self.basis) @ self.basis.T)


def sketch_range(
    phi: Map, push: Push, x: torch.Tensor, directions: torch.Tensor, batch: int, memory: int | None = None
) -> Sketch:
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
        Most pullbacks at once.
    memory : int, optional
        Bytes that they may keep for it.

    Raises
    ------
    NotAdjoint
        Where pullbacks and pushforwards aren't of the same Jacobian.
    NotFinite
        Where it isn't finite.
    """
    features = phi(x).shape[1]
    complete = features <= SLACK * len(directions)
    found = _finite(push(directions[:CHECKED] if complete else directions))
    alike = max(ALIKE, COARSE * torch.finfo(found.dtype).eps)
    pushed = found.to(x.dtype)
    if complete:
        basis = torch.eye(features, dtype=x.dtype, device=x.device)
    else:
        basis = torch.linalg.qr(pushed.double().T)[0].to(x.dtype)
    pullback = _finite(pullbacks(phi, x, basis.T.contiguous(), batch, memory))
    tried, wanted = directions[: len(pushed)].flatten(1) @ pullback.T, pushed @ basis
    if not (tried - wanted).norm() <= alike * wanted.norm():
        raise NotAdjoint("reverse-mode and forward-mode derivatives differ")
    return _sketch(None if complete else basis, pullback)


def _finite(values: torch.Tensor) -> torch.Tensor:
    if not bool(values.isfinite().all()):
        raise NotFinite("the Jacobian isn't finite")
    return values


def _sketch(basis: torch.Tensor | None, pullback: torch.Tensor) -> Sketch:
    d = pullback.shape[1]
    gram = pullback.double() @ pullback.double().T
    trace = float(gram.trace())
    variance = 2 * max(float(gram.square().sum()) - trace**2 / d, 0.0) / (d**2 + 2 * d)
    return Sketch(basis, pullback, trace / d, variance)


def pullbacks(
    phi: Map, x: torch.Tensor, covectors: torch.Tensor, batch: int, memory: int | None = None
) -> torch.Tensor:
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
        Most products at once.
    memory : int, optional
        Bytes that the activations of the products at once may take: the first one, by itself, tells what one keeps.

    Returns
    -------
    torch.Tensor
        (k, input), in x's dtype.

    Raises
    ------
    NotAdjoint
        Where a part of the map has no reverse-mode derivative.
    """
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        found = [_pulled(phi, x, covectors[:1])]
    if memory is not None:
        batch = max(1, min(batch, memory // max(1, sum(kept.values()))))
    return torch.cat([*found, *(_pulled(phi, x, part) for part in torch.split(covectors[1:], batch) if len(part))])


def _pulled(phi: Map, x: torch.Tensor, covectors: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        points = x.detach().expand(len(covectors), *x.shape[1:]).clone().requires_grad_(True)
        total = (phi(points) * covectors).sum()
        try:
            return torch.autograd.grad(total, points)[0].flatten(1)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # a part is detached, or has no derivative
            raise NotAdjoint(str(error).splitlines()[0]) from error
