"""What a recipe's fields may hold, each refused in one line. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from geoframe.encoders.model import ModelEncoder
from geoframe.errors import BadInput, UnknownName, did_you_mean
from geoframe.probeset import ProbeSet
from geoframe.spec import at_least_one


def numbers(value: Any) -> Any:
    """Return one whole number as a tuple of it, and what can be iterated as a tuple (a converter)."""
    if isinstance(value, int):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


def decimal(value: Any) -> Any:
    """Return a float where that can be (a converter)."""
    try:
        return float(value)
    except (TypeError, ValueError):  # the validator says what it should be
        return value


def should_be(wanted: str, holds: Callable[[Any], bool]) -> Any:
    """Refuse what isn't wanted, by the field's name (an attrs validator)."""

    def validate(spec: Any, field: Any, value: Any) -> None:
        if not holds(value):
            raise BadInput(f"{type(spec).__name__}: {field.name}={value!r:.80} should be {wanted}")

    return validate


def one_of(known: Sequence[str], *, or_none: bool = False) -> Any:
    """Refuse a name that isn't known; near ones are suggested (an attrs validator)."""

    def validate(spec: Any, field: Any, value: Any) -> None:
        if value not in known and not (or_none and value is None):
            raise UnknownName(
                f"{type(spec).__name__}: no {field.name} {value!r:.80}{did_you_mean(str(value), list(known))}"
            )

    return validate


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _are_whole(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_whole, value))


COUNT = at_least_one
SHARE = should_be("a number, 0 or more", lambda value: _is_finite(value) and value >= 0)
PIXELS = should_be("0 to 1, in raw [0, 1] pixels: 8/255 is 0.0314", lambda value: _is_finite(value) and 0 <= value <= 1)
RATE = should_be("a number above 0", lambda value: _is_finite(value) and value > 0)
SEED = should_be("a whole number of at most 64 bits", lambda value: _is_whole(value) and -(2**63) <= value < 2**63)
EPOCHS = should_be("numbers of epochs, such as (1, 10)", _are_whole)
STEPS = should_be("numbers of optimiser steps, such as (1, 10, 391), or log_steps(…)", _are_whole)
MODEL = should_be(
    "an encoder that builds a whole model, such as FactoryEncoder(…)", lambda value: isinstance(value, ModelEncoder)
)
IMAGES = should_be("a probe set of labelled images", lambda value: isinstance(value, ProbeSet))
