"""What a run came to: cells done and failed, figures, tables, and the exit code."""

from __future__ import annotations

from pathlib import Path

import attrs

from geoframe.cells import Failure
from geoframe.errors import GeoframeError
from geoframe.explain import Decision
from geoframe.plan import Cell, Plan
from geoframe.publish import Table

DONE, SOME_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


@attrs.define
class Report:
    """The outcome of a run.

    Attributes
    ----------
    plan : Plan
    folder : Path
        The run's folder.
    decisions : list of Decision
        What was run or left alone, and why.
    finished : list of Cell
        Cells computed this time.
    failures : list of (Cell, Failure)
        Cells that failed this time.
    problems : list of Failure
        Summaries and figures that failed.
    tables : list of Table
        The summaries.
    figures : list of Path
        Figures written.
    interrupted : bool
        Whether the run was stopped before its end.
    published : bool
        Whether anything is finished, so that results were written.
    """

    plan: Plan
    folder: Path
    decisions: list[Decision] = attrs.field(factory=list)
    finished: list[Cell] = attrs.field(factory=list)
    failures: list[tuple[Cell, Failure]] = attrs.field(factory=list)
    problems: list[Failure] = attrs.field(factory=list)
    tables: list[Table] = attrs.field(factory=list)
    figures: list[Path] = attrs.field(factory=list)
    interrupted: bool = False
    published: bool = False

    @property
    def exit_code(self) -> int:
        """Return 0 done, 1 something failed, 2 nothing could be measured for bad input, 130 interrupted."""
        if self.interrupted:
            return INTERRUPTED
        if self.failures:
            nothing = len(self.failures) == len(self.plan.unique())
            return BAD_INPUT if nothing and all(f.bad_input for _, f in self.failures) else SOME_FAILED
        return SOME_FAILED if self.problems else DONE

    def raise_if_failed(self) -> None:
        """Raise `RunFailed` where anything failed, `KeyboardInterrupt` where the run was stopped."""
        if self.interrupted:
            raise KeyboardInterrupt
        if self.exit_code:
            raise RunFailed(self)


class RunFailed(GeoframeError):
    """Some cells, summaries or figures failed; everything else is published. `report` has the causes."""

    def __init__(self, report: Report) -> None:
        causes = [f"{cell.label}: {failure.cause}" for cell, failure in report.failures]
        causes += [problem.cause for problem in report.problems]
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        if report.failures:
            what, hint = f"{len(report.failures)} of {len(report.plan.unique())} cells failed", "run it again to retry"
        else:
            what, hint = "every cell is finished, but", "correct that and run it again: nothing is measured twice"
        colon = ": " if report.failures else " "
        super().__init__(f"{what}{colon}{causes[0]}{more}; the rest is in {report.folder}; {hint}")
        self.report = report
