"""What a study's class body may hold: checks that name the class, the field, and what to do."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from geoframe.encoder import Encoder
from geoframe.errors import BadInput, did_you_mean
from geoframe.output_checks import check_outputs
from geoframe.overrides import Fields
from geoframe.probe import Probe
from geoframe.probeset import ProbeSet
from geoframe.spec import Spec

FILE_MODULE = "geoframe_file_"

BELONGS: dict[str, Callable[[object], bool]] = {
    "encoders": lambda item: isinstance(item, Encoder),
    "probesets": lambda item: isinstance(item, ProbeSet),
    "probes": lambda item: isinstance(item, Probe),
    "figures": lambda item: isinstance(item, Spec) and hasattr(item, "draw"),
    "summaries": lambda item: isinstance(item, Spec) and hasattr(item, "compute"),
}
_NOUN = {
    "encoders": "an Encoder",
    "probesets": "a ProbeSet",
    "probes": "a Probe",
    "figures": "a Figure",
    "summaries": "a Summary",
}
_PLURAL = {"encoders": "encoders", "probesets": "probe sets", "probes": "probes", "summaries": "summaries"}
_NODE_FIELDS = (  # what summaries and figures call their nodes: a name, or a tuple of names
    "probe",
    "different",
    "gi",
    "linearity",
    "jacobian",
    "clean",
    "nodes",
    "gradient",
    "differences",
    "moves",
)
RESERVED = "training"  # the results' node that publishing adds
_REQUIRED = ("encoders", "probesets", "probes")
KNOWN = (*BELONGS, "presets", "match", "name", "title")


def check_items(field: str, items: object, where: str) -> None:
    """Refuse a field that isn't a tuple, and items of the wrong kind."""
    if not isinstance(items, tuple | list):
        hint = f"; write {field} = (…,)" if BELONGS[field](items) else ""
        raise BadInput(f"{where}: field {field!r} must be a tuple, not {type(items).__name__}{hint}")
    for item in items:
        if isinstance(item, type):
            raise BadInput(f"{where}: field {field!r} holds the class {item.__name__}: write {item.__name__}(…)")
        if not BELONGS[field](item):
            raise BadInput(f"{where}: field {field!r} holds {item!r:.80}, which is not {_NOUN[field]}")


