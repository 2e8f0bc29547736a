"""Cells that can't stand in one table: measured with different weights of one encoder, or images of one probe set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from geoframe.cells import Record


def outdated(records: Iterable[Record]) -> dict[str, str]:
    """Return why cells can't stand beside later ones, by key; the digests of what was really loaded tell.

    Parameters
    ----------
    records : iterable of Record
        The latest first, as `CellStore.records` gives them; cells that aren't in the plan are evidence, too.
    """
    latest: dict[str, str] = {}
    found: dict[str, str] = {}
    for record in records:
        for group, digest, reason in _loaded(record):
            if latest.setdefault(group, digest) != digest:
                found.setdefault(record.key, reason)
    return found


def _loaded(record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield what must be the same in all cells of a group: the group, the digest, and the reason where it differs."""
    encoder, probeset = (json.dumps(record.identity.get(part), sort_keys=True) for part in ("encoder", "probeset"))
    name = record.names.get("encoder")
    yield f"encoder {encoder}", record.encoder_digest, f"cells of encoder {name!r} were measured with different weights"
    shape = str(record.input_shape) if record.input_shape else encoder  # pixels are the same at one shape only
    name = record.names.get("probeset")
    reason = f"cells of probe set {name!r} were measured with different images"
    yield f"probeset {probeset} {shape}", record.images_digest, reason
