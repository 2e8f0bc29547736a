"""`geoframe status OUT`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoframe.cli.options import console, table, traceback_option

if TYPE_CHECKING:
    from geoframe.cells import CellStore
    from geoframe.store import RunFolder


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@traceback_option
def status(out: Path) -> None:
    """Show how far the run in folder OUT is, cell by cell."""
    from geoframe.cells import CellStore

    folder, run = read_run(out)
    cells = CellStore(folder.cells)
    listing = table("encoder", "probe set", "probe", "state")
    states = [_state(cells, cell["key"]) for cell in run["plan"]]
    for cell, state in zip(run["plan"], states, strict=True):
        listing.add_row(cell["encoder"], cell["probeset"], cell["probe"], state)
    screen = console()
    study = run["study"]
    called = f"{study['name']}: {study['title'].rstrip('.')}" if study["title"] else study["name"]
    place = f"; {study['reference']}" if study["reference"] else ""
    made = "" if study["reference"] == "profile" else f"; preset {study['preset']}{place}"
    screen.print(f"{called}{made}", markup=False, soft_wrap=True)
    screen.print(listing, markup=False)
    finished = f"{states.count('finished')} of {len(states)} cells are finished"
    screen.print(f"{finished}; {_published(folder)}", markup=False, soft_wrap=True)


def _published(folder: RunFolder) -> str:
    from geoframe.replacing import of_earlier_settings

    if not folder.results.exists():
        return "no results published yet"
    if of_earlier_settings(folder):
        return f"the results in {folder.results} are of earlier settings"
    return f"results in {folder.results}"


def read_run(out: Path) -> tuple[RunFolder, dict[str, Any]]:
    """Return a run's folder and its run.json, or refuse."""
    from geoframe.errors import MissingFile
    from geoframe.store import RunFolder

    folder = RunFolder(out)
    run = folder.read()
    if run is None:
        raise MissingFile(
            f"{out} is not the folder of a run (it has no run.json): give what `geoframe run` or `profile` wrote"
        )
    return folder, run


def _state(cells: CellStore, key: str) -> str:
    failure = cells.failure(key)
    if failure:
        return f"failed: {failure.cause}"
    record = cells.record(key)
    if record is None:
        return "not started"
    done = cells.done(record)
    return f"{len(done)} of {len(record.blocks)} blocks" if record.missing(done) else "finished"
