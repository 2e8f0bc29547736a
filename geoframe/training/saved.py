"""Weights and states of trainings in files: written in one step, and not believed when they are read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from geoframe.files import PARTIAL, writing
from geoframe.spec import array_digest, digest
from geoframe.training.cache import ELSEWHERE, TrainingCache
from geoframe.training.moments import Moment

Weights = dict[str, torch.Tensor]
_SEAL = 16  # bytes


def write(target: Path, content: Any, *, sealed: bool = False) -> None:
    """Save with torch, in one step: a full disk or a kill leaves what was there before.

    A sealed file ends with a digest of what is before it.
    """
    made = io.BytesIO()  # torch hides the cause of what it can't write
    torch.save(content, made)
    partial = target.with_name(target.name + PARTIAL)
    with writing(target, ELSEWHERE), made.getbuffer() as content_bytes:
        try:
            with partial.open("wb") as file:
                file.write(content_bytes)
                if sealed:
                    file.write(_seal(content_bytes))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        except OSError:
            with suppress(OSError):
                partial.unlink(missing_ok=True)  # a full disk needs the space
            raise


def read_sealed(path: Path) -> Any:
    """Read a sealed file; None where there is none, or it isn't as it was written."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    content, seal = content[:-_SEAL], content[-_SEAL:]
    try:
        sound = seal == _seal(content)
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True) if sound else None
    except Exception:  # written by another version of torch
        return None


def _seal(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=_SEAL).digest()


def weights_digest(weights: Mapping[str, torch.Tensor]) -> str:
    """Digest of weights, by name, dtype, shape and bytes."""
    return digest({name: array_digest(tensor) for name, tensor in weights.items()})


def read_weights(
    cache: TrainingCache, when: int | Moment, like: Mapping[str, torch.Tensor] | None = None
) -> Weights | str:
    """Read a checkpoint that the log names and the files behind the recipe still stand for.

    Parameters
    ----------
    cache : TrainingCache
    when : int or Moment
        The checkpoint's epoch or moment.
    like : mapping of str to tensor, optional
        The state of the model that they are for.

    Returns
    -------
    dict of str to torch.Tensor, or str
        The weights, or why what is there doesn't count, "" where there is nothing.
    """
    outdated, row = cache.outdated(), cache.row(when)
    return outdated if outdated or row is None else read_row(cache, row, like)


def read_row(
    cache: TrainingCache, row: dict[str, Any], like: Mapping[str, torch.Tensor] | None = None
) -> Weights | str:
    """Read the weights of a line of the log, or say why they don't count."""
    path = cache.folder / cache.file_of(row)
    if not os.path.exists(path):
        return f"{path} is missing"
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
        found = weights_digest(weights)
    except Exception:  # of many kinds, whatever the damage
        return f"{path} can't be read"
    if found != row["weights"]:
        return f"{path} holds other weights than those that were trained"
    if like is not None and not fits(weights, like):
        return f"the weights in {path} are of a model with other layers"
    return dict(weights)


def fits(weights: Mapping[str, torch.Tensor], like: Mapping[str, torch.Tensor]) -> bool:
    """Whether weights have the names and shapes of a model's state."""
    same = set(weights) == set(like)
    return same and all(is_lazy(like[name]) or like[name].shape == weights[name].shape for name in like)
