"""The code of a class that stands in no file: typed at a prompt or in a notebook, or read from standard input."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from types import CodeType, EllipsisType, FunctionType, NoneType
from typing import Any, TypeAlias

Part: TypeAlias = FunctionType | type
_PLAIN = (bool, int, float, complex, str, bytes, NoneType, EllipsisType)
_INSIDE = {staticmethod: "__func__", classmethod: "__func__", property: "fget", cached_property: "func"}
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_STORES = {"STORE_ATTR": type, "STORE_GLOBAL": FunctionType, "STORE_DEREF": FunctionType}


def prompt_code(cls: type) -> str:
    """Return a digest of a class's functions and plain attributes, and of what they refer to in the same module.

    Plain are numbers, strings and tuples of them; of anything else the name or the type counts. File names don't, nor
    does what the code itself sets, a counter say: it would be other code each time that it is called.
    """
    parts = _reached(cls)
    stored = {each for part in parts if isinstance(part, FunctionType) for each in _stored(part.__code__)}
    return sha256("\n".join(_text(part, stored) for part in parts).encode()).hexdigest()


def _reached(cls: type) -> list[Part]:
    """The class, and the functions and classes of its module that it refers to, directly or through one another."""
    found, waiting = dict[Part, None](), list[Any]([cls])
    while waiting:
        part = waiting.pop()
        if part not in found:
            found[part] = None
            near = _referred(part).values()
            waiting += [each for each in near if isinstance(each, Part) and each.__module__ == cls.__module__]
    return list(found)


def _referred(part: Part) -> dict[str, Any]:
    """What a class holds, or what a function's names, cells and defaults stand for, by name."""
    if isinstance(part, type):
        own = {name: getattr(value, _INSIDE.get(type(value), ""), value) for name, value in vars(part).items()}
        bases = {base.__qualname__: base for base in part.__bases__}
        return bases | {name: value for name, value in own.items() if _is_written(name, value)}
    code, known = part.__code__, part.__globals__
    names = sorted({step.argval for step in _steps(code) if step.opname in _LOADS} & known.keys())
    cells = zip(code.co_freevars, (cell.cell_contents for cell in part.__closure__ or ()), strict=True)
    defaults = {f"{name}=": value for name, value in (part.__kwdefaults__ or {}).items()}
    return {**{name: known[name] for name in names}, **dict(cells), **defaults, "=": part.__defaults__}


def _is_written(name: str, value: Any) -> bool:
    """Whether an attribute isn't Python's or attrs' own: a line number, say, or a method made of the fields."""
    if isinstance(value, FunctionType):
        return not value.__code__.co_filename.startswith("<attrs generated")
    return not name.startswith("__")


def _text(part: Part, stored: set[tuple[type, str]]) -> str:
    kind = type if isinstance(part, type) else FunctionType
    held = {name: _shown(value) for name, value in sorted(_referred(part).items()) if (kind, name) not in stored}
    return f"{part.__qualname__} {held} {'' if isinstance(part, type) else _source(part)}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, _PLAIN):
        return repr(value)
    return str(getattr(value, "__qualname__", getattr(value, "__name__", type(value).__qualname__)))


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)  # IPython keeps its cells
    except (OSError, TypeError):
        return _code_text(function.__code__)


def _code_text(code: CodeType) -> str:
    return f"{code.co_code.hex()} {code.co_names} {[_constant(each) for each in code.co_consts]}"


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _code_text(value)
    return str(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)  # a set's order is by chance


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a function, and those of the functions inside."""
    yield from dis.get_instructions(code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _steps(each)


def _stored(code: CodeType) -> Iterator[tuple[type, str]]:
    """Yield the names that code sets: whether of attributes or of variables outside, and which."""
    for step in _steps(code):
        if step.opname in _STORES:
            yield _STORES[step.opname], step.argval
