"""The float64 copy of a loaded encoder."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import attrs
import torch

from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward
from geoframe.numerics import exact_numerics

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

FINE_STEP = 1e-9  # of an image's length: 1/60 of float32's rounding, and a million times float64's


def double_copy(encoder: LoadedEncoder) -> LoadedEncoder | None:
    """Return a float64 copy without head, whose passes count for the encoder; None where it can't run in float64."""
    if encoder.device.type == "mps":  # no float64 there
        return None
    try:
        twin = attrs.evolve(
            encoder,
            network=copy.deepcopy(encoder.network).double(),
            head=None,
            mean=encoder.mean.double(),
            std=encoder.std.double(),
            dtype=torch.float64,
            passes=0.0,
            on_pass=encoder.count,
            double=[],
        )
        with exact_numerics():
            works = _resolves_float64(twin)
    except Exception:  # of any kind, as a rule of constants or kernels that are float32 only
        return None
    return twin if works else None


def _resolves_float64(twin: LoadedEncoder) -> bool:
    """Whether steps far below float32's resolution add up: a layer that computes in float32 rounds them away."""
    shape, place = twin.input_shape, twin.device
    generator = torch.Generator().manual_seed(0)
    x = torch.full((1, *shape), 0.5, dtype=torch.float64) + 0.01 * torch.randn(1, *shape, generator=generator)
    x, u = x.to(place), unit_directions(shape, 0, "double", 0, 1).double().to(place)
    step = FINE_STEP * float(x.norm())
    features = twin._forward(torch.cat([x, x + step * u, x + 2 * step * u]))
    if features.dtype != torch.float64:
        return False
    once, twice = features[1] - features[0], features[2] - features[0]
    if not bool(once.any()):  # flat, or rounded away
        return not bool(pushforward(twin._forward, x, u)[1].any())
    return float((twice - 2 * once).norm()) <= 0.1 * float(once.norm())
