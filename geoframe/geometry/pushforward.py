"""Pushforward of tangent vectors: exact Jacobian–vector products by forward-mode differentiation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.autograd import forward_ad

Map = Callable[[torch.Tensor], torch.Tensor]


def pushforward(phi: Map, x: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Push tangent vectors forward through a map, row by row.

    Dual numbers are sent through an ordinary batch, with no vmap, so whatever a forward may do
    (layout changes, in-place writes) works here too.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, d); rows must not depend on each other.
    x, v : torch.Tensor
        Base points and tangent vectors, both (n, …).

    Returns
    -------
    value, tangent : torch.Tensor
        Φ(x) and J_Φ(x) v, both (n, d). A map that drops the tangent gives zeros: see the preflight.
    """
    with _quiet(), forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)  # type: ignore[no-untyped-call]  # untyped in torch
        value, tangent = forward_ad.unpack_dual(phi(dual))  # type: ignore[no-untyped-call]
        return value, torch.zeros_like(value) if tangent is None else tangent


def shared_pushforward(phi: Map, x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Push several tangent vectors forward at one point, which goes through the map once.

    Parameters
    ----------
    phi : callable
        (n, …) to (n, d); its operations need rules for vmap.
    x, v : torch.Tensor
        The point (1, …) and the tangent vectors (n, …).

    Returns
    -------
    torch.Tensor
        J_Φ(x) v, (n, d).
    """

    def push(one: torch.Tensor) -> torch.Tensor:
        tangent: torch.Tensor = torch.func.jvp(phi, (x,), (one[None],))[1]
        return tangent[0]

    with _quiet(), _no_fallback_warnings():
        return torch.as_tensor(torch.func.vmap(push)(v))


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch loads its own scripted decompositions on first use and warns about torch.jit."""
    with warnings.catch_warnings():
        for category in (FutureWarning, DeprecationWarning):
            warnings.filterwarnings("ignore", message=r".*torch\.jit\.", category=category)
        yield


@contextmanager
def _no_fallback_warnings() -> Iterator[None]:
    """At every call vmap tells on stderr, past Python's warnings, which operations it loops over."""
    switch = getattr(torch._C._functorch, "_set_vmap_fallback_warning_enabled", None)
    if switch is None:
        yield
        return
    switch(False)
    try:
        yield
    finally:
        switch(True)


def central_difference(phi: Map, x: torch.Tensor, v: torch.Tensor, step: float) -> torch.Tensor:
    """Estimate J v as (Φ(x + step·v) − Φ(x − step·v)) / (2·step); shapes as in `pushforward`."""
    ahead, behind = phi(torch.cat([x + step * v, x - step * v])).chunk(2)
    return (ahead - behind) / (2 * step)


def squared_norms(features: torch.Tensor) -> torch.Tensor:
    """Squared L2 norm of each row, accumulated in float64.

    Returns
    -------
    torch.Tensor
        (n,), float64, on the features' device, or on the CPU where the device has no float64.
    """
    if features.device.type == "mps":
        features = features.cpu()
    return features.double().square().flatten(1).sum(1)
