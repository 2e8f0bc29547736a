"""Errors that a user can act on: each message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GeoframeError(Exception):
    """Base of every error that geoframe raises on purpose: one line, no traceback needed."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class BadInput(GeoframeError, ValueError):
    """What the user gave can't be used: a study file, an option, a file of images or weights."""


class MissingFile(BadInput):
    """A file is not there; the message says where it comes from and where to put it."""


class EncoderRefused(BadInput):
    """An encoder would give silently wrong numbers: dead derivative, randomness, NaN, wrong shape."""


class StoreConflict(BadInput):
    """A run folder holds something that this run may not touch or mix with."""


class UnknownName(BadInput):
    """A name that nothing answers to; the message suggests near matches."""


FAILURES = (Exception, SystemExit)
"""What code of others may raise and costs only what it was asked for: a script's sys.exit() doesn't end a run."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the names nearest to `name`, or the list where none is near."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return "; did you mean " + " or ".join(repr(n) for n in near) + "?"
    return "; known: " + ", ".join(names) if 0 < len(names) <= 20 else ""
