"""`Study`: which encoders, probe sets and probes make one result, declared in a class body. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import attrs

from geoframe.encoder import Encoder
from geoframe.errors import UnknownName, did_you_mean
from geoframe.overrides import Fields, Override, apply, ordered, parse, short
from geoframe.probe import Probe
from geoframe.probeset import ProbeSet
from geoframe.spec import Spec
from geoframe.study_checks import (
    BELONGS,
    check_distinct,
    check_items,
    check_match,
    check_names,
    check_nodes,
    check_runnable,
    check_texts,
    merged_presets,
    where_of,
)


@attrs.frozen
class ResolvedStudy:
    """A study with one preset and the user's changes applied.

    Attributes
    ----------
    name, title, preset : str
        What it is called, its one-line description, and the active preset.
    encoders, probesets, probes, figures, summaries : tuple of Spec
        What is measured, drawn and tabulated.
    changes : tuple of str
        What the preset and `--set` changed, for people to read.
    match : str
        Coordinate in which an encoder and a probe set must agree to be measured together; "" for no condition.
    """

    name: str
    title: str
    preset: str
    encoders: tuple[Encoder, ...]
    probesets: tuple[ProbeSet, ...]
    probes: tuple[Probe, ...]
    figures: tuple[Any, ...] = ()
    summaries: tuple[Any, ...] = ()
    changes: tuple[str, ...] = ()
    match: str = ""


class Study:
    """Base of studies: subclass it and name fields in the class body.

    Attributes
    ----------
    encoders, probesets, probes : tuple
        Every combination of the three is one cell.
    figures, summaries : tuple
        What is drawn and tabulated from the stored results.
    presets : mapping of str to mapping
        Overrides in the grammar of `--set`, `{"quick": {"probes.ratio.directions": 32}}`, or whole fields,
        `{"quick": {"encoders": (...)}}`; merged with those of the base classes. The class body itself is preset
        `paper`; every study has a preset `smoke`, which needs no data and no download: random weights, trainings of two
        steps, one image, the fewest directions.
    match : str
        Name of a coordinate, "dataset" say: an encoder and a probe set that both have it, with different values, are
        not measured together (MNIST's classifier on MNIST's test images, not on Fashion-MNIST's). Default: all are.
    name, title : str
        Default: the class's name in lower case, and the first line of its docstring.
    """

    encoders: ClassVar[tuple[Encoder, ...]] = ()
    probesets: ClassVar[tuple[ProbeSet, ...]] = ()
    probes: ClassVar[tuple[Probe, ...]] = ()
    figures: ClassVar[tuple[Any, ...]] = ()
    summaries: ClassVar[tuple[Any, ...]] = ()
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    match: ClassVar[str] = ""
    name: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        where = where_of(cls)
        check_names(cls, where)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        if "title" not in cls.__dict__:
            cls.title = (cls.__doc__ or "").strip().partition("\n")[0].strip()
        check_texts(cls, where)
        for field in BELONGS:
            check_items(field, getattr(cls, field), where)
        check_distinct(body(cls), where)
        cls.presets = merged_presets(cls, where)

    @classmethod
    def preset_names(cls) -> list[str]:
        """Names of the presets that can be chosen."""
        return sorted({"paper", "smoke", *cls.presets})

    @classmethod
    def resolve(cls, preset: str | None = None, set: Iterable[str] = ()) -> ResolvedStudy:
        """Apply a preset (default: `quick` if there is one, else the class body), then the `--set` texts in `set`.

        Raises
        ------
        BadInput
            Where a preset, a path or a value is not one, or what remains can't be run: one line.
        """
        chosen = preset or ("quick" if "quick" in cls.presets else "paper")
        if chosen not in cls.preset_names():
            raise UnknownName(f"study {cls.name!r} has no preset {chosen!r}{did_you_mean(chosen, cls.preset_names())}")
        fields = body(cls)
        check_runnable(fields, where_of(cls))
        fields, changes = _smoke(fields) if chosen == "smoke" else (fields, [])
        mine = [Override(path, value) for path, value in cls.presets.get(chosen, {}).items()]
        for source, overrides in ((f"preset {chosen!r}", mine), ("--set", [parse(text) for text in set])):
            for override in ordered(overrides):
                fields, change = apply(fields, override, source)
                changes += change
        for field, items in fields.items():
            check_items(field, items, f"{where_of(cls)}, preset {chosen!r}")
        check_runnable(fields, f"{where_of(cls)}, preset {chosen!r}")
        check_match(cls.match, (body(cls), fields), where_of(cls))
        check_nodes(fields, f"{where_of(cls)}, preset {chosen!r}")
        return ResolvedStudy(cls.name, cls.title, chosen, **fields, changes=tuple(changes), match=cls.match)


def body(cls: type[Study]) -> Fields:
    """What the class body declares, field by field."""
    return {field: getattr(cls, field) for field in BELONGS}


def _smoke(fields: Fields) -> tuple[Fields, list[str]]:
    """The smallest run of every row: random weights, trainings of two steps, one photograph, the fewest directions."""
    first = fields["probesets"][0].smoke()
    small = {
        **fields,
        "encoders": tuple(_same_label(e.smoke(), e) for e in fields["encoders"]),
        "probesets": (first,),
        "probes": tuple(_same_label(p.smoke(), p) for p in fields["probes"]),
    }
    weights = "random weights; trainings are two steps on noise"
    changes = [f"encoders: {weights}", f"probesets: {short(fields['probesets'])} → one image, called {first.label}"]
    for before, after in zip(fields["probes"], small["probes"], strict=True):
        changes += _differences(before, after)
    return small, changes


def _same_label(spec: Spec, like: Spec) -> Spec:
    return spec if spec.label == like.label else spec.evolve(name=like.label)


def _differences(before: Spec, after: Spec) -> list[str]:
    values = ((f.name, getattr(before, f.name), getattr(after, f.name)) for f in attrs.fields(type(before)))
    path = f"probes.{before.label}"
    return [f"{path}.{n}: {short(a)} → {short(b)}" for n, a, b in values if n != "name" and short(a) != short(b)]
