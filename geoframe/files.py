"""Writing files so that a reader, or the next run, sees the old one or the new one, never half of one."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geoframe.errors import BadInput

PARTIAL = ".partial"
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_ELSEWHERE = "choose another folder with --out"


class CannotWrite(BadInput):
    """The folder of a run can't be written: no permission, no space, a file where a folder should be."""


@contextmanager
def writing(path: Path, elsewhere: str = _ELSEWHERE) -> Iterator[None]:
    """Turn an operating-system error while writing `path` into `CannotWrite`, one line; `elsewhere` is its advice."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        advice = "free some space" if error.errno in _NO_SPACE else elsewhere
        raise CannotWrite(f"can't write {path}: {reason}; {advice}, then run the same command again") from error


def sync_tree(folder: Path) -> None:
    """Force every file under `folder` to the disk, so that a rename never outlives its contents."""
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(root, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def write_json(path: Path, value: Any, elsewhere: str = _ELSEWHERE) -> None:
    """Write JSON to `path` in one step: a temporary file beside it, then a rename."""
    temporary = path.with_name(path.name + PARTIAL)
    with writing(path, elsewhere):
        with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:  # as JSON writes surrogates
            json.dump(value, file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def read_json(path: Path) -> Any:
    """Read JSON; None where there is no such file or it isn't JSON (it is then as good as absent)."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    with writing(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what a killed run left half-written in `folder`."""
    for path in folder.glob(f"*{PARTIAL}"):
        remove(path)
