"""Options and output that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

TRACEBACK = "geoframe.traceback"
PIPED_WIDTH = 200  # where there is no terminal, nothing should be cut at 80 columns


def _remember(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    ctx.meta[TRACEBACK] = value


def traceback_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--traceback`."""
    option = click.option(
        "--traceback", is_flag=True, expose_value=False, callback=_remember, help="Show the whole traceback of errors."
    )
    return option(command)


def console() -> Console:
    """Return the console: colours and bars on a terminal, plain text in a pipe."""
    from rich.console import Console

    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PIPED_WIDTH, no_color=True)


def table(*headers: str, title: str = "") -> Table:
    """Return an empty table in the house style."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for header in headers:
        made.add_column(header, overflow="fold")
    return made


def plural(count: int, noun: str) -> str:
    """Return "1 cell", "2 cells"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
