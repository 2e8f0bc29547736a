"""Frozen specifications: what they are called, and the key that stands for the numbers they determine.

A spec (encoder, probe set, probe) is an immutable attrs class. Its key is a digest of every field
that can change a number, through nested specs, by value; names are left out.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import attrs

from geoframe.errors import BadInput, did_you_mean
from geoframe.field_types import check_fields

KEY_VERSION = 1
S = TypeVar("S", bound="Spec")


def unkeyed(**kwargs: Any) -> Any:
    """Make an attrs field that changes no number and so stays out of the key."""
    return attrs.field(metadata={"keyed": False}, **kwargs)


def later(**kwargs: Any) -> Any:
    """Make a keyed attrs field for a class whose keys are in use already.

    At its default, which stands for what the class did before, it stays out of the key: older keys stay valid.
    """
    return attrs.field(metadata={"later": True}, **kwargs)


def count(default: int) -> Any:
    """Make an attrs field for a whole number, 1 or more."""
    return attrs.field(default=default, validator=at_least_one)


def at_least_one(spec: Any, field: Any, value: Any) -> None:
    """Refuse what isn't a whole number, 1 or more (an attrs validator)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"{type(spec).__name__}: {field.name}={value!r:.80} should be a whole number, 1 or more")


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "untyped_storage")


def array_digest(array: Any) -> str:
    """Digest of an array's dtype, shape and bytes (a numpy array or a torch tensor)."""
    import numpy as np

    if _is_tensor(array):
        array = array.detach().cpu().contiguous().numpy()
    array = np.ascontiguousarray(array)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.blake2b(head + array.tobytes(), digest_size=16).hexdigest()


def type_name(cls: type) -> str:
    """Name of a type as it enters keys: stable for classes of a study file loaded by path."""
    module = cls.__module__
    return cls.__qualname__ if module.startswith("geoframe_file_") else f"{module}.{cls.__qualname__}"


def _home(cls: type) -> str:
    """Where a class is from, for messages: its module, or the file where that is a study file loaded by path."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return Path(file).name if file and cls.__module__.startswith("geoframe_file_") else cls.__module__


def canonical(value: Any, where: str = "value") -> Any:
    """Turn a field's value into JSON that stands for it; what can't be keyed is an error."""
    if isinstance(value, Spec):
        return value.identity()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value).hex()
    if isinstance(value, bytes):
        return {"bytes": hashlib.blake2b(value, digest_size=16).hexdigest()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(k): canonical(v, f"{where}[{k!r}]") for k, v in sorted(value.items(), key=lambda i: str(i[0]))}
    if isinstance(value, tuple | list):
        return [canonical(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, frozenset | set):
        return sorted(canonical(v, where) for v in value)
    if (type(value).__module__ == "numpy" and hasattr(value, "tobytes")) or _is_tensor(value):
        return {"array": array_digest(value)}
    raise BadInput(
        f"{where} is a {type(value).__name__}, which can't be keyed: use numbers, strings, paths, "
        "tuples, mappings, arrays or specs, or mark the field geoframe.unkeyed() if it changes no number"
    )


def digest(value: Any, where: str = "value") -> str:
    """Digest (32 hex digits) of anything `canonical` accepts."""
    text = json.dumps(canonical(value, where), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _own_fields_are_attrs(cls: type) -> bool:
    if "__attrs_attrs__" not in cls.__dict__:
        return False
    annotated = {name for name, kind in inspect.get_annotations(cls).items() if "ClassVar" not in str(kind)}
    return annotated <= {field.name for field in attrs.fields(cls)}


_SHOWN = 6  # items of a tuple in a repr


def short(value: Any) -> str:
    """Return a repr for people: a long tuple as its ends and its length, an array as its shape."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and len(value.shape):
        return f"<{'×'.join(map(str, value.shape))}>"
    if isinstance(value, tuple | list) and len(value) > _SHOWN:
        ends = [*map(short, value[:2]), "…", short(value[-1])]
        return f"<{len(value)}: {', '.join(ends)}>"
    return repr(value)


