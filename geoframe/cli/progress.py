"""Progress on a terminal (one bar by forward passes, with the time left) and in a pipe (a line a cell)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

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
        self._cells = self._ended = 0
        self._passes = self._done = 0.0
        self._measuring = 0.0  # seconds in cells: loading and training encoders doesn't go with the passes
        self._since = self._at = self._told = 0.0  # when the cell began, when passes were last told of, and how many

    def begin(self, passes: float, cells: int) -> None:
        """Remember what is planned."""
        self._passes, self._cells = passes, cells

    def more(self, passes: float) -> None:
        """Add to what is planned, or take away."""
        self._passes += passes

    def more_cells(self, cells: int) -> None:
        """Add to the cells that are planned."""
        self._cells += cells

    def advance(self, passes: float) -> None:
        """Count passes; say now and then how far they are."""
        self._done += passes
        now = time.monotonic()
        quiet, tenth = now - self._at, self._done - self._told >= STEP * self._passes
        if self._done < self._passes and (quiet >= SILENT or (tenth and quiet >= QUIET)):
            self._told, self._at = self._done, now
            percent = 100 * self._done / self._passes
            share = f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"
            self.say(f"[{self._ended + 1}/{self._cells}] {share} of all{self._left(now - self._since)}")

    def started(self, cell: Cell) -> None:
        """Print what is being computed."""
        self._since = self._at = time.monotonic()
        self.say(f"[{self._ended + 1}/{self._cells}] {cell.label}: started")

    def ended(self, cell: Cell, seconds: float, error: str = "") -> None:
        """Print the cell's line."""
        self._ended += 1
        self._measuring += seconds
        self.say(f"[{self._ended}/{self._cells}] {_line(cell, seconds, error)}{self._left()}")

    def say(self, line: str) -> None:
        """Print a line."""
        self.screen.print(line, markup=False, soft_wrap=True)

    def _left(self, in_cell: float = 0.0) -> str:
        from geoframe.estimate import readable_time

        if not self._done or self._ended >= self._cells:
            return ""
        measuring = self._measuring + in_cell
        seconds = measuring * max(0.0, self._passes / self._done - 1)
        return f"; about {readable_time(seconds)} left" if seconds >= SHORTEST else ""


class BarProgress(LineProgress):
    """A bar that moves with every forward pass, above which finished cells are listed."""

    def begin(self, passes: float, cells: int) -> None:
        """Show the bar."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        super().begin(passes, cells)
        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bars = Bars(*columns, console=self.screen, transient=True)
        self._task = self._bars.add_task("loading", total=round(passes))
        self._bars.start()

    def more(self, passes: float) -> None:
        """Lengthen the bar."""
        super().more(passes)
        self._bars.update(self._task, total=round(self._passes))

    def started(self, cell: Cell) -> None:
        """Name the cell beside the bar."""
        self._bars.update(self._task, description=cell.label)

    def advance(self, passes: float) -> None:
        """Move the bar."""
        self._done += passes
        self._bars.update(self._task, completed=round(min(self._done, self._passes)))

    def ended(self, cell: Cell, seconds: float, error: str = "") -> None:
        """List the cell above the bar."""
        self.say(_line(cell, seconds, error))

    def end(self) -> None:
        """Take the bar away."""
        if hasattr(self, "_bars"):
            self._bars.stop()


def _line(cell: Cell, seconds: float, error: str) -> str:
    from geoframe.estimate import readable_time

    return f"{cell.label}: failed" if error else f"{cell.label}: done in {readable_time(seconds)}"  # causes: at the end
