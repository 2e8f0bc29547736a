"""Checks before an encoder is measured: what would give silently wrong numbers is refused by cause."""

from __future__ import annotations

from typing import NoReturn

import torch

from geoframe.errors import EncoderRefused, GeoframeError
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import central_difference
from geoframe.loaded import LoadedEncoder

JITTER = 0.01  # moves flat backgrounds off max-pool ties, where no derivative exists
STEP = {torch.float64: 1e-5, torch.float32: 3e-2}
TOLERANCE = {torch.float64: 1e-2, torch.float32: 0.2}
TRIES = 4


def check_finite(encoder: LoadedEncoder, pixels: torch.Tensor) -> None:
    """Refuse an encoder whose features of the images themselves aren't finite."""
    for start in range(0, len(pixels), max(1, encoder.micro_batch)):
        chunk = pixels[start : start + max(1, encoder.micro_batch)].to(encoder.device)
        bad = (~torch.isfinite(_features(encoder, chunk)).all(1)).nonzero()
        if len(bad):
            raise EncoderRefused(
                f"encoder {encoder.label!r} returns NaN or infinite features for image {start + int(bad[0])}: "
                "check its weights and its normalisation (mean, std)"
            )


def _features(encoder: LoadedEncoder, images: torch.Tensor) -> torch.Tensor:
    try:
        return encoder.features(images)
    except (GeoframeError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # whatever a stranger's forward may raise
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
    generator = torch.Generator().manual_seed(0)
    jittered = image.cpu() + JITTER * torch.randn(image.shape, generator=generator)
    x = jittered.to(encoder.device)
    other = torch.rand(image.shape, generator=generator).to(encoder.device)
    check_deterministic(encoder, x, other)
    check_independent(encoder, x, other)
    check_derivative(encoder, x)


def check_deterministic(encoder: LoadedEncoder, x: torch.Tensor, other: torch.Tensor) -> None:
    """Refuse an encoder that gives two results for equal inputs."""
    batch = torch.cat([x, other])
    first = encoder.features(batch)
    if not torch.equal(first, encoder.features(batch)):
        raise EncoderRefused(
            f"encoder {encoder.label!r} gives two different results for the same images: "
            "its forward is random (dropout or noise that ignores eval mode); make it deterministic"
        )


def check_independent(encoder: LoadedEncoder, x: torch.Tensor, other: torch.Tensor) -> None:
    """Refuse an encoder whose features of an image depend on the rest of the batch."""
    near, far = (encoder.features(torch.cat([x, companion]))[0] for companion in (x, other))
    if float((near - far).norm()) > 1e-3 * float(near.norm()):
        raise EncoderRefused(
            f"encoder {encoder.label!r} mixes the images of a batch (batch statistics that ignore eval mode?): "
            "the features of an image must not depend on its neighbours"
        )


def check_derivative(encoder: LoadedEncoder, x: torch.Tensor) -> None:
    """Compare Jacobian–vector products with central differences.

    On a float64 copy where the encoder has one, with a step of 1e-5; in float32, with a coarser step and
    tolerance, where it hasn't. The float32 derivative, which is the one used, is compared with both.
    """
    fine = encoder.double() or encoder
    step, tolerance = STEP[fine.dtype], TOLERANCE[fine.dtype]
    wrong: list[tuple[float, float]] = []
    for index in range(TRIES):
        u = unit_directions(encoder.input_shape, 0, "preflight", index, index + 1).to(encoder.device)
        used = _tangent(encoder, x, u).to(fine.dtype)
        difference = central_difference(fine.features, x.to(fine.dtype), u.to(fine.dtype), step)
        length, expected = float(used.norm()), float(difference.norm())
        if length == expected == 0:
            continue
        if float((used - difference).norm()) <= tolerance * max(expected, length):
            return
        wrong.append((length, expected))
    _refuse_derivative(encoder, wrong)


def _tangent(encoder: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    try:
        return encoder.pushforward(x, u)[1]
    except (RuntimeError, NotImplementedError) as error:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has no forward-mode derivative: {str(error).splitlines()[0]}"
        ) from error


def _refuse_derivative(encoder: LoadedEncoder, wrong: list[tuple[float, float]]) -> NoReturn:
    if not wrong:
        raise EncoderRefused(
            f"encoder {encoder.label!r} doesn't react to small changes of its input (zero derivative): "
            "it is constant, saturated or quantised there"
        )
    length, expected = wrong[0]
    if length == 0:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has a dead derivative: its features change with the input but their "
            "derivative is zero; remove .detach(), torch.no_grad() or torch.inference_mode() from its forward"
        )
    raise EncoderRefused(
        f"encoder {encoder.label!r} has a wrong derivative: a Jacobian–vector product has length {length:.3g}, "
        f"a central difference {expected:.3g}; look for detached parts or rounding in its forward"
    )