def where_of(cls: type) -> str:
    """Class and file, for messages; a file loaded by path is named by whoever loads it."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return f"study {cls.__name__}" + (f" in {file}" if file and not cls.__module__.startswith(FILE_MODULE) else "")


def check_names(cls: type, where: str) -> None:
    """Refuse anything in a class body that is no field of a study."""
    own = {*cls.__dict__, *inspect.get_annotations(cls)}
    for field in sorted(own):
        if not (field.startswith("__") and field.endswith("__")) and field not in KNOWN:
            raise BadInput(f"{where}: no field {field!r}{did_you_mean(field, KNOWN)}")
        if field in KNOWN and field not in cls.__dict__:
            raise BadInput(f"{where}: field {field!r} is annotated but has no value")


def check_texts(cls: Any, where: str) -> None:
    """Refuse a name that can't name a folder, and a title that isn't text."""
    for field in ("name", "title", "match"):
        if not isinstance(getattr(cls, field), str):
            raise BadInput(f"{where}: field {field!r} must be a string, not {type(getattr(cls, field)).__name__}")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", cls.name):
        raise BadInput(f"{where}: name {cls.name!r} must be letters, digits and _ . + - (it names a folder)")


def check_distinct(fields: Fields, where: str) -> None:
    """Refuse equal labels within encoders, within probe sets, and among what becomes nodes of the results."""
    for group in (("encoders",), ("probesets",), ("probes", "summaries")):
        seen: dict[str, str] = {}
        for field, item in ((name, item) for name in group for item in fields[name]):
            label = item.label
            if label in seen:
                two = f"two {_PLURAL[field]}" if seen[label] == field else "a probe and a summary"
                raise BadInput(f"{where}: {two} are called {label!r}: give one of them another name=")
            seen[label] = field
    for label in (item.label for field in ("probes", "summaries") for item in fields[field]):
        if label == RESERVED:
            raise BadInput(
                f"{where}: the results' node {RESERVED!r} holds what is known of trainings: give the probe or summary "
                "another name="
            )
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", label):
            raise BadInput(
                f"{where}: name {label!r} must be letters, digits and _ . + - (it names a node of the results)"
            )


def check_runnable(fields: Fields, where: str) -> None:
    """Refuse a study with nothing to measure, or whose labels clash."""
    for field in _REQUIRED:
        if not fields[field]:
            raise BadInput(f"{where} has no {field}: nothing to measure")
    for probe in fields["probes"]:
        check_outputs(probe)
    check_distinct(fields, where)


def nodes_needed(item: Any) -> dict[str, str]:
    """Nodes of the results that a summary or figure is made from, where it says so, and which field names each, if any.

    A figure of somebody else's that has `Figure`'s own default may draw from anything.
    """
    fields = {"": getattr(item, "needs_node", ""), **{field: getattr(item, field, "") for field in _NODE_FIELDS}}
    silent = "ratio" if item.kind == "figure" and not type(item).__module__.startswith("geoframe.") else ""
    return {
        name: field
        for field, names in fields.items()
        for name in (names if isinstance(names, tuple) else (names,))
        if isinstance(name, str) and name not in ("", silent)
    }


def check_nodes(fields: Fields, where: str) -> None:
    """Refuse a summary or figure whose node no probe and no summary of the study makes."""
    made = [item.label for item in (*fields["probes"], *fields["summaries"])]
    if any(getattr(encoder, "training", None) is not None for encoder in fields["encoders"]):
        made.append(RESERVED)
    for field in ("summaries", "figures"):
        for item in fields[field]:
            for name, named_by in nodes_needed(item).items():
                if name not in made:
                    by, change = (f" (its {named_by})", f"change {named_by}, ") if named_by else ("", "")
                    raise BadInput(
                        f"{where}: {item.kind} {item.label!r} is made from the results of {name!r}{by}, which the "
                        f"study doesn't measure: add that, {change}or leave the {item.kind} out"
                        f"{did_you_mean(name, [label for label in made if label != item.label])}"
                    )


def check_match(match: str, fields: Sequence[Fields], where: str) -> None:
    """Refuse a coordinate that the study's encoders, or its probe sets, never have: it would pair all with all."""
    for field in ("encoders", "probesets") if match else ():
        known = {name for part in fields for spec in part[field] for name in spec.coords}
        if match not in known:
            noun = "encoder" if field == "encoders" else "probe set"
            raise BadInput(f"{where}: match={match!r}, but no {noun} has that coordinate{did_you_mean(match, known)}")


def merged_presets(cls: type, where: str) -> dict[str, dict[str, Any]]:
    """The class's own presets over those of its bases, override by override."""
    own = cls.__dict__.get("presets", {})
    if not isinstance(own, Mapping) or not all(isinstance(changes, Mapping) for changes in own.values()):
        raise BadInput(f"{where}: presets must map names to mappings: {{'quick': {{'probes.ratio.directions': 32}}}}")
    if "paper" in own:
        raise BadInput(f"{where}: preset 'paper' is the class body itself: put its values there")
    for preset, changes in own.items():
        for path in changes:
            if not isinstance(path, str) or path.partition(".")[0] not in BELONGS:
                head = str(path).partition(".")[0]
                raise BadInput(f"{where}: preset {preset!r}: no field {head!r}{did_you_mean(head, BELONGS)}")
    merged: dict[str, dict[str, Any]] = {}
    for presets in (*(getattr(base, "presets", {}) for base in reversed(cls.__bases__)), own):
        for preset, changes in presets.items():
            merged[preset] = {**merged.get(preset, {}), **changes}
    return merged
