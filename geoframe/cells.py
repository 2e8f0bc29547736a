"""`cells/`: finished cells and blocks, what each cell was started with, and why cells failed.

A block of images is written as `KEY-START.partial` and renamed to `KEY-START.zarr`: that name, and nothing else,
means done. When all blocks of a cell are done they are packed into one group, `KEY.zarr`. Each group is sealed by a
digest of its files: zarr reads a lost chunk as missing values without a word, so a group whose files differ from its
seal counts as not done.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.errors import BadInput
from geoframe.files import PARTIAL, read_json, remove, sync_tree, write_json, writing
from geoframe.process import interrupts_later

if TYPE_CHECKING:
    import xarray as xr

START_DIGITS = 8
SEAL = "seal"


def _pairs(blocks: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    return [(start, stop) for start, stop in blocks]


def _shape(sizes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sizes)


@attrs.frozen(kw_only=True)
class Record:
    """What a cell was started with: fixed then, and used again when it is resumed.

    Attributes
    ----------
    key : str
        Key of the cell.
    names : dict
        Labels of encoder, probe set and probe.
    identity : dict
        What the key stands for.
    settings : dict
        `Settings` as JSON: device, threads, micro-batch, …
    blocks : list of (int, int)
        The split into images start…stop−1.
    encoder_digest, images_digest : str
        Digests of the weights and pixels that were really loaded.
    input_shape : tuple of int
        Shape of the images (channel, height, width); () in records of former versions.
    sources : dict of str to str
        Cheap digests of the files that encoder, probe set and the specs nested in all three came from, by path.
    """

    key: str
    names: dict[str, str] = attrs.field(validator=attrs.validators.instance_of(dict))
    identity: dict[str, Any] = attrs.field(validator=attrs.validators.instance_of(dict))
    settings: dict[str, Any] = attrs.field(validator=attrs.validators.instance_of(dict))
    blocks: list[tuple[int, int]] = attrs.field(converter=_pairs)
    encoder_digest: str
    images_digest: str
    input_shape: tuple[int, ...] = attrs.field(default=(), converter=_shape)
    sources: dict[str, str] = attrs.field(factory=dict, validator=attrs.validators.instance_of(dict))

    @property
    def n_images(self) -> int:
        """Number of images of the cell."""
        return max((stop for _, stop in self.blocks), default=0)

    def agrees_with(self, other: Record) -> bool:
        """Whether blocks computed for either may stand in one cell; names don't matter (for sources, see `explain`)."""
        fields = ("key", "settings", "blocks", "encoder_digest", "images_digest")
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    def missing(self, done: set[int]) -> list[tuple[int, int]]:
        """Blocks that are not among those done."""
        return [block for block in self.blocks if block[0] not in done]


