"""The grammar of `--set` and of presets: which field of which spec gets which value.

======================================  =====================================================
`probes.ratio.directions=64`            a field of the probe called `ratio`
`encoders.*.seed=1`                     of every encoder that has the field (any shell pattern)
`probesets.soft.of.n=2`                 a field of a nested spec; `of` may be left out
`encoders=resnet50,vit`                 only these, in this order
======================================  =====================================================
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs

from geoframe.errors import BadInput, did_you_mean
from geoframe.field_types import accepts
from geoframe.spec import Spec

Fields = dict[str, tuple[Any, ...]]  # specs, of a kind that the field's name decides
_NOUN = {
    "encoders": "encoder",
    "probesets": "probe set",
    "probes": "probe",
    "figures": "figure",
    "summaries": "summary",
}


@attrs.frozen
class Override:
    """One change: a dotted path and a value (from `--set`: a Python literal, or the text itself)."""

    path: str
    value: Any


def parse(text: str) -> Override:
    """Read `PATH=VALUE`."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise BadInput(f"--set {text!r} is not of the form PATH=VALUE, such as probes.ratio.directions=64")
    try:
        return Override(path.strip(), ast.literal_eval(value.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Override(path.strip(), value.strip())


def ordered(overrides: Iterable[Override]) -> list[Override]:
    """Whole fields first, so that a path can reach into what a preset put there; else in the order given."""
    return sorted(overrides, key=lambda override: "." in override.path)


def apply(fields: Fields, override: Override, source: str) -> tuple[Fields, list[str]]:
    """Return the fields after one override, and what it changed, for people to read.

    Raises
    ------
    BadInput
        Where the path leads nowhere (near matches are suggested at the level that failed) or the value is refused.
    """
    where = f"{source}: {override.path}"
    field, _, rest = override.path.partition(".")
    if field not in fields:
        raise BadInput(f"{where}: a study has no field {field!r}{did_you_mean(field, fields)}")
    if not rest:
        items = _whole(field, fields[field], override.value, where)
        return {**fields, field: items}, [f"{field}: {short(fields[field])} → {short(items)}"]
    labels, path, pattern = _targets(field, fields[field], rest, where)
    changes: list[str] = []
    changed: list[Spec] = []
    for item in fields[field]:
        if item.label in labels and not (pattern and _reach(item, path) is None):
            label = item.label  # before: it may be made of the field's value
            before, item = _change(item, _reach(item, path) or path, override.value, where)
            changes.append(f"{field}.{label}.{'.'.join(path)}: {short(before)} → {short(override.value)}")
        changed.append(item)
    if not changes:
        first = next(item for item in fields[field] if item.label in labels)
        _change(first, path, override.value, where)  # raises: it says what is wrong with the path
    if field == "encoders":
        _check_apart(fields[field], changed, where)
    return {**fields, field: tuple(changed)}, changes


def _check_apart(before: Sequence[Spec], after: Sequence[Spec], where: str) -> None:
    """Refuse to make two encoders one: under two names (of two seeds, say) it would count as two networks."""
    first: dict[str, int] = {}
    for place, item in enumerate(after):
        other = first.setdefault(item.key, place)
        if before[other].key != before[place].key:
            raise BadInput(
                f"{where}: that makes {after[other].label!r} and {item.label!r} the same encoder: "
                "change one of them, or choose the encoders to measure with --set encoders=NAME"
            )


def short(value: Any) -> str:
    """Return a value as a few words: a spec by its label, a long tuple by its length."""
    if isinstance(value, Spec):
        return value.label
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, Spec) for item in value):
            names = ", ".join(item.label for item in value[:3]) + (", …" if len(value) > 3 else "")
            return f"{len(value)} ({names})"
        return repr(value) if len(value) <= 4 else f"{len(value)} values ({value[0]!r} … {value[-1]!r})"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _whole(field: str, items: tuple[Spec, ...], value: Any, where: str) -> tuple[Spec, ...]:
    """A whole field: specs as they are (presets), or a choice among the present ones by name."""
    parts = value if isinstance(value, tuple | list) else [name.strip() for name in str(value).split(",")]
    if all(isinstance(part, Spec) for part in parts):
        return tuple(parts)
    known = {item.label: item for item in items}
    chosen: dict[str, Spec] = {}
    for name in (str(part) for part in parts if part != ""):
        matches = [label for label in known if label == name or fnmatchcase(label, name)]
        if not matches:
            raise BadInput(f"{where}: no {_NOUN[field]} is called {name!r}{did_you_mean(name, known)}")
        chosen.update({label: known[label] for label in matches})
    return tuple(chosen.values())