def _culprit(cls: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Which of the values given a field can't convert, as "field=value"; "" where they all can."""
    fields = [field for field in attrs.fields(cls) if field.init]
    given = dict(zip((field.alias for field in fields if not field.kw_only), args, strict=False)) | dict(kwargs)
    for field in fields:
        convert = getattr(field.converter, "converter", field.converter)  # it may be wrapped in attrs.Converter
        if convert is not None and field.alias in given:
            try:
                convert(given[field.alias])
            except (TypeError, ValueError):
                return f"{field.alias}={short(given[field.alias]):.80}"
    return ""


class _OneLine(type):
    """Makes specs; what can't be made is refused in one line, with near matches for unknown fields."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """Fields of the class, for `help` and completion, which would show `__call__`'s."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]  # of a class, and by its own instances only
        fields = list(signature.parameters.values())[1:]
        return signature.replace(parameters=fields, return_annotation=inspect.Signature.empty)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        known = [field.alias for field in getattr(cls, "__attrs_attrs__", ()) if field.init]
        for name in kwargs:
            if known and name not in known:
                raise BadInput(f"{cls.__name__} has no field {name!r}{did_you_mean(name, known)}")
        try:
            return super().__call__(*args, **kwargs)
        except (TypeError, ValueError) as error:  # attrs' validators put the whole field after the message
            said = str(error.args[0] if error.args else error)
            field = _culprit(cls, args, kwargs) if known else ""
            if isinstance(error, BadInput) and (not field or field.partition("=")[0] in said):
                raise
            where = f"{cls.__name__}: {field}: " if field else f"{cls.__name__}: "
            raise BadInput(where + said) from error


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Spec(metaclass=_OneLine):
    """Base of encoders, probe sets and probes.

    Attributes
    ----------
    name : str or None
        What the object is called in results and figures; not part of the key.
    """

    version: ClassVar[str] = "1"
    kind: ClassVar[str] = "spec"

    name: str | None = unkeyed(default=None)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # its own, or attrs would write another

    def __repr__(self) -> str:
        cls, shown = type(self), []
        for field in attrs.fields(cls):
            if field.repr:
                value = getattr(self, field.name)
                shown.append(f"{field.alias}={field.repr(value) if callable(field.repr) else short(value)}")
        return f"{cls.__qualname__.rpartition('>.')[2]}({', '.join(shown)})"

    def __attrs_post_init__(self) -> None:
        self.check_frozen()
        check_fields(self)

    def default_name(self) -> str:
        """Name used where none was given: that of the class, FeatureNorm or FeatureNormProbe as feature-norm."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(self).__name__.removesuffix("Probe"))
        return words.lower() or type(self).__name__.lower()

    @property
    def label(self) -> str:
        """The name given, or the default one."""
        return self.name or self.default_name()

    def identity(self) -> dict[str, Any]:
        """Everything that determines numbers, as JSON: type, version and keyed fields."""
        fields = {
            f.name: canonical(getattr(self, f.name), f"{type(self).__name__}.{f.name}")
            for f in attrs.fields(type(self))
            if f.metadata.get("keyed", True)
        }
        for f in attrs.fields(type(self)):
            if f.metadata.get("later") and fields[f.name] == canonical(f.default):
                del fields[f.name]  # as keys were before the field was there
        return {"type": type_name(type(self)), "version": self.version, "fields": fields}

    @cached_property
    def key(self) -> str:
        """Digest of `identity`: equal keys mean equal numbers."""
        return digest({"key_version": KEY_VERSION, **self.identity()})

    def check_frozen(self) -> None:
        """Refuse a subclass whose own fields were never turned into attrs fields."""
        cls = type(self)
        if not _own_fields_are_attrs(cls):
            raise BadInput(
                f"{cls.__name__} ({_home(cls)}) is missing a decorator: put @attrs.frozen(kw_only=True) above the class"
            )

    def evolve(self: S, **changes: Any) -> S:
        """Return a copy with some fields changed; an unknown field is an error that suggests near ones."""
        return attrs.evolve(self, **changes)
