"""Where checkpoints lie: one folder a training, named by its digest. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoframe.files import read_json, write_json

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

LOG = "training.json"
ELSEWHERE = "set GEOFRAME_CACHE to another folder"


def cache_root() -> Path:
    """Return the cache: $GEOFRAME_CACHE, by default `~/.cache/geoframe`."""
    return Path(os.environ.get("GEOFRAME_CACHE") or "~/.cache/geoframe").expanduser()


class TrainingCache:
    """The files of one training: `epoch-00005.pt` for each kept epoch, and `training.json`.

    The log holds what the recipe was, how it was trained, and for each checkpoint the epoch, the mean loss over the
    epoch, train and test accuracy, and the digest of the weights. It names a checkpoint only once it is written.
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        self.folder = cache_root() / "training" / training.key

    def file(self, epoch: int) -> Path:
        """Return the checkpoint's file."""
        return self.folder / f"epoch-{epoch:05d}.pt"

    @property
    def lock(self) -> Path:
        """Return the lock's file."""
        return self.folder.with_suffix(".lock")

    def log(self) -> dict[str, Any]:
        """Return the log, empty where there is none."""
        found = read_json(self.folder / LOG)
        return found if isinstance(found, dict) else {}

    def checkpoint(self, epoch: int) -> dict[str, Any] | None:
        """Return what the log says of a checkpoint; None where it isn't there."""
        rows = [row for row in self.log().get("checkpoints", []) if row.get("epoch") == epoch]
        return rows[0] if rows and self.file(epoch).is_file() else None

    def complete(self) -> bool:
        """Whether every checkpoint is there."""
        return all(self.checkpoint(epoch) is not None for epoch in self.training.kept)

    def write_log(self, log: dict[str, Any]) -> None:
        """Write the log in one step."""
        write_json(self.folder / LOG, log, ELSEWHERE)
