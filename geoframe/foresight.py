"""What a run will need besides forward passes: trainings that aren't in the cache, and data that can't be found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from geoframe import attacks
from geoframe.attacks import Attack
from geoframe.encoder import Encoder
from geoframe.errors import GeoframeError
from geoframe.plan import Cell
from geoframe.probeset import ProbeSet
from geoframe.spec import Spec
from geoframe.training.cache import TrainingCache
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.moments import Moment
from geoframe.training.recipe import Training

SHOWN = 6  # names of trainings in a line


def trainings(cells: Iterable[Cell]) -> list[tuple[Training, bool]]:
    """Return the trainings behind cells, and whether all checkpoints that are measured are in the cache."""
    found: dict[str, tuple[Training, list[Moment]]] = {}
    for encoder in dict.fromkeys(spec for cell in cells for spec in nested(cell.encoder)):
        if isinstance(encoder, TrainedEncoder) and encoder.moment is not None:
            found.setdefault(encoder.training.key, (encoder.training, []))[1].append(encoder.moment)
    return [(training, TrainingCache(training).holds(moments)) for training, moments in found.values()]


def trainings_line(found: list[tuple[Training, bool]]) -> str:
    """Say how many trainings come first, and which of them are done; of many, the first ones that aren't."""
    epochs = sorted({training.epochs for training, _ in found})
    each = f" of {_epochs(epochs[0])}" if len(epochs) == 1 else ""
    names = []
    for training, cached in sorted(found, key=lambda pair: pair[1]):
        notes = [_epochs(training.epochs)] * (len(epochs) > 1) + ["cached"] * cached
        names.append(training.label + (f" ({', '.join(notes)})" if notes else ""))
    many = f"{len(found)} trainings{each} come" if len(found) > 1 else f"1 training{each} comes"
    done = sum(cached for _, cached in found)
    has = f", which has {done} of them" if done and len(found) > SHOWN else ""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{many} first where not in the cache{has}: {', '.join(names[:SHOWN])}{more}"


def not_found(cells: Iterable[Cell], pending: Iterable[Training]) -> list[str]:
    """Say what can't be found now: weights, and the images of probe sets, reference sets and trainings to come."""
    specs = [spec for cell in cells for spec in _read(cell)]
    wanted = {id(inner): inner for spec in (*specs, *pending) for inner in nested(spec)}
    sources = [spec for spec in wanted.values() if isinstance(spec, ProbeSet | Encoder)]
    problems = ((spec, _problem(spec)) for spec in sources)
    return list(dict.fromkeys(_line(spec, problem) for spec, problem in problems if problem))


def _line(spec: ProbeSet | Encoder, problem: str) -> str:
    return problem if isinstance(spec, Encoder) else f"the data of {spec.label!r} can't be found: {problem}"


def not_installed(cells: Iterable[Cell]) -> str:
    """Say which package the probes' attacks need and isn't there; "" where all are."""
    return attacks.not_installed(spec for cell in cells for spec in nested(cell.probe) if isinstance(spec, Attack))


def nested(value: Any) -> Iterator[Spec]:
    """Yield a value that is a spec, and all specs in its fields and containers."""
    if isinstance(value, Spec):
        yield value
        for field in attrs.fields(type(value)):
            yield from nested(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from nested(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from nested(inner)


def _epochs(n: int) -> str:
    return f"{n} epoch" if n == 1 else f"{n} epochs"


def _read(cell: Cell) -> Iterator[Spec]:
    """What is read to measure a cell: encoder, probe set and probe, and the training images where rays start there."""
    if not isinstance(cell.encoder, TrainedEncoder):
        yield cell.encoder
    yield cell.probeset
    yield cell.probe
    rays = "reference_id" in cell.probe.declared() and getattr(cell.probe, "reference", None) is None
    if rays and cell.encoder.training_set is not None:
        yield cell.encoder.training_set


def _problem(spec: ProbeSet | Encoder) -> str:
    try:
        return spec.missing()
    except (GeoframeError, OSError) as error:
        return " ".join(str(error).split())
