"""Checks before an encoder is measured: what would give silently wrong numbers is refused by cause."""

from __future__ import annotations

import random
from typing import NoReturn

import attrs
import numpy as np
import torch

from geoframe.errors import EncoderRefused, GeoframeError
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import central_difference
from geoframe.loaded import LoadedEncoder

JITTER = 0.01  # moves flat backgrounds off max-pool ties, where no derivative exists
STEPS = {torch.float64: (1e-5, 1e-6, 1e-7), torch.float32: (1e-1, 1e-2, 1e-3)}  # raw-pixel L2; the best one counts
TOLERANCE = {torch.float64: 1e-3, torch.float32: 5e-2}  # of a derivative against a central difference
ROUNDING = 1e-2  # of float32's derivative, which is the one used, against float64's
UNITS = 10  # of rounding: what a difference of features is known to
TRIES = 6
REPEATS = 64  # of an encoder that draws random numbers: most draws of a rare event change nothing
INDEPENDENT = 1e-5  # of the features' length
OTHER = 0x6E0F  # seed of the image that shares a batch: one that no user's random images have


def check_finite(encoder: LoadedEncoder, pixels: torch.Tensor) -> None:
    """Refuse an encoder whose features of the images themselves aren't finite."""
    for start in range(0, len(pixels), max(1, encoder.micro_batch)):
        chunk = pixels[start : start + max(1, encoder.micro_batch)].to(encoder.device)
        bad = (~torch.isfinite(first_features(encoder, chunk)).all(1)).nonzero()
        if len(bad):
            raise EncoderRefused(
                f"encoder {encoder.label!r} returns NaN or infinite features for image {start + int(bad[0])}: "
                "check its weights and its normalisation (mean, std)"
            )


