"""Probe sets whose images are files: decoding and digests, done once for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import attrs

from geoframe.errors import BadInput
from geoframe.probeset import Listing, ProbeSet, Record


class ImageFile(NamedTuple):
    """An image file, and the id and label that it has in a probe set."""

    id: str
    label: int
    path: Path


@attrs.frozen(kw_only=True, slots=False, eq=False)
class FileSet(ProbeSet):
    """A probe set of image files. Subclasses implement `files`."""

    def files(self) -> list[ImageFile]:
        """Return the files in their fixed order."""
        raise NotImplementedError(f"{type(self).__name__} does not implement files()")

    def records(self) -> Iterator[Record]:
        """Yield the images, decoded."""
        return decoded_files(self.files())

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield the images at `places`; other files are not opened."""
        files = self.files()
        return decoded_files([files[place] for place in places])

    def listing(self) -> Listing:
        """Return ids and labels; no file is opened."""
        files = self.files()
        return Listing(tuple(file.id for file in files), tuple(file.label for file in files))

    def missing(self) -> str:
        """Say which folder or file can't be found."""
        try:
            self.files()
        except BadInput as error:
            return str(error)
        return ""

    def source_digest(self) -> str | None:
        """Digest of the ids and the files' bytes; None where the files can't be found."""
        try:
            return files_digest((file.id, file.path) for file in self.files())
        except BadInput:
            return None


def decoded_files(files: Iterable[ImageFile]) -> Iterator[Record]:
    """Yield files as records, decoded one after the other."""
    from geoframe.probesets.pictures import open_picture

    for name, label, path in files:
        yield Record(name, label, open_picture(path))


def files_digest(files: Iterable[tuple[str, Path]]) -> str:
    """Digest of (id, file) pairs: of the ids and of the files' bytes, in order."""
    total = hashlib.blake2b(digest_size=16)
    for name, path in files:
        stat = path.stat()
        total.update(name.encode("utf-8", "surrogateescape") + b"\0")
        total.update(_file_digest(str(path.absolute()), stat.st_size, stat.st_mtime_ns))
    return total.hexdigest()


@lru_cache(maxsize=65536)
def _file_digest(path: str, size: int, mtime: int) -> bytes:
    # size and mtime are there for the cache's key: a changed file is read again
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).digest()