def _targets(field: str, items: Sequence[Spec], rest: str, where: str) -> tuple[set[str], list[str], bool]:
    """Split LABEL.FIELD… or PATTERN.FIELD…; either may hold dots: the longest that fits wins."""
    labels = sorted((item.label for item in items), key=len, reverse=True)
    for label in labels:
        if rest == label:
            raise BadInput(f"{where} names no field: write {field}.{label}.FIELD=VALUE")
        if rest.startswith(label + "."):
            return {label}, rest[len(label) + 1 :].split("."), False
    parts = rest.split(".")
    for end in range(len(parts), 0, -1):
        name, path = ".".join(parts[:end]), parts[end:]
        if matches := {label for label in labels if fnmatchcase(label, name)}:
            if not path:
                raise BadInput(f"{where} names no field: write {field}.{name}.FIELD=VALUE")
            return matches, path, True
    raise BadInput(f"{where}: no {_NOUN[field]} is called {parts[0]!r}{did_you_mean(parts[0], labels)}")


def _known(spec: Spec) -> list[str]:
    return [field.alias for field in attrs.fields(type(spec)) if field.init and field.alias is not None]


def _reach(spec: Spec, path: Sequence[str]) -> list[str] | None:
    """Return the full path of a field that `spec` has, or, if it wraps another spec, that the wrapped one has."""
    if path[0] in _known(spec):
        inner = getattr(spec, path[0])
        if len(path) == 1:
            return list(path)
        deeper = _reach(inner, path[1:]) if isinstance(inner, Spec) else None
        return None if deeper is None else [path[0], *deeper]
    wrapped = getattr(spec, "of", None)
    deeper = _reach(wrapped, path) if isinstance(wrapped, Spec) and "of" in _known(spec) else None
    return None if deeper is None else ["of", *deeper]


def _change(spec: Spec, path: Sequence[str], value: Any, where: str) -> tuple[Any, Spec]:
    """Return the value before, and a copy of `spec` with the field at `path` changed."""
    name, *deeper = path
    if name not in _known(spec):
        raise BadInput(f"{where}: {type(spec).__name__} has no field {name!r}{did_you_mean(name, _known(spec))}")
    before = getattr(spec, name)
    if deeper:
        if not isinstance(before, Spec):
            raise BadInput(f"{where}: field {name!r} of {type(spec).__name__} is {short(before)}, which has no fields")
        before, value = _change(before, deeper, value, where)
    else:
        if not accepts(spec, name, value):
            _check_like(before, value, where)
    return before, _evolved(spec, name, value, where)


def _check_like(before: Any, value: Any, where: str) -> None:
    """Refuse text or a truth value where a number is, and anything but a truth value where one is."""
    if isinstance(before, bool) and not isinstance(value, bool):
        raise BadInput(f"{where}: {value!r} is not True or False")
    if isinstance(before, int | float) and not isinstance(before, bool) and isinstance(value, str | bool):
        raise BadInput(f"{where}: {value!r} is not a number")


def _evolved(spec: Spec, name: str, value: Any, where: str) -> Spec:
    try:
        return attrs.evolve(spec, **{name: value})
    except BadInput as error:
        raise type(error)(f"{where}: {error}") from error
