"""Where checkpoints lie: one folder a training, named by its digest. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoframe.files import read_json, write_json
from geoframe.sources import Sources
from geoframe.training.moments import Moment

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

LOG = "training.json"
ELSEWHERE = "set GEOFRAME_CACHE to another folder"


def cache_root() -> Path:
    """Return the cache: $GEOFRAME_CACHE, by default `~/.cache/geoframe`."""
    return Path(os.environ.get("GEOFRAME_CACHE") or "~/.cache/geoframe").expanduser()


class TrainingCache:
    """The files of one training: `epoch-00005.pt` or `step-0000391.pt` for each checkpoint, and `training.json`.

    The log holds what the recipe was, the digests of the files behind it, how it was trained, and for each checkpoint
    epoch and step, the mean training loss since the epoch began, loss and accuracy on training and test images, and
    the digest of the weights. It names a checkpoint only once it is written. `resume.pt` is there as long as a training
    isn't finished.
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        self.folder = cache_root() / "training" / training.key
        self.resume = self.folder / "resume.pt"

    def file(self, when: int | Moment) -> Path:
        """Return the file of a checkpoint, given by its epoch or moment."""
        return self.folder / Moment.of(when).file

    @staticmethod
    def file_of(row: dict[str, Any]) -> str:
        """Return the name of the file that a line of the log stands for; older lines are all of epochs."""
        return str(row.get("file") or Moment(int(row["epoch"])).file)

    @property
    def lock(self) -> Path:
        """Return the lock's file."""
        return self.folder.with_suffix(".lock")

    def sources(self) -> dict[str, str]:
        """Digests of the files behind the recipe as they are now."""
        return Sources().of({"training": self.training})

    def log(self) -> dict[str, Any]:
        """Return the log, empty where there is none or it is damaged."""
        try:
            found = read_json(self.folder / LOG)
        except OSError:  # no permission, say: writing tells what to do
            return {}
        return found if _is_log(found) else {}

    def outdated(self) -> str:
        """Say why nothing of what is there counts, "" where it does or nothing is there."""
        log = self.log()
        if not log:
            return f"{LOG} in {self.folder} is damaged" if os.path.exists(self.folder / LOG) else ""
        return Sources().changed({"training": self.training}, log["sources"])

    def row(self, when: int | Moment) -> dict[str, Any] | None:
        """Return a checkpoint's line of the log, if it has one."""
        rows = [row for row in self.log().get("checkpoints", ()) if self.file_of(row) == Moment.of(when).file]
        return rows[0] if rows else None

    def checkpoint(self, when: int | Moment) -> dict[str, Any] | None:
        """Return what the log says of a checkpoint; None where it isn't there, or is of other files than there are."""
        row = self.row(when)
        return row if row and self.file(when).is_file() and not self.outdated() else None

    def holds(self, moments: Iterable[Moment]) -> bool:
        """Whether `checkpoint` would return each of these; the files behind the recipe are read once."""
        return all(self.row(moment) and self.file(moment).is_file() for moment in moments) and not self.outdated()

    def tidy(self) -> None:
        """Remove the state of a training that was killed after its last checkpoint was named."""
        if os.path.exists(self.resume) and self.holds(self.training.moments):
            with suppress(OSError):
                self.resume.unlink(missing_ok=True)

    def write_log(self, log: dict[str, Any]) -> None:
        """Write the log in one step."""
        write_json(self.folder / LOG, log, ELSEWHERE)


def _is_log(found: Any) -> bool:
    """Whether JSON has the parts of a log that are read again."""
    if not isinstance(found, dict):
        return False
    rows, sources = found.get("checkpoints"), found.get("sources")
    return (
        isinstance(found.get("threads"), int)
        and isinstance(sources, dict)
        and isinstance(rows, list)
        and all(isinstance(row, dict) and "weights" in row and _is_number(row.get("epoch")) for row in rows)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
