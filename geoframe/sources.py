"""The files behind specs, and behind the specs nested in them: cheap digests tell whether they have changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from geoframe.errors import GeoframeError
from geoframe.spec import Spec

_NOUN = {"encoder": "weights of encoder", "probeset": "files of probe set"}


class Sources:
    """Digests of the files behind specs; each spec is asked once in the life of this object."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self._told: dict[str, dict[str, str]] = {}

    def of(self, parts: Mapping[str, Any]) -> dict[str, str]:
        """Return the digest of each spec that has one, by path: {"probe.reference": "…"} of {"probe": spec}.

        The files that a spec tells one by one are there, too: {"encoder:nets.py": "…"}.
        """
        found: dict[str, str | None] = {}
        for path, spec in _all_nested(parts):
            found[path] = self._digest(spec)
            found.update({f"{path}:{name}": digest for name, digest in self._files(spec).items()})
        return {path: digest for path, digest in found.items() if digest is not None}

    def changed(self, parts: Mapping[str, Any], before: Mapping[str, str]) -> str:
        """Say what has changed since `of` returned `before`, "" where nothing has.

        Files that can't be found now, or couldn't then, are no evidence: finished results don't mind.
        """
        specs = list(_all_nested(parts))
        told = {path for path, _ in specs if any(name.startswith(f"{path}:") for name in before)}
        for path, spec in specs:
            for name, digest in self._files(spec).items() if path in told else ():
                former = before.get(f"{path}:{name}")
                if former != digest:
                    return f"file {name} {'has changed' if former else 'was not there before'}"
        for path, spec in specs:
            now = self._digest(spec) if path in before and path not in told else None
            if now is not None and now != before[path]:
                place = f" ({path})" if "." in path else ""
                return f"the {_NOUN.get(spec.kind, f'files of {spec.kind}')} {spec.label!r}{place} have changed"
        return ""

    def _digest(self, spec: Spec) -> str | None:
        if spec.key not in self._known:
            self._known[spec.key] = source_of(spec)
        return self._known[spec.key]

    def _files(self, spec: Spec) -> dict[str, str]:
        if spec.key not in self._told:
            self._told[spec.key] = files_of(spec)
        return self._told[spec.key]


def source_of(spec: Spec) -> str | None:
    """Digest of the files behind one spec; None where it has none, or they can't be read."""
    ask = getattr(spec, "source_digest", None)
    try:
        return None if ask is None else ask()
    except (GeoframeError, OSError):
        return None


def files_of(spec: Spec) -> dict[str, str]:
    """sha256 of each file of code or weights behind a spec, by name, where it can tell."""
    ask = getattr(spec, "source_files", None)
    try:
        return {} if ask is None else ask()
    except (GeoframeError, OSError):
        return {}


def _all_nested(parts: Mapping[str, Any]) -> Iterator[tuple[str, Spec]]:
    for path, part in parts.items():
        yield from _nested(part, path)


def _nested(value: Any, path: str) -> Iterator[tuple[str, Spec]]:
    """Yield a value that is a spec, and all specs in its keyed fields and containers, with their paths."""
    if isinstance(value, Spec):
        yield path, value
        for field in attrs.fields(type(value)):
            if field.metadata.get("keyed", True):
                yield from _nested(getattr(value, field.name), f"{path}.{field.name}")
        yield from _nested(getattr(value, "training_set", None), f"{path}.training_set")  # probes may draw from it
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _nested(inner, f"{path}.{name}")
    elif isinstance(value, tuple | list):
        for i, inner in enumerate(value):
            yield from _nested(inner, f"{path}.{i}")
