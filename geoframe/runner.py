"""Running a study: plan, skip what is done, compute the rest cell by cell, publish, draw."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.agreement import outdated
from geoframe.cells import CellStore, Failure
from geoframe.engines.engine import BlockDone, Event, Failed, Finished, Job, Outdated, Started
from geoframe.errors import MissingFile
from geoframe.explain import Decision, decide, refuse_mixing
from geoframe.field_types import check_memory
from geoframe.foresight import not_found, not_installed, trainings
from geoframe.loading import FoundStudy, find_study
from geoframe.plan import Cell, Plan
from geoframe.progress import Progress
from geoframe.publish import publish
from geoframe.replacing import replaced
from geoframe.report import Report
from geoframe.runlog import RunLog
from geoframe.store import RunFolder
from geoframe.store import open as open_results
from geoframe.study import Study

if TYPE_CHECKING:
    import xarray as xr


@attrs.frozen(kw_only=True)
class Options:
    """How a run is computed; nothing here is part of a key.

    Attributes
    ----------
    device : str
        A torch device; "auto" takes a GPU where there is one.
    engine : str
        A registered engine.
    memory : int or None
        Cap in bytes on the activations of a forward pass.
    set : tuple of str
        The `--set` texts, for run.json.
    """

    device: str = "auto"
    engine: str = "serial"
    memory: int | None = None
    set: tuple[str, ...] = ()


def run(
    study: str | Path | type[Study],
    out: str | Path | None = None,
    preset: str | None = None,
    device: str = "auto",
    set: Iterable[str] = (),
    *,
    engine: str = "serial",
    memory: int | None = None,
    progress: Progress | None = None,
) -> xr.DataTree:
    """Run a study, or finish one that was started, and open its results.

    Parameters
    ----------
    study : str, Path or type
        `file.py`, `file.py::Name`, a registered name, or a `Study` subclass.
    out : str or Path, optional
        The run's folder; default `runs/STUDY-PRESET`.
    preset : str, optional
        Default: `quick` if the study has it, else its class body.
    device : str
        A torch device; "auto" takes a GPU where there is one.
    set : iterable of str
        Changes in the grammar of `--set`, such as `"probes.ratio.directions=64"`.
    engine : str
        A registered engine.
    memory : int, optional
        Cap in bytes on the activations of a forward pass.
    progress : Progress, optional
        Told of the run's course; default: silence.

    Returns
    -------
    xarray.DataTree
        See `geoframe.open`.

    Raises
    ------
    RunFailed
        After everything else was published, where some cells failed; `report` has the causes.
    BadInput
        Before anything is computed, where the study or an option can't be used.
    """
    check_memory(memory)
    found = find_study(study)
    options = Options(device=device, engine=engine, memory=memory, set=(set,) if isinstance(set, str) else tuple(set))
    plan = Plan.of(found.study.resolve(preset, options.set))
    report = execute(found, plan, out or default_folder(plan), options, progress or Progress())
    report.raise_if_failed()
    return open_results(report.folder)


def default_folder(plan: Plan) -> Path:
    """Return `runs/STUDY-PRESET`."""
    return Path("runs") / f"{plan.study.name}-{plan.study.preset}"


def execute(found: FoundStudy, plan: Plan, out: str | Path, options: Options, progress: Progress) -> Report:
    """Compute what is missing, publish what is finished, draw the figures; failures are in the report."""
    folder = RunFolder(out)
    report = Report(plan, folder.path)
    with folder.claimed(plan.study.name):
        runner = Runner(plan, folder, options, progress, report)
        runner.prepare(found)
        try:
            runner.compute()
        except KeyboardInterrupt:
            report.interrupted = True
            runner.log.interrupted()
        finally:
            progress.end()
        runner.publish()
    return report


class Runner:
    """One run: deals with an engine's events, and is the only writer of the store."""

    def __init__(self, plan: Plan, folder: RunFolder, options: Options, progress: Progress, report: Report) -> None:
        self.plan = plan
        self.folder = folder
        self.options = options
        self.progress = progress
        self.report = report
        self.cells = CellStore(folder.cells)
        self.log = RunLog(folder)
        self._since: dict[str, float] = {}
        self._left: dict[str, float] = {}  # planned passes of each cell that are not done
        self._waiting: set[str] = set()  # cells that the progress counts and that haven't ended
        self._current = ""
        self._commit = ""

    def prepare(self, found: FoundStudy) -> None:
        """Decide what is run, refuse what can't be, and write run.json."""
        self.report.decisions = decide(self.plan, self.cells)
        if self._missing() or self.options.device != "auto":  # a device that was asked for must exist
            import torch

            from geoframe.settings import device_name, resolve_device

            if problem := not_installed(decision.job.cell for decision in self._missing()):
                raise MissingFile(problem)
            self.device = resolve_device(self.options.device)
            refuse_mixing(self.report.decisions, self.device, device_name(self.device), torch.__version__)
        if said := replaced(self.folder, found.reference, self.plan):
            self.progress.say(said)
        self.log.begin(found, self.plan, self.options.set)
        self._commit = found.commit
        for decision in self.report.decisions:
            if decision.job.complete:
                self.cells.pack(decision.job.cell.key)  # a run may have been killed before it did

    def compute(self) -> None:
        """Compute what is missing."""
        missing = self._missing()
        if not missing:
            return
        self._left = {decision.job.cell.key: decision.passes_left() or 0.0 for decision in missing}
        self._waiting = {*self._left}
        cells = [decision.job.cell for decision in missing]
        self._warn(cells)
        self.progress.begin([(cell, self._left[cell.key]) for cell in cells])
        for decision in missing:
            if decision.stale:
                self.cells.clear(decision.job.cell.key)
            if decision.damaged or decision.stale:
                self.progress.say(f"{decision.job.cell.label}: computed again, {decision.reason}")
        self._run([decision.job for decision in self.report.decisions])
        self._run(self._disagreeing())

    def _warn(self, cells: list[Cell]) -> None:
        """Say at once what can't be found: its cells will fail, perhaps after days of others."""
        pending = [training for training, cached in trainings(cells) if not cached]
        for problem in not_found(cells, pending):
            self.progress.say(f"warning: {problem}")

    def _run(self, jobs: list[Job]) -> None:
        if not all(job.complete for job in jobs):
            for event in self._engine().run(jobs):
                self._handle(event)

    def _disagreeing(self) -> list[Job]:
        """Restart cells that can't stand beside what was measured since: files may have changed without a trace."""
        mixed = outdated(self.cells.records())
        jobs = [decision.job for decision in self.report.decisions if decision.job.complete]
        for job in jobs:
            if job.cell.key in mixed:
                job.restart()
                self._handle(Outdated(job, mixed[job.cell.key]))
        return jobs

    def publish(self) -> None:
        """Publish what is finished, and draw the figures from it."""
        published = publish(self.plan, self.cells, self.folder)
        self.report.tables = published.tables
        self.report.problems += published.problems
        self.report.published = published.written
        if self.plan.study.figures and published.written:
            self._draw()

    def _draw(self) -> None:
        from geoframe.drawing import draw

        drawn = draw(self.plan.study, self.folder)
        self.report.figures = drawn.figures
        self.report.problems += drawn.problems

    def _missing(self) -> list[Decision]:
        return [decision for decision in self.report.decisions if not decision.job.complete]

    def _engine(self) -> Any:
        from geoframe.registry import default_registry

        engine = default_registry().get("engine", self.options.engine)
        return engine(device=self.device, memory=self.options.memory, on_pass=self._advance)

    def _advance(self, passes: float) -> None:
        self._left[self._current] = self._left.get(self._current, 0.0) - passes
        self.progress.advance(passes)

    def _more(self, cell: Cell, passes: float) -> None:
        self._left[cell.key] = self._left.get(cell.key, 0.0) + passes
        self.progress.more(cell, passes)

    def _wait_for(self, cell: Cell) -> None:
        """Count a cell that is computed again as a whole."""
        if cell.key not in self._waiting:
            self._waiting.add(cell.key)
            self._left.pop(cell.key, None)
            self.progress.more_cells(1)
        if (passes := cell.passes()) is not None:
            self._more(cell, passes - self._left.get(cell.key, 0.0))

    def _handle(self, event: Event) -> None:
        cell = event.job.cell
        if isinstance(event, Outdated):
            self.cells.clear(cell.key)
            self.progress.say(f"{cell.label}: computed again, {event.reason}")
            self._wait_for(cell)
        elif isinstance(event, Started):
            self._since[cell.key], self._current = time.monotonic(), cell.key
            self.cells.start(event.record)
            self.progress.started(cell)
            if cell.passes() is None:
                count = sum(stop - start for start, stop in event.record.missing(event.job.done))
                self._more(cell, (cell.passes(count) or 0.0) - self._left.get(cell.key, 0.0))
        elif isinstance(event, BlockDone):
            block = event.dataset.assign_attrs(git_commit=self._commit)  # an engine doesn't know the study's
            self.cells.write(cell.key, event.start, block)
        elif isinstance(event, Finished):
            self.cells.pack(cell.key)
            self.cells.forgive(cell.key)
            self.report.finished.append(cell)
            self._end(cell)
        elif isinstance(event, Failed):
            failure = Failure.of(event.error)
            self.cells.fail(cell.key, failure)
            self.report.failures.append((cell, failure))
            self._more(cell, -max(0.0, self._left.get(cell.key, 0.0)))
            self._end(cell, failure)

    def _end(self, cell: Cell, failure: Failure | None = None) -> None:
        seconds = time.monotonic() - self._since.get(cell.key, time.monotonic())
        cause = failure.cause if failure else ""
        self._waiting.discard(cell.key)
        self.log.ended(cell, seconds, cause)
        self.progress.ended(cell, seconds, cause)
