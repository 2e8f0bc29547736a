"""`geoframe run STUDY`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from geoframe.cli.options import TRACEBACK, console, plural, table, traceback_option

if TYPE_CHECKING:
    from rich.console import Console

    from geoframe.estimate import Estimator
    from geoframe.explain import Decision
    from geoframe.loading import FoundStudy
    from geoframe.plan import Plan
    from geoframe.training.recipe import Training


@click.command()
@click.argument("study")
@click.option("--preset", help="quick, small, paper, smoke or one of the study's own. Default: quick if there is one.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder. Default: runs/STUDY-PRESET.")
@click.option("--device", default="auto", show_default=True, help="A torch device; auto takes a GPU if there is one.")
@click.option("--set", "changes", multiple=True, metavar="PATH=VALUE", help="Such as probes.ratio.directions=64.")
@click.option("--engine", default="serial", show_default=True, help="What computes the cells.")
@click.option("--dry-run", is_flag=True, help="Print cells, forward passes and an estimate of time; run nothing.")
@click.option("--explain", is_flag=True, help="Print why each cell is run or skipped.")
@traceback_option
@click.pass_context
def run(
    ctx: click.Context,
    study: str,
    preset: str | None,
    out: Path | None,
    device: str,
    changes: tuple[str, ...],
    engine: str,
    dry_run: bool,
    explain: bool,
) -> None:
    """Run a study, or finish one that was started.

    STUDY is a file.py, a file.py::Name, or a name that `geoframe list` shows. The same command resumes a run that was
    stopped; finished cells stay finished. Exit codes: 0 done, 1 something failed, 2 bad input, 130 interrupted.
    """
    from geoframe.loading import find_study
    from geoframe.plan import Plan

    found = find_study(study)
    plan = Plan.of(found.study.resolve(preset, changes))
    screen = console()
    _announce(screen, plan)
    if dry_run or explain:
        _foresee(screen, found, plan, out, device, dry_run=dry_run, explain=explain)
    if dry_run:
        return
    from geoframe.cli.conclude import conclude
    from geoframe.cli.progress import progress_for
    from geoframe.registry import default_registry
    from geoframe.runner import Options, default_folder, execute

    default_registry().find("engine", engine)  # an unknown one is refused also where nothing is left to compute
    options = Options(device=device, engine=engine, set=changes)
    report = execute(found, plan, out or default_folder(plan), options, progress_for(screen))
    conclude(screen, report, bool(ctx.meta.get(TRACEBACK)))
    ctx.exit(report.exit_code)


def _announce(screen: Console, plan: Plan) -> None:
    study = plan.study
    screen.print(f"{study.name}: {study.title}" if study.title else study.name, markup=False, soft_wrap=True)
    what = ", which changes:" if study.changes else ""
    screen.print(f"preset {study.preset}{what}", markup=False)
    for change in study.changes:
        screen.print(f"  {change}", markup=False, soft_wrap=True)


def _foresee(
    screen: Console, found: FoundStudy, plan: Plan, out: Path | None, device: str, *, dry_run: bool, explain: bool
) -> None:
    from geoframe.cells import CellStore
    from geoframe.explain import decide
    from geoframe.replacing import replaced
    from geoframe.runner import default_folder
    from geoframe.store import RunFolder

    folder = RunFolder(out or default_folder(plan))
    folder.check(plan.study.name)
    decisions = decide(plan, CellStore(folder.cells))
    if explain:
        for decision in decisions:
            line = f"{decision.action:6}  {decision.job.cell.label}: {decision.reason}"
            screen.print(line, markup=False, soft_wrap=True)
    if dry_run:
        if said := replaced(folder, found.reference, plan):
            screen.print(said, markup=False, soft_wrap=True)
        _estimate(screen, decisions, device)


def _estimate(screen: Console, decisions: list[Decision], device: str) -> None:
    from geoframe.estimate import Estimator, readable_time
    from geoframe.probes.searching import SteppedProbe

    estimator = Estimator(device)
    cells = table("encoder", "probe set", "probe", "images", "forward passes", "time")
    passes, seconds, unknown = 0.0, 0.0, 0
    for decision in decisions:
        cell = decision.job.cell
        left = decision.passes_left()
        took = estimator.cell_seconds(cell, left)
        count = cell.probeset.count()
        cells.add_row(
            *cell.names.values(),
            "?" if count is None else str(count),
            "?" if left is None else f"{left:,.0f}",
            "done" if decision.job.complete else "?" if took is None else readable_time(took),
        )
        passes, seconds, unknown = passes + (left or 0), seconds + (took or 0), unknown + (took is None)
    screen.print(cells)
    rays = any(isinstance(decision.job.cell.probe, SteppedProbe) for decision in decisions)
    known = f", about {readable_time(seconds)} on {estimator.device}{' if no ray ends early' if rays else ''}"
    time = known if unknown < len(decisions) else f"; how long they take on {estimator.device} is not known"
    more = f", and {plural(unknown, 'cell')} of unknown time" if 0 < unknown < len(decisions) else ""
    screen.print(f"{plural(len(decisions), 'cell')}, {passes:,.0f} forward passes{time}{more}", soft_wrap=True)
    _first(screen, decisions, estimator)
    for label, reason in estimator.reasons.items():
        screen.print(f"encoder {label} was not timed: {reason}", markup=False, soft_wrap=True)


def _first(screen: Console, decisions: list[Decision], estimator: Estimator) -> None:
    """Print what comes before the passes: trainings, and data that aren't there yet."""
    from geoframe.foresight import not_found, not_installed, trainings, trainings_line

    cells = [decision.job.cell for decision in decisions if not decision.job.complete]
    found = trainings(cells)
    pending = [training for training, cached in found if not cached]
    lines = [trainings_line(found) + _training_time(pending, estimator)] if found else []
    missing = [not_installed(cells), *not_found(cells, pending)]
    for line in [*lines, *(f"warning: {problem}" for problem in missing if problem)]:
        screen.print(line, markup=False, soft_wrap=True)


def _training_time(pending: list[Training], estimator: Estimator) -> str:
    """Say how long trainings take, as far as that is known; "" where none is left."""
    from geoframe.estimate import readable_time

    times = [estimator.training_seconds(training) for training in pending]
    known = [seconds for seconds in times if seconds is not None]
    if not known:
        return f"; how long on {estimator.device} is not known" if pending else ""
    unknown = f", and {len(times) - len(known)} of unknown time" if len(known) < len(times) else ""
    return f"; about {readable_time(sum(known))} on {estimator.device}{unknown}"
