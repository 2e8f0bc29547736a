"""Checks before an encoder is measured: what would give silently wrong numbers is refused by cause.

Derivatives have a module of their own, `geoframe.derivative_check`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch

from geoframe.errors import FAILURES, EncoderRefused, GeoframeError
from geoframe.loaded import LoadedEncoder
from geoframe.network_outputs import first_line

JITTER = 0.01  # moves flat backgrounds off max-pool ties, where no derivative exists
REPEATS = 64  # of a map that draws random numbers: most draws of a rare event change nothing
INDEPENDENT = 1e-5  # of the length of the features or logits
MOVED = 5e-2  # the same for an image elsewhere in the batch, where a kernel in 16 bits may round otherwise
OTHER = 0x6E0F  # seed of the image that shares a batch: one that no user's random images have

Map = Callable[[torch.Tensor], torch.Tensor]


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
    except FAILURES as error:
        raise EncoderRefused(
            f"encoder {encoder.label!r} fails on images of shape {encoder.input_shape}: {first_line(error)}"
        ) from error


def first_logits(encoder: LoadedEncoder, features: torch.Tensor) -> torch.Tensor:
    """Logits of features, which a head may overwrite; whatever it raises is a refusal in one line."""
    try:
        return encoder.classify(features.clone())
    except (GeoframeError, torch.OutOfMemoryError):
        raise
    except FAILURES as error:
        raise EncoderRefused(
            f"encoder {encoder.label!r}: its head doesn't take its {features.shape[1]} features "
            f"({first_line(error)}): give it features before the last layer and a head that makes logits of them"
        ) from error


def check_behaviour(encoder: LoadedEncoder, image: torch.Tensor) -> None:
    """Refuse randomness and dependence between the images of a batch, in the features and in the head.

    The head is checked on equal features, so that what is refused is its own doing, and at the cost of no pass.

    Parameters
    ----------
    encoder : LoadedEncoder
    image : torch.Tensor
        (1, channel, height, width), raw pixels; probed with a small seeded jitter.
    """
    batch = torch.cat([jittered(encoder, image, 0), noise_image(encoder)])
    features = check_deterministic(encoder, lambda images: first_features(encoder, images), batch, "its features")
    if not torch.isfinite(features[0]).all():
        raise EncoderRefused(
            f"encoder {encoder.label!r} returns NaN or infinite features for an image with a little noise "
            f"(σ = {JITTER}), which may leave [0, 1]: clamp what its forward takes roots or logarithms of"
        )
    check_independent(encoder, lambda images: first_features(encoder, images), batch, features, "features")
    if encoder.head is not None:
        check_head(encoder, features)


def check_head(encoder: LoadedEncoder, features: torch.Tensor) -> None:
    """Refuse a head that doesn't take the features, gives no logits, is random or mixes a batch.

    Parameters
    ----------
    encoder : LoadedEncoder
    features : torch.Tensor
        (2, d), of different images.
    """
    logits = check_deterministic(encoder, lambda rows: first_logits(encoder, rows), features, "the logits of its head")
    if logits[0].isnan().any():
        raise EncoderRefused(
            f"encoder {encoder.label!r}: its head returns NaN logits for finite features: check its weights"
        )
    check_independent(encoder, lambda rows: first_logits(encoder, rows), features, logits, "logits of its head")
    first_logits(encoder, features[:1])  # an image alone is a batch too: squeeze() would lose its dimension


def jittered(encoder: LoadedEncoder, image: torch.Tensor, seed: int) -> torch.Tensor:
    """Return an image with a little noise that depends on the seed alone, on the encoder's device."""
    generator = torch.Generator().manual_seed(seed)
    return (image.cpu() + JITTER * torch.randn(image.shape, generator=generator)).to(encoder.device)


def noise_image(encoder: LoadedEncoder) -> torch.Tensor:
    """Return uniform noise, (1, channel, height, width): an image that is unlike any other."""
    generator = torch.Generator().manual_seed(OTHER)
    return torch.rand((1, *encoder.input_shape), generator=generator).to(encoder.device)


def check_deterministic(encoder: LoadedEncoder, function: Map, batch: torch.Tensor, what: str) -> torch.Tensor:
    """Refuse a map that gives two results for equal inputs; return its result.

    Two calls tell for most. Of a map that draws random numbers two may agree by chance (a flip of half of
    the batches, a dropout of few units), so that one is called many times.
    """
    before = _generators()
    first = function(batch)
    draws = _generators() != before
    for _ in range(REPEATS if draws else 1):
        if not torch.equal(first.nan_to_num(), function(batch).nan_to_num()):
            raise EncoderRefused(
                f"encoder {encoder.label!r} gives two different results for the same images: {what} are random "
                "(dropout, noise or augmentation that ignores eval mode); make the forward deterministic"
            )
    return first


def _generators() -> tuple[object, ...]:
    """State of every global generator that a forward may draw from."""
    legacy = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 - what third-party layers use
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # untyped in torch
    on_gpu = torch.cuda.get_rng_state_all() if started else []
    streams = [state.numpy().tobytes() for state in (torch.get_rng_state(), *on_gpu)]
    return *streams, random.getstate(), legacy["pos"], legacy["key"].tobytes()


def check_independent(
    encoder: LoadedEncoder, function: Map, batch: torch.Tensor, found: torch.Tensor, what: str
) -> None:
    """Refuse a map whose result for a row depends on the rest of the batch, or on its place in it.

    Parameters
    ----------
    encoder : LoadedEncoder
    function : callable
    batch, found : torch.Tensor
        Two different rows and what the map makes of them.
    what : str
        What the map gives, for the message.
    """
    twice, swapped = (_finite(function(rows)) for rows in (batch[[0, 0]], batch.flip(0)))
    near, scale = _finite(found)[0], float(_finite(found).norm())
    for far, tolerance in ((twice[0], INDEPENDENT), (twice[1], MOVED), (swapped[1], MOVED)):
        if float((near - far).norm()) > tolerance * scale:
            raise EncoderRefused(
                f"encoder {encoder.label!r} mixes the images of a batch (batch statistics that ignore eval mode?): "
                f"the {what} of an image must not depend on its neighbours"
            )


def _finite(values: torch.Tensor) -> torch.Tensor:
    """Return values with 0 for infinities (logits of masked classes are −∞) and NaN."""
    return values.nan_to_num(0, 0, 0)
