"""Fields of specs hold what their annotations say: a wrong type is one line, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import attrs

from geoframe.errors import BadInput

_PLAIN: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
    "str": ("text", lambda value: isinstance(value, str)),
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "None": ("None", lambda value: value is None),
}


def check_fields(spec: Any) -> None:
    """Refuse a field annotated `int`, `float`, `str`, `bool` or a union of them that holds something else."""
    for field in attrs.fields(type(spec)):
        kinds = _kinds(field.type)
        value = getattr(spec, field.name)
        if kinds and not any(_PLAIN[kind][1](value) for kind in kinds):
            wanted = " or ".join(_PLAIN[kind][0] for kind in kinds)
            raise BadInput(f"{type(spec).__name__}: {field.alias}={value!r:.80} should be {wanted}")


def check_memory(memory: Any) -> None:
    """Refuse a cap on memory that isn't a number of bytes; None is none."""
    if memory is not None and not (_PLAIN["int"][1](memory) and memory > 0):
        raise BadInput(f"memory={memory!r:.80} should be a number of bytes, such as 512 * 2**20")


def accepts(spec: Any, name: str, value: Any) -> bool:
    """Whether a field is annotated by plain types alone, and a value is of one of them."""
    field = next(field for field in attrs.fields(type(spec)) if field.alias == name)
    return any(_PLAIN[kind][1](value) for kind in _kinds(field.type))


def _kinds(annotation: Any) -> list[str]:
    """Parts of an annotation that is made of plain types only, else nothing."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    parts = [part.strip() for part in text.split("|")]
    return parts if all(part in _PLAIN for part in parts) else []
