"""Fitting a file's tensors to a model's: renaming keys, stripping prefixes, matching by key or by order."""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch

from geoframe.encoders.reading import Weights
from geoframe.errors import BadInput

Rename = tuple[tuple[str, str | None], ...]
PREFIXES = ("module.", "_orig_mod.", "model.", "backbone.", "encoder.", "base_encoder.", "visual.", "net.")
_COUNTER = ".num_batches_tracked"  # absent from files before torch 0.4.1, and unused in eval mode


def check_patterns(rename: Rename) -> None:
    """Refuse a renaming rule that isn't a regular expression."""
    for pattern, _ in rename:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadInput(f"rename: {pattern!r} is not a regular expression ({error})") from error


def renamed(weights: Weights, rename: Rename, where: str) -> Weights:
    """Apply the rules in order to every key; a key that a rule turns to None or to "" is dropped."""
    result: Weights = {}
    for key, tensor in weights.items():
        new = _rename(key, rename)
        if not new:
            continue
        if new in result:
            raise BadInput(
                f"{where}: two keys turn into {new!r} by renaming ({key!r} is the second): drop one with None"
            )
        result[new] = tensor
    return result


def _rename(key: str, rename: Rename) -> str:
    for pattern, replacement in rename:
        if replacement is None and re.search(pattern, key):
            return ""
        key = re.sub(pattern, replacement or "", key)
    return key


def stripped(weights: Weights, wanted: Iterable[str]) -> Weights:
    """Remove the usual wrappers' prefixes while every key has one that the model's keys lack."""
    keys = set(wanted)
    while prefix := next((p for p in PREFIXES if weights and all(k.startswith(p) for k in weights)), None):
        if any(key.startswith(prefix) for key in keys):
            break
        weights = {key.removeprefix(prefix): tensor for key, tensor in weights.items()}
    return weights


def in_order(weights: Weights, wanted: Weights, where: str) -> Weights:
    """Give the file's tensors the model's keys, first to first; their numbers must agree, batch counters aside."""
    if len(weights) != len(wanted):
        wanted = {key: tensor for key, tensor in wanted.items() if not key.endswith(_COUNTER)}
    if len(weights) != len(wanted):
        raise BadInput(f"{where} holds {len(weights)} tensors, the architecture {len(wanted)}: not its weights")
    return dict(zip(wanted, weights.values(), strict=True))


def fit(model: torch.nn.Module, weights: Weights, optional: set[str], where: str) -> set[str]:
    """Load weights into a model, all or none; return those of the `optional` keys that the file lacks.

    Raises
    ------
    BadInput
        A key is missing, not expected, or of another shape; a few are named.
    """
    wanted = {key: tensor for key, tensor in model.state_dict().items() if isinstance(tensor, torch.Tensor)}
    missing = [k for k in wanted if k not in weights and not k.endswith(_COUNTER)]
    lacking = optional.intersection(missing) if optional and optional.issubset(missing) else set()
    problems = [
        _named("missing", [k for k in missing if k not in lacking]),
        _named("not expected", [k for k in weights if k not in wanted]),
        _named("of another shape", _misshapen(weights, wanted)),
    ]
    if any(problems):
        raise BadInput(
            f"{where} doesn't fit the architecture: {'; '.join(p for p in problems if p)}: choose the architecture "
            "that it was made for, or map its keys with rename={regex: replacement, regex to drop: None}"
        )
    model.load_state_dict(weights, strict=False)
    return lacking


def _misshapen(weights: Weights, wanted: Weights) -> list[str]:
    return [
        f"{key} {tuple(tensor.shape)} for {tuple(wanted[key].shape)}"
        for key, tensor in weights.items()
        if key in wanted and tensor.shape != wanted[key].shape
    ]


def _named(problem: str, keys: list[str]) -> str:
    return f"{len(keys)} {problem} ({', '.join(keys[:3])}{', …' if len(keys) > 3 else ''})" if keys else ""
