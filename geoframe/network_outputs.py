"""What a network and its head may return: anything else is refused in one line."""

from __future__ import annotations

from typing import Any

import torch

from geoframe.errors import EncoderRefused


def checked_features(label: str, features: Any, n: int) -> torch.Tensor:
    """Return what a network made of n images, or refuse what isn't real numbers of shape (n, d)."""
    if not isinstance(features, torch.Tensor):
        raise EncoderRefused(
            f"encoder {label!r} returns a {type(features).__name__}, not a tensor: "
            "wrap it in a module that returns the feature vector"
        )
    if not features.is_floating_point():
        raise EncoderRefused(
            f"encoder {label!r} returns features of dtype {features.dtype}, not real numbers: convert them, "
            "complex ones e.g. by torch.view_as_real(features).flatten(1)"
        )
    if features.ndim != 2 or len(features) != n:
        raise EncoderRefused(
            f"encoder {label!r} returns features of shape {tuple(features.shape)} for {n} images, "
            f"not ({n}, d): pool or flatten them, e.g. torch.nn.Sequential(net, torch.nn.Flatten())"
        )
    return features


def checked_logits(label: str, logits: Any, n: int) -> torch.Tensor:
    """Return what a head made of n feature vectors, or refuse what isn't real numbers of shape (n, class)."""
    if not isinstance(logits, torch.Tensor):
        raise EncoderRefused(
            f"encoder {label!r}: its head returns a {type(logits).__name__}, not a tensor: "
            "wrap it in a module that returns the logits"
        )
    if not logits.is_floating_point():
        raise EncoderRefused(
            f"encoder {label!r}: its head returns logits of dtype {logits.dtype}, not real numbers: "
            "let it return scores, one per class, e.g. by .float()"
        )
    if logits.ndim != 2 or len(logits) != n or not logits.shape[1]:
        raise EncoderRefused(
            f"encoder {label!r}: its head returns {tuple(logits.shape)} for the features of {n} images, "
            f"not ({n}, class): let it return one row of logits per image"
        )
    return logits


def first_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of what it says, for a message of one line."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
