"""Publishing: every finished cell of the plan into `results.zarr`, one node a probe, one a summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
import xarray as xr

from geoframe.agreement import outdated
from geoframe.cells import CellStore, Failure, storable
from geoframe.controls import with_controls
from geoframe.errors import FAILURES, BadInput
from geoframe.files import PARTIAL, remove, sync_tree, writing
from geoframe.merge import merge
from geoframe.plan import Cell, Plan
from geoframe.problems import problem
from geoframe.process import interrupts_later
from geoframe.provenance import readable
from geoframe.store import RunFolder
from geoframe.store import open as open_results
from geoframe.study import ResolvedStudy
from geoframe.training.recipe import Training

SMOKE = "smoke: not results (random weights, trainings of two steps on noise, one image, the fewest directions)"
ALWAYS_BY_CELL = ("weights", "weights_source", "layer", "images")


@attrs.frozen
class Table:
    """A summary as the terminal shows it."""

    title: str
    headers: list[str]
    rows: list[list[str]]
    caption: str = ""


@attrs.define
class Published:
    """What publishing gave besides the store: whether it was written, tables, and why summaries failed."""

    written: bool = False
    tables: list[Table] = attrs.field(factory=list)
    problems: list[Failure] = attrs.field(factory=list)


def publish(plan: Plan, cells: CellStore, folder: RunFolder) -> Published:
    """Merge what is finished, compute the summaries, and put the whole in place of the former results.

    Nothing that changes between equal runs (times, paths) goes in, so that equal runs give equal bytes.
    """
    mixed = outdated(cells.records())  # a run that was stopped couldn't measure them again
    finished = [cell for cell in plan.cells if cell.key not in mixed and cells.is_finished(cell.key)]
    parts = {probe.label: _node(plan, cells, finished, probe.label) for probe in plan.study.probes}
    nodes = {label: node for label, node in parts.items() if node is not None}
    published = Published()
    if not nodes:
        return published
    nodes.update(_training(plan.study, folder, published))
    nodes.update(_summaries(plan.study, nodes, published))
    if plan.study.preset == "smoke" and published.tables:
        last = published.tables[-1]
        published.tables[-1] = attrs.evolve(last, caption="\n".join(filter(None, (last.caption, SMOKE))))
    root = xr.Dataset(attrs=_root_attrs(plan.study))
    new = folder.path / f"results.zarr{PARTIAL}"
    remove(new)
    with writing(folder.results):
        tree = xr.DataTree.from_dict({"/": root, **{f"/{name}": storable(node) for name, node in nodes.items()}})
        with interrupts_later():
            tree.to_zarr(new, mode="w", consolidated=False)
        sync_tree(new)
    folder.swap_results(new)
    published.written = True
    return published


def _node(plan: Plan, cells: CellStore, publishable: list[Cell], probe: str) -> xr.Dataset | None:
    """One probe's node, or None where none of its cells is finished."""
    encoders, probesets = plan.study.encoders, plan.study.probesets
    row = {encoder.label: place for place, encoder in enumerate(encoders)}
    column = {probeset.label: place for place, probeset in enumerate(probesets)}
    finished = {
        (row[cell.encoder.label], column[cell.probeset.label]): cell
        for cell in publishable
        if cell.probe.label == probe
    }
    if not finished:
        return None
    parts = {place: cells.read(cell.key) for place, cell in finished.items()}
    node = with_controls(merge(parts, encoders, probesets), encoders)
    return node.assign_attrs(_node_attrs(plan.study, finished, parts))


def _training(study: ResolvedStudy, folder: RunFolder, published: Published) -> dict[str, xr.Dataset]:
    """Losses and accuracies of the encoders that were trained here, if there are any."""
    if not any(isinstance(getattr(encoder, "training", None), Training) for encoder in study.encoders):
        return {}
    from geoframe.training.node import NODE, training_node

    try:
        former = open_results(folder.path).children.get(NODE) if folder.results.exists() else None
        node = training_node(study.encoders, None if former is None else former.to_dataset().load())
    except FAILURES as error:
        published.problems.append(problem(f"node {NODE}", error))
        node = None
    return {} if node is None else {NODE: node}


def _node_attrs(
    study: ResolvedStudy, cells: Mapping[tuple[int, int], Cell], parts: Mapping[tuple[int, int], xr.Dataset]
) -> dict[str, str]:
    """Provenance: as in one cell where all cells agree, and by encoder and probe set where they may differ."""
    first = next(iter(parts.values())).attrs
    common = {
        name: value
        for name, value in first.items()
        if name not in ALWAYS_BY_CELL and all(part.attrs.get(name) == value for part in parts.values())
    }
    by_cell: dict[str, dict[str, Any]] = {}
    for place, cell in cells.items():
        own = {name: value for name, value in parts[place].attrs.items() if name not in common}
        by_cell.setdefault(cell.encoder.label, {})[cell.probeset.label] = {"key": cell.key, **own}
    specs = {
        "encoders": {encoder.label: readable(encoder.identity()) for encoder in study.encoders},
        "probesets": {probeset.label: readable(probeset.identity()) for probeset in study.probesets},
    }
    return {**common, **{name: _json(value) for name, value in specs.items()}, "cells": _json(by_cell)}


def _summaries(study: ResolvedStudy, nodes: Mapping[str, xr.Dataset], published: Published) -> dict[str, xr.Dataset]:
    """Compute the summaries; one that fails costs the run nothing but itself."""
    tree = xr.DataTree.from_dict({f"/{name}": node for name, node in nodes.items()})
    found: dict[str, xr.Dataset] = {}
    for summary in study.summaries:
        try:
            dataset = summary.compute(tree)
            if not isinstance(dataset, xr.Dataset):
                raise BadInput(f"compute returned a {type(dataset).__name__}, not a Dataset")
            tables = [_table(*parts) for parts in summary.tables(dataset)]
            tables[-1:] = [attrs.evolve(last, caption=_text(summary.caption)) for last in tables[-1:]]
        except FAILURES as error:
            published.problems.append(problem(f"summary {summary.label}", error, tree.children))
        else:
            found[summary.label] = dataset
            published.tables += tables
    return found


def _table(title: Any, headers: Iterable[Any], rows: Iterable[Iterable[Any]]) -> Table:
    """Return a table as text; what the terminal couldn't show is refused."""
    table = Table(_text(title), [*map(_text, headers)], [[*map(_text, row)] for row in rows])
    for place, row in enumerate(table.rows, start=1):
        if len(row) != len(table.headers):
            raise BadInput(f"row {place} of its table has length {len(row)}, but the headers have {len(table.headers)}")
    return table


def _text(value: Any) -> str:
    """Return text as it is, and a number (numpy's too) as text."""
    if not isinstance(value, str | int | float | np.generic):
        raise BadInput(f"its table holds {value!r:.80}, a {type(value).__name__}: give text or a number")
    return str(value)


def _root_attrs(study: ResolvedStudy) -> dict[str, str]:
    return {
        "study": study.name,
        "title": study.title,
        "preset": study.preset,
        "changes": _json(list(study.changes)),
    }


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
