"""How long the rest of a run takes, from how fast its cells went so far."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from geoframe.plan import Cell


@attrs.define
class _Tally:
    """Passes that are left and done, and the seconds that those done took."""

    left: float = 0.0
    done: float = 0.0
    seconds: float = 0.0


@attrs.define
class Pace:
    """Tallies by encoder and probe.

    A pass of one probe may take a hundred times as long as another's: of an exact search, say, which makes none, or of
    a Jacobian that is decomposed.
    """

    _tallies: dict[tuple[str, str], _Tally] = attrs.field(factory=dict)

    @property
    def done(self) -> float:
        """Passes done."""
        return sum(tally.done for tally in self._tallies.values())

    @property
    def total(self) -> float:
        """Passes planned."""
        return self.done + sum(tally.left for tally in self._tallies.values())

    def plan(self, cell: Cell, passes: float) -> None:
        """Add to what a cell is planned as, or take away."""
        self._of(cell).left += passes

    def advance(self, cell: Cell, passes: float) -> None:
        """Count passes as done."""
        tally = self._of(cell)
        tally.left -= passes
        tally.done += passes

    def spend(self, cell: Cell, seconds: float) -> None:
        """Count time."""
        self._of(cell).seconds += seconds

    def seconds_left(self) -> float:
        """Estimate what is left by the rate of the same encoder and probe, else of the probe, else of all."""
        total = 0.0
        for (encoder, probe), tally in self._tallies.items():
            alike = [other for (_, name), other in self._tallies.items() if name == probe]
            pools: list[Iterable[_Tally]] = [[self._tallies[encoder, probe]], alike, self._tallies.values()]
            rate = next((rate for rate in map(_seconds_per_pass, pools) if rate is not None), 0.0)
            total += max(tally.left, 0.0) * rate
        return total

    def _of(self, cell: Cell) -> _Tally:
        return self._tallies.setdefault((cell.encoder.label, cell.probe.label), _Tally())


def _seconds_per_pass(tallies: Iterable[_Tally]) -> float | None:
    done = [tally for tally in tallies if tally.done > 0]
    return sum(tally.seconds for tally in done) / sum(tally.done for tally in done) if done else None
