"""Published results of another study file, or of other settings: what a run is about to replace, or failed to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from geoframe.files import read_json
from geoframe.plan import Plan
from geoframe.store import RunFolder


def replaced(folder: RunFolder, reference: str, plan: Plan) -> str:
    """Say in one line whose results a run replaces; "" where there are none, or all of them stay.

    Parameters
    ----------
    folder : RunFolder
    reference : str
        `FoundStudy.reference` of the study that is run.
    plan : Plan
    """
    before = folder.read()
    if before is None or not folder.results.exists():
        return ""
    study, whose = before["study"], ""
    if study["reference"] and reference and study["reference"] != reference:
        whose = f"of {study['reference']}"
    elif study["preset"] != plan.study.preset:
        whose = f"of preset {study['preset']}"
    elif (changes := study.get("changes", [])) != list(plan.study.changes):
        whose = f"with {_few(changes)}" if changes else "without these changes"
    elif not {cell["key"] for cell in before["plan"]} <= set(plan.unique()):
        whose = "of the study as it was before"
    if not whose:
        return ""
    then = "this run replaces them once a cell is finished (finished cells stay)"
    return f"the results in {folder.path} are {whose}: {then}"


def of_earlier_settings(folder: RunFolder) -> bool:
    """Whether published results are older than the latest run's settings: it has finished no cell to replace them."""
    run = folder.read()
    return run is not None and not _published(folder.results) <= {cell["key"] for cell in run["plan"]}


def _published(results: Path) -> set[str]:
    """Keys of the cells that are in published results, from the attributes of the probes' nodes."""
    heads: list[Any] = [read_json(path) or {} for path in results.glob("*/zarr.json")]
    nodes = [head["attributes"] for head in heads if "probesets" in head.get("attributes", {})]
    tables = [json.loads(node["cells"]) for node in nodes]
    return {cell["key"] for table in tables for row in table.values() for cell in row.values()}


def _few(changes: list[str]) -> str:
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{changes[0]}{more}"
