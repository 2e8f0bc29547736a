"""Seeded draws that depend on what is drawn from, and on nothing else: no listing order, no machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from geoframe.errors import BadInput
from geoframe.spec import at_least_one


def rank(seed: int, name: str) -> bytes:
    """Return the place of `name` in the order that `seed` gives to all names."""
    return hashlib.blake2b(f"{seed}\0{name}".encode("utf-8", "surrogateescape"), digest_size=16).digest()


def keyed(purpose: str, seed: int, name: str) -> int:
    """Return a number of 128 bits that depends on nothing else; other purposes give independent ones."""
    text = f"{purpose}\0{seed}\0{name}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")


def draw(names: Iterable[str], n: int | None, seed: int, what: str) -> list[str]:
    """Draw `n` names without replacement, sorted; all of them where `n` is None.

    The `n` names whose digest with the seed is smallest are taken. So the draw depends on the seed and on the
    set of names only, a smaller draw is part of a larger one, and a draw from any subset that holds the
    drawn names is the same.

    Raises
    ------
    BadInput
        Where there are fewer names than asked for; `what` says what they are ("images in /data/x").
    """
    names = sorted(set(names))
    if n is None:
        return names
    if n > len(names):
        raise BadInput(f"{n} asked for, but there are only {len(names)} {what}: lower n")
    return sorted(sorted(names, key=lambda name: rank(seed, name))[:n])


def is_count(instance: Any, attribute: Any, value: Any) -> None:
    """Check, as an attrs validator, that a field is None or a whole number of at least one."""
    if value is not None:
        at_least_one(instance, attribute, value)


def is_seed(instance: Any, attribute: Any, value: Any) -> None:
    """Check, as an attrs validator, that a field is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{type(instance).__name__}: {attribute.name}={value!r} should be a whole number")
