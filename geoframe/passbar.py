"""A bar of forward passes for `gf.measure`, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


@contextmanager
def pass_bar(encoder: LoadedEncoder, planned: float) -> Iterator[None]:
    """Show the encoder's forward passes, with the time left, on stderr; nothing where it is not a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(encoder.label, total=planned)
        encoder.on_pass = lambda passes: bars.advance(task, passes)
        try:
            yield
        finally:
            encoder.on_pass = None