def first_features(encoder: LoadedEncoder, images: torch.Tensor) -> torch.Tensor:
    """Features; whatever a stranger's forward raises on its first images is a refusal in one line."""
    try:
        return encoder.features(images)
    except (GeoframeError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise EncoderRefused(
            f"encoder {encoder.label!r} fails on images of shape {encoder.input_shape}: {reason[0]}"
        ) from error


def check_behaviour(encoder: LoadedEncoder, image: torch.Tensor) -> None:
    """Refuse randomness, dependence between the images of a batch, and wrong derivatives.

    Parameters
    ----------
    encoder : LoadedEncoder
    image : torch.Tensor
        (1, channel, height, width), raw pixels; probed with a small seeded jitter.
    """
    generator = torch.Generator().manual_seed(OTHER)
    other = torch.rand(image.shape, generator=generator).to(encoder.device)
    x = _jittered(encoder, image, 0)
    check_deterministic(encoder, x, other)
    check_independent(encoder, x, other)
    check_head(encoder, x)
    check_derivative(encoder, image)


def _jittered(encoder: LoadedEncoder, image: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (image.cpu() + JITTER * torch.randn(image.shape, generator=generator)).to(encoder.device)


def check_head(encoder: LoadedEncoder, x: torch.Tensor) -> None:
    """Refuse a head that doesn't take the features: as a rule, features that are logits already."""
    if encoder.head is None:
        return
    try:
        logits = encoder.logits(x)
    except RuntimeError as error:
        width = encoder.features(x).shape[1]
        raise EncoderRefused(
            f"encoder {encoder.label!r}: its head doesn't take its {width} features: leave the last layer out of them"
        ) from error
    if logits.ndim != 2 or len(logits) != len(x):
        raise EncoderRefused(f"encoder {encoder.label!r}: its head returns {tuple(logits.shape)}, not (n, class)")


def check_deterministic(encoder: LoadedEncoder, x: torch.Tensor, other: torch.Tensor) -> None:
    """Refuse an encoder that gives two results for equal inputs.

    Two calls tell for most. Of an encoder that draws random numbers two may agree by chance (a flip of half of
    the batches, a dropout of few units), so that one is called many times.
    """
    batch = torch.cat([x, other])
    before = _generators()
    first = encoder.features(batch)
    draws = _generators() != before
    for _ in range(REPEATS if draws else 1):
        if not torch.equal(first, encoder.features(batch)):
            raise EncoderRefused(
                f"encoder {encoder.label!r} gives two different results for the same images: its forward is random "
                "(dropout, noise or augmentation that ignores eval mode); make it deterministic"
            )


def _generators() -> tuple[object, ...]:
    """State of every global generator that a forward may draw from."""
    legacy = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 - what third-party layers use
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    streams = [state.numpy().tobytes() for state in (torch.get_rng_state(), *on_gpu)]
    return *streams, random.getstate(), legacy["pos"], legacy["key"].tobytes()


def check_independent(encoder: LoadedEncoder, x: torch.Tensor, other: torch.Tensor) -> None:
    """Refuse an encoder whose features of an image depend on the rest of the batch."""
    near, far = (encoder.features(torch.cat([x, companion]))[0] for companion in (x, other))
    if float((near - far).norm()) > INDEPENDENT * float(near.norm()):
        raise EncoderRefused(
            f"encoder {encoder.label!r} mixes the images of a batch (batch statistics that ignore eval mode?): "
            "the features of an image must not depend on its neighbours"
        )


def check_derivative(encoder: LoadedEncoder, image: torch.Tensor) -> None:
    """Compare Jacobian–vector products with central differences.

    On a float64 copy where the encoder has one, with a small step and a strict tolerance, and float32's
    product, which is the one used, with float64's; where it hasn't, in float32, with coarser ones. Each
    try has a jitter and a direction of its own, since any one point may lie beside a kink.
    """
    fine = encoder.double() or encoder
    wrong: list[_Gap] = []
    for index in range(TRIES):
        x = _jittered(encoder, image, index)
        u = unit_directions(encoder.input_shape, 0, "preflight", index, index + 1).to(encoder.device)
        used = _tangent(encoder, x, u)
        exact = used if fine is encoder else _tangent(fine, x.double(), u.double())
        found = _smallest_gap(fine, x, u, exact)
        rounding = float((used - exact).norm()) / max(float(exact.norm()), torch.finfo(torch.float64).tiny)
        if found.silent:
            continue
        if found.relative <= TOLERANCE[fine.dtype] and rounding <= ROUNDING:
            return
        wrong.append(attrs.evolve(found, relative=max(found.relative, rounding)))
    _refuse_derivative(encoder, wrong)


@attrs.frozen
class _Gap:
    """Lengths of a derivative and of a central difference, their relative distance, and that beyond rounding."""

    length: float
    expected: float
    distance: float
    relative: float
    silent: bool


def _smallest_gap(fine: LoadedEncoder, x: torch.Tensor, u: torch.Tensor, exact: torch.Tensor) -> _Gap:
    """Try the steps in turn until one agrees; return the one that agrees best."""
    x, u = x.to(fine.dtype), u.to(fine.dtype)
    rounding = UNITS * torch.finfo(fine.dtype).eps * float(fine.features(x).norm())
    tried: list[_Gap] = []
    for step in STEPS[fine.dtype]:
        tried.append(_gap(exact, central_difference(fine.features, x, u, step), rounding / step))
        if tried[-1].distance <= TOLERANCE[fine.dtype]:
            break
    return min(tried, key=lambda gap: gap.distance)


def _gap(exact: torch.Tensor, difference: torch.Tensor, floor: float) -> _Gap:
    length, expected = float(exact.norm()), float(difference.norm())
    larger = max(length, expected)
    distance = float((exact - difference).norm())
    relative = max(0.0, distance - floor) / larger if larger else 0.0
    return _Gap(length, expected, distance / larger if larger else 0.0, relative, silent=larger <= floor)


def _tangent(encoder: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    try:
        return encoder.pushforward(x, u)[1]
    except (RuntimeError, NotImplementedError) as error:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has no forward-mode derivative: {str(error).splitlines()[0]}"
        ) from error


def _refuse_derivative(encoder: LoadedEncoder, wrong: list[_Gap]) -> NoReturn:
    if not wrong:
        raise EncoderRefused(
            f"encoder {encoder.label!r} doesn't react to small changes of its input (zero derivative): "
            "it is constant, saturated or quantised there"
        )
    best = min(wrong, key=lambda gap: gap.relative)
    if best.length == 0:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has a dead derivative: its features change with the input but their "
            "derivative is zero; remove .detach(), torch.no_grad() or torch.inference_mode() from its forward"
        )
    raise EncoderRefused(
        f"encoder {encoder.label!r} has a wrong derivative: a Jacobian–vector product (length {best.length:.3g}) and a "
        f"central difference ({best.expected:.3g}) differ by {best.relative:.2g} of their length; look for detached "
        "parts or rounding in its forward"
    )
