"""`geoframe plot OUT`."""

from __future__ import annotations

from pathlib import Path

import click

from geoframe.cli.options import TRACEBACK, console, traceback_option


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--study", help="Take the figures from this study. Default: the one that made the run.")
@traceback_option
@click.pass_context
def plot(ctx: click.Context, out: Path, study: str | None) -> None:
    """Draw the figures of the run in folder OUT again, from its stored results."""
    from geoframe.cli.conclude import complain
    from geoframe.cli.status import read_run
    from geoframe.drawing import draw
    from geoframe.errors import BadInput
    from geoframe.loading import find_study
    from geoframe.replacing import of_earlier_settings
    from geoframe.store import open as open_results

    folder, run = read_run(out)
    made = run["study"]
    reference = study or made["reference"]
    if not reference:
        raise BadInput(f"{out} was made by a study that is not in a file: name one with --study")
    resolved = find_study(reference).study.resolve(made["preset"], made["set"])
    if not resolved.figures:
        raise BadInput(f"study {resolved.name!r} has no figures in preset {made['preset']!r}")
    open_results(folder.path)  # says what is missing, if anything
    screen = console()
    if of_earlier_settings(folder):
        screen.print(f"the results in {out} are of earlier settings than the last run's", markup=False, soft_wrap=True)
    drawn = draw(resolved, folder)
    for path in drawn.figures:
        screen.print(f"figure   {path}", markup=False, soft_wrap=True)
    for problem in drawn.problems:
        complain(problem.cause, problem, bool(ctx.meta.get(TRACEBACK)))
    ctx.exit(1 if drawn.problems else 0)
