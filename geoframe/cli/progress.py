"""Progress on a terminal (one bar by forward passes, with the time left) and in a pipe (a line a cell)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geoframe.cli.pace import Pace
from geoframe.plan import Cell
from geoframe.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console


def progress_for(screen: Console) -> Progress:
    """Return the kind of progress that suits the console."""
    return BarProgress(screen) if screen.is_terminal else LineProgress(screen)


STEP, QUIET = 0.1, 10.0  # share of the plan, and seconds, between lines that only say how far a run is
SILENT = 60.0  # seconds after which one is due whatever the share

SHORTEST = 0.05  # seconds left that are worth telling: less reads as 0.0 s


class LineProgress(Progress):
    """A line for each finished cell, and for each tenth or minute of a long run, with the time left.

    No control codes.
    """

    def __init__(self, screen: Console) -> None:
        self.screen = screen
        self._pace = Pace()
        self._cell: Cell | None = None
        self._cells = self._ended = 0
        self._since = self._at = self._told = 0.0  # when the cell began, when passes were last told of, and how many
        self._spent = 0.0  # seconds of the cell that are counted: loading and training encoders isn't

    def begin(self, planned: Sequence[tuple[Cell, float]]) -> None:
        """Remember what is planned."""
        self._cells = len(planned)
        for cell, passes in planned:
            self._pace.plan(cell, passes)

    def more(self, cell: Cell, passes: float) -> None:
        """Add to what is planned, or take away."""
        self._pace.plan(cell, passes)

    def more_cells(self, cells: int) -> None:
        """Add to the cells that are planned."""
        self._cells += cells

    def advance(self, passes: float) -> None:
        """Count passes; say now and then how far they are."""
        now = self._count(passes)
        done, total = self._pace.done, self._pace.total
        quiet, tenth = now - self._at, done - self._told >= STEP * total
        if done < total and (quiet >= SILENT or (tenth and quiet >= QUIET)):
            self._told, self._at = done, now
            percent = 100 * done / total
            share = f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"
            self.say(f"[{self._ended + 1}/{self._cells}] {share} of all{self._left()}")

    def started(self, cell: Cell) -> None:
        """Print what is being computed."""
        self._start(cell)
        self.say(f"[{self._ended + 1}/{self._cells}] {cell.label}: started")

    def ended(self, cell: Cell, seconds: float, error: str = "") -> None:
        """Print the cell's line."""
        self._end(cell, seconds)
        left = self._left() if self._ended < self._cells else ""
        self.say(f"[{self._ended}/{self._cells}] {_line(cell, seconds, error)}{left}")

    def say(self, line: str) -> None:
        """Print a line."""
        self.screen.print(line, markup=False, soft_wrap=True)

    def _start(self, cell: Cell) -> None:
        self._cell, self._spent = cell, 0.0
        self._since = self._at = time.monotonic()

    def _count(self, passes: float) -> float:
        """Count passes of the cell that runs, and the time they took; return the time of day."""
        now = time.monotonic()
        if self._cell is not None:
            self._pace.advance(self._cell, passes)
            self._spend(self._cell, now - self._since)
        return now

    def _end(self, cell: Cell, seconds: float) -> None:
        self._ended += 1
        self._spend(cell, seconds)

    def _spend(self, cell: Cell, seconds: float) -> None:
        """Count the seconds of a cell up to now."""
        self._pace.spend(cell, seconds - self._spent)
        self._spent = seconds

    def _left(self) -> str:
        from geoframe.estimate import readable_time

        seconds = self._pace.seconds_left()
        return f"; about {readable_time(seconds)} left" if seconds >= SHORTEST else ""


class BarProgress(LineProgress):
    """A bar that moves with every forward pass, above which finished cells are listed."""

    def begin(self, planned: Sequence[tuple[Cell, float]]) -> None:
        """Show the bar."""
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        super().begin(planned)
        name, left = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[left]"))
        columns = (name, BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), left)
        self._bars = Bars(*columns, console=self.screen, transient=True)
        self._task = self._bars.add_task("loading", total=round(self._pace.total), left="")
        self._bars.start()

    def more(self, cell: Cell, passes: float) -> None:
        """Lengthen the bar."""
        super().more(cell, passes)
        self._bars.update(self._task, total=round(self._pace.total))

    def started(self, cell: Cell) -> None:
        """Name the cell beside the bar."""
        self._start(cell)
        self._bars.update(self._task, description=cell.label)

    def advance(self, passes: float) -> None:
        """Move the bar."""
        self._count(passes)
        done = min(self._pace.done, self._pace.total)
        self._bars.update(self._task, completed=round(done), left=self._left().lstrip("; "))

    def ended(self, cell: Cell, seconds: float, error: str = "") -> None:
        """List the cell above the bar."""
        self._end(cell, seconds)
        self.say(_line(cell, seconds, error))

    def end(self) -> None:
        """Take the bar away."""
        if hasattr(self, "_bars"):
            self._bars.stop()


def _line(cell: Cell, seconds: float, error: str) -> str:
    from geoframe.estimate import readable_time

    return f"{cell.label}: failed" if error else f"{cell.label}: done in {readable_time(seconds)}"  # causes: at the end
