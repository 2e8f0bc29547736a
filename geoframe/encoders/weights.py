"""Files of weights: where they are looked for, their digests, downloads."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from geoframe.errors import BadInput, MissingFile
from geoframe.probesets.places import data_root

TIMEOUT = 15.0  # seconds without an answer after which a download counts as impossible


def weights_folder() -> Path:
    """Return the folder for files of weights: `$GEOFRAME_DATA/weights`, by default `data/weights`."""
    return data_root() / "weights"


def first_file(candidates: Iterable[Path]) -> Path | None:
    """Return the first of the candidates that is a file."""
    return next((path for path in candidates if path.is_file()), None)


@lru_cache(maxsize=256)
def _sha256(path: str, _size: int, _mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_sha256(path: Path) -> str:
    """sha256 of a file; cached as long as its size and modification time stay."""
    stat = path.stat()
    return _sha256(str(path.resolve()), stat.st_size, stat.st_mtime_ns)


def check_sha256(path: Path, sha256: str | None) -> None:
    """Refuse a file that isn't the one meant."""
    if sha256 and not (found := file_sha256(path)).startswith(sha256.lower()):
        raise BadInput(
            f"{path} has sha256 {found}, not {sha256}: it is another file or an incomplete download; "
            "delete it and get it again, or correct the digest"
        )


@contextmanager
def impatient(seconds: float = TIMEOUT) -> Iterator[None]:
    """Give up on a silent server after `seconds` (urllib's default is never)."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def download(url: str, path: Path, what: str, sha256: str | None = None, places: str = "") -> Path:
    """Download `url` to `path` (complete or not at all) and return it.

    Parameters
    ----------
    url : str
        What to download.
    path : pathlib.Path
        Where to keep it.
    what : str
        What it is, for messages.
    sha256 : str, optional
        Its digest, or the beginning of it.
    places : str, optional
        Where a person may put it, for messages; by default `path`.

    Raises
    ------
    MissingFile
        No connection, no such page, no permission to write: the message says what to put where.
    """
    import torch

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with impatient():
            torch.hub.download_url_to_file(url, os.fspath(path), hash_prefix=sha256, progress=False)
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise MissingFile(
            f"{what}: can't download {url} ({reason}): get that file on another machine and save it as {places or path}"
        ) from error
    except RuntimeError as error:
        raise BadInput(f"{what}: what {url} gave is not the file meant ({error}): try again, or correct it") from error
    return path
