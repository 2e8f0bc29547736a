"""How a run ends on the terminal: tables, files, causes of failures, and how to go on."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from geoframe.cli.options import plural, table

if TYPE_CHECKING:
    from rich.console import Console

    from geoframe.cells import Failure
    from geoframe.report import Report


def conclude(screen: Console, report: Report, traceback: bool) -> None:
    """Print what a run came to; causes of failures go to stderr, one line each."""
    for summary in report.tables:
        shown = table(*summary.headers, title=summary.title)
        for row in summary.rows:
            shown.add_row(*row)
        screen.print(shown, markup=False)
        if summary.caption:
            screen.print(summary.caption, markup=False)
    for path in report.figures:
        screen.print(f"figure   {path}", markup=False, soft_wrap=True)
    if report.published:
        screen.print(f"results  {report.folder / 'results.zarr'}", markup=False, soft_wrap=True)
    for labels, failure in _by_cause(report):
        more = f" (and {len(labels) - 1} more)" if len(labels) > 1 else ""
        complain(f"{labels[0]}{more} failed: {failure.cause}", failure, traceback)
    for problem in report.problems:
        complain(problem.cause, problem, traceback)
    if report.exit_code:
        screen.print(_advice(report), markup=False, soft_wrap=True)


def complain(line: str, failure: Failure, traceback: bool) -> None:
    """Print why something failed to stderr."""
    click.echo(f"geoframe: {line}", err=True)
    if traceback:
        click.echo(failure.traceback, err=True)


def _by_cause(report: Report) -> list[tuple[list[str], Failure]]:
    """Group failed cells by cause: an encoder without weights fails on every probe set."""
    groups: dict[str, tuple[list[str], Failure]] = {}
    for cell, failure in report.failures:
        groups.setdefault(failure.cause, ([], failure))[0].append(cell.label)
    return list(groups.values())


def _advice(report: Report) -> str:
    """One line: how far the run is, and how to go on."""
    from geoframe.report import BAD_INPUT

    total = len(report.plan.unique())
    if not report.failures and not report.interrupted:
        return (
            f"incomplete: all of {plural(total, 'cell')} are finished, but a summary or figure failed: correct what is "
            "said above and run the same command, which measures nothing again"
        )
    done = sum(decision.job.complete for decision in report.decisions)
    if not done and report.exit_code == BAD_INPUT:
        return "nothing was measured: correct what is said above, and run it again"
    state = "stopped" if report.interrupted else "incomplete"
    command = shlex.join(["geoframe", *sys.argv[1:]])
    return f"{state}: {done} of {total} cells are finished; to go on, run the same command: {command}"