@attrs.frozen
class Failure:
    """Why a cell failed: one line, whether the user's input was bad, and the traceback."""

    cause: str
    bad_input: bool
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe an exception."""
        text = " ".join(str(error).split())
        bad = isinstance(error, BadInput)
        cause = text if bad else f"{type(error).__name__}: {text}".rstrip(": ")
        return cls(_printable(cause), bad, _printable("".join(traceback.format_exception(error))))


def _printable(text: str) -> str:
    """Text without the lone surrogates that file names of unknown encoding bring."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class CellStore:
    """The folder `cells/` of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def record(self, key: str) -> Record | None:
        """What the cell was started with, or None if it never was."""
        return _record(self._settings(key))

    def records(self) -> Iterator[Record]:
        """Every cell that was ever started here, the latest first."""
        paths = sorted(self.folder.glob("*.settings.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        yield from (record for record in map(_record, paths) if record is not None)

    def done(self, record: Record) -> set[int]:
        """Starts of the blocks that are finished, and whose files are as they were written."""
        starts = {start for start, _ in record.blocks}
        if intact(self._whole(record.key)):
            return starts
        return {start for start in starts if intact(self._block(record.key, start))}

    def damaged(self, key: str) -> bool:
        """Whether files of a finished block or cell were changed or lost."""
        found = (self._whole(key), *self.folder.glob(f"{key}-*.zarr"))
        return any(path.exists() and not intact(path) for path in found)

    def is_finished(self, key: str) -> bool:
        """Whether every block of the cell is done."""
        record = self.record(key)
        return record is not None and not record.missing(self.done(record))

    def start(self, record: Record) -> None:
        """Fix what a cell is computed with; blocks of an earlier start with anything else are removed."""
        before = self.record(record.key)
        if before is None or not before.agrees_with(record):
            self.clear(record.key)
        if before != record:
            write_json(self._settings(record.key), attrs.asdict(record))

    def write(self, key: str, start: int, block: xr.Dataset) -> None:
        """Store a finished block in one step."""
        _write(self._block(key, start), block)

    def pack(self, key: str) -> None:
        """Join the blocks of a finished cell in one group; harmless to repeat."""
        whole, blocks = self._whole(key), sorted(self.folder.glob(f"{key}-*.zarr"))
        if not intact(whole):
            remove(whole)
            if len(blocks) == 1:
                with writing(whole):
                    blocks[0].rename(whole)
            else:
                _write(whole, self.read(key))
        for path in self.folder.glob(f"{key}-*.zarr"):
            remove(path)

    def read(self, key: str) -> xr.Dataset:
        """Return a finished cell, all blocks joined, in memory."""
        import xarray as xr

        record = self.record(key)
        if record is None:
            raise KeyError(key)
        whole = self._whole(key)
        paths = [whole] if whole.exists() else [self._block(key, start) for start, _ in record.blocks]
        parts: list[xr.Dataset] = [xr.open_zarr(path, consolidated=False, chunks=None).load() for path in paths]
        for part in parts:
            part.attrs.pop(SEAL, None)
        if len(parts) == 1:
            return parts[0]
        from geoframe.measuring import concat_blocks

        return concat_blocks(parts)

    def clear(self, key: str) -> None:
        """Forget a cell; its settings go last, so that a killed clearing is noticed and repeated."""
        for path in (self._whole(key), *self.folder.glob(f"{key}-*")):
            remove(path)
        remove(self._settings(key))

    def failure(self, key: str) -> Failure | None:
        """Why the cell failed last time, or None."""
        found = read_json(self._failed(key))
        try:
            return Failure(**found) if isinstance(found, dict) else None
        except TypeError:  # written by another version
            return None

    def fail(self, key: str, failure: Failure) -> None:
        """Keep why a cell failed, until it succeeds."""
        write_json(self._failed(key), attrs.asdict(failure))

    def forgive(self, key: str) -> None:
        """Remove the mark of an earlier failure."""
        remove(self._failed(key))

    def _whole(self, key: str) -> Path:
        return self.folder / f"{key}.zarr"

    def _block(self, key: str, start: int) -> Path:
        return self.folder / f"{key}-{start:0{START_DIGITS}d}.zarr"

    def _settings(self, key: str) -> Path:
        return self.folder / f"{key}.settings.json"

    def _failed(self, key: str) -> Path:
        return self.folder / f"{key}.failed.json"


def storable(dataset: xr.Dataset) -> xr.Dataset:
    """Return the dataset with fixed-width strings as objects: zarr truncates or warns otherwise."""
    texts = [name for name, variable in dataset.variables.items() if variable.dtype.kind in "US"]
    return dataset.assign({name: dataset[name].astype(object) for name in texts}) if texts else dataset


def _write(final: Path, dataset: xr.Dataset) -> None:
    partial = final.with_suffix(PARTIAL)
    with writing(final):
        with interrupts_later():
            storable(dataset).to_zarr(partial, mode="w", consolidated=False)
        _seal(partial)
        sync_tree(partial)
        remove(final)  # damaged, or it would not be written again
        partial.rename(final)


def _seal(group: Path) -> None:
    head = json.loads((group / "zarr.json").read_text(encoding="utf-8"))
    head["attributes"][SEAL] = _digest(group, head)
    (group / "zarr.json").write_text(json.dumps(head, indent=2), encoding="utf-8")


def intact(group: Path) -> bool:
    """Whether a group is there, and its files are as they were when it was sealed."""
    head = read_json(group / "zarr.json")
    attributes = head.get("attributes") if isinstance(head, dict) else None
    seal = attributes.pop(SEAL, None) if isinstance(attributes, dict) else None
    return seal is not None and bool(seal == _digest(group, head))


def _digest(group: Path, head: dict[str, Any]) -> str:
    """Digest of a group's metadata (without its seal) and of the names and contents of all other files."""
    total = hashlib.blake2b(json.dumps(head, sort_keys=True).encode(), digest_size=16)
    for path in sorted(path for path in group.rglob("*") if path.is_file() and path != group / "zarr.json"):
        total.update(f"\0{path.relative_to(group).as_posix()}\0{path.stat().st_size}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def _record(path: Path) -> Record | None:
    found = read_json(path)
    try:
        return Record(**found) if isinstance(found, dict) else None
    except (TypeError, ValueError):  # written by another version: as good as never started
        return None
