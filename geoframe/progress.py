"""How a run tells what it is doing. The base is silent; the command line has one with bars and one with lines."""

from __future__ import annotations

from collections.abc import Sequence

from geoframe.plan import Cell


class Progress:
    """Told of a run's course by the runner. Does nothing; subclasses show what they want."""

    def begin(self, planned: Sequence[tuple[Cell, float]]) -> None:
        """Cells are about to be computed, with so many forward passes each, as far as they can be planned."""

    def more(self, cell: Cell, passes: float) -> None:
        """A cell turned out to need more passes than was planned; or fewer, below 0: it failed."""

    def more_cells(self, cells: int) -> None:
        """So many cells that counted as finished have to be computed again."""

    def started(self, cell: Cell) -> None:
        """A cell starts."""

    def advance(self, passes: float) -> None:
        """Forward passes of the cell that was started last were done."""

    def ended(self, cell: Cell, seconds: float, error: str = "") -> None:
        """A cell is finished, or failed for the cause given."""

    def say(self, line: str) -> None:
        """Something a reader should know."""

    def end(self) -> None:
        """The computing is over, for whatever reason."""
