"""The folder of a run: `results.zarr`, `cells/`, `figures/`, `run.json`; and `open`, which reads results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoframe.errors import MissingFile, StoreConflict
from geoframe.files import PARTIAL, read_json, remove, sweep, writing

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 1
LOCK = ".lock"


class RunFolder:
    """Paths of one run, and who may write there.

    Attributes
    ----------
    path, results, cells, figures, run_json : Path
        The folder and what is in it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.results = self.path / "results.zarr"
        self.cells = self.path / "cells"
        self.figures = self.path / "figures"
        self.run_json = self.path / "run.json"
        self._previous = self.path / "results.zarr.previous"

    def read(self) -> dict[str, Any] | None:
        """Return run.json, or None where there is none, or none that a run wrote."""
        found = read_json(self.run_json)
        return found if _is_run(found) else None

    def check(self, study: str) -> None:
        """Refuse a folder that another study made, or that holds something else.

        Raises
        ------
        StoreConflict
            One line; nothing was touched.
        """
        with writing(self.path):
            fresh = not self.path.exists() or self._holds_nothing()
        if fresh:
            return
        run = self.read()
        if run is None:
            what = (
                "run.json that can't be read" if self.run_json.exists() else "something that is not a run of geoframe"
            )
            raise StoreConflict(f"{self.path} holds {what}: choose another --out")
        owner = run["study"]["name"]
        if owner != study:
            raise StoreConflict(f"{self.path} holds a run of study {owner!r}, not {study!r}: choose another --out")

    @contextmanager
    def claimed(self, study: str) -> Iterator[None]:
        """Hold the folder for writing; a second run there is refused.

        What a killed run left half-written is removed first.
        """
        from filelock import FileLock, Timeout

        self.check(study)
        with writing(self.path):
            self.cells.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.cells / LOCK, timeout=0)
            try:
                lock.acquire()
            except Timeout as error:
                raise StoreConflict(f"{self.path} is being written by another run: wait for it to end") from error
        try:
            self.check(study)
            self._tidy()
            yield
        finally:
            lock.release()

    def swap_results(self, new: Path) -> None:
        """Put finished results in the place of the former ones, by renames."""
        with writing(self.results):
            remove(self._previous)
            if self.results.exists():
                self.results.rename(self._previous)
            new.rename(self.results)
            remove(self._previous)

    def _tidy(self) -> None:
        sweep(self.path)
        sweep(self.cells)
        with writing(self.path):
            if self._previous.exists() and not self.results.exists():  # killed between the two renames
                self._previous.rename(self.results)
            remove(self._previous)

    def _holds_nothing(self) -> bool:
        """Whether nothing but the beginnings of a run is there (killed before run.json was written)."""
        found = [*self.path.iterdir(), *(self.cells.iterdir() if self.cells.is_dir() else ())]
        return all(path == self.cells or path.name == LOCK or path.name.endswith(PARTIAL) for path in found)


def _is_run(found: Any) -> bool:
    """Whether JSON has the parts of run.json that are read again."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return False
    study, plan, log = (found.get(part) for part in ("study", "plan", "log"))
    return (
        isinstance(study, dict)
        and {"name", "title", "reference", "preset", "set"} <= set(study)
        and isinstance(log, list)
        and isinstance(plan, list)
        and all(isinstance(cell, dict) and {"key", "encoder", "probeset", "probe"} <= set(cell) for cell in plan)
    )


def open(path: str | Path) -> xr.DataTree:
    """Open the results of a run.

    Parameters
    ----------
    path : str or Path
        The run's folder, or the `results.zarr` in it.

    Returns
    -------
    xarray.DataTree
        One node a probe, dimensions (encoder, probeset, image, …), and one a summary; values load on access.

    Raises
    ------
    MissingFile
        Where there are no published results.
    """
    import xarray as xr

    folder = Path(path)
    results = folder / "results.zarr" if (folder / "results.zarr").is_dir() else folder
    if not (results / "zarr.json").is_file():
        what = "run.json but no results yet" if (folder / "run.json").is_file() else "no results of a run"
        raise MissingFile(f"{folder} holds {what}: give the folder that `geoframe run` or `profile` wrote")
    return xr.open_datatree(results, engine="zarr", consolidated=False)
