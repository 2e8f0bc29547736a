"""Why each cell of a plan is run or left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from geoframe.agreement import outdated
from geoframe.cells import CellStore, Record
from geoframe.engines.engine import Job
from geoframe.errors import StoreConflict
from geoframe.plan import Cell, Plan
from geoframe.sources import Sources

PARTS = ("encoder", "probeset", "probe")


@attrs.frozen(eq=False)
class Decision:
    """What is done about one cell, and why.

    `stale` says that what is stored no longer counts; `damaged`, that files of it were changed or lost.
    """

    job: Job
    reason: str
    stale: bool = False
    damaged: bool = False

    @property
    def action(self) -> str:
        """Return "run", "resume" or "skip"."""
        if self.job.complete:
            return "skip"
        return "resume" if self.job.done else "run"

    def passes_left(self) -> float | None:
        """Forward passes that are still to be done; None where the number of images isn't known yet."""
        missing = self.job.missing
        return self.job.cell.passes(None if missing is None else sum(stop - start for start, stop in missing))


def decide(plan: Plan, cells: CellStore) -> list[Decision]:
    """Compare a plan with what is stored; reads no data and loads nothing."""
    keys, sources, records = plan.unique(), Sources(), list(cells.records())
    strangers = [record for record in records if record.key not in keys]
    mixed = outdated(records)
    return [_decide(cell, cells, strangers, sources, mixed.get(cell.key, "")) for cell in keys.values()]


def refuse_mixing(decisions: list[Decision], device: str, device_name: str, torch: str) -> None:
    """Refuse to go on with a half-finished cell on another device or version of torch than it was started with.

    Raises
    ------
    StoreConflict
        One line that says what differs and what to do.
    """
    here = {"device": device, "device_name": device_name, "torch": torch}
    for job in (decision.job for decision in decisions if decision.job.done and not decision.job.complete):
        settings = job.record.settings if job.record else {}
        for name, value in here.items():
            if settings.get(name) != value:
                raise StoreConflict(
                    f"cell {job.cell.label} is half finished with {name.replace('_', ' ')} {settings.get(name)}, "
                    f"but here it is {value}: go on with the former (--device {settings.get('device')}), or delete "
                    f"its files cells/{job.cell.key}* to compute it again"
                )


def _decide(cell: Cell, cells: CellStore, strangers: list[Record], sources: Sources, mixed: str) -> Decision:
    record = cells.record(cell.key)
    failure = cells.failure(cell.key)
    failed = f"failed before: {failure.cause}" if failure else ""
    if record is None:
        return Decision(Job(cell), failed or _changed(cell, strangers) or "new")
    stale = sources.changed(cell.parts, record.sources) or mixed
    if stale:
        return Decision(Job(cell), stale, stale=True)
    job = Job(cell, record, cells.done(record))
    if job.complete:
        return Decision(job, "finished before")
    progress = f"{len(job.done)} of {len(record.blocks)} blocks are done"
    if cells.damaged(cell.key):
        return Decision(job, f"files in {cells.folder} were changed or lost: {progress}", damaged=True)
    return Decision(job, f"{failed}; {progress}" if failed else f"not finished: {progress}")


def _changed(cell: Cell, strangers: list[Record]) -> str:
    """What differs from a cell of the same names that was computed before, field by field."""
    for record in strangers:
        if record.names == cell.names:
            identity = cell.identity()
            changes = (
                f"{part} {cell.names[part]}: {change}"
                for part in PARTS
                for change in differences(record.identity.get(part), identity[part])
            )
            return "key changed: " + ("; ".join(changes) or "another version of geoframe")
    return ""


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the places where two identities differ, as `field before → after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            inner = path if name == "fields" else f"{path}.{name}".lstrip(".")
            yield from differences(before.get(name), after.get(name), inner)
    elif before != after:
        yield f"{path} {_readable(before)} → {_readable(after)}".strip()


def _readable(value: Any) -> str:
    """An identity's value for people: floats are kept there in hexadecimal."""
    if isinstance(value, str) and "0x" in value:
        try:
            return repr(float.fromhex(value))
        except ValueError:
            pass
    if isinstance(value, list):
        return "(" + ", ".join(map(_readable, value[:4])) + (", …)" if len(value) > 4 else ")")
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
