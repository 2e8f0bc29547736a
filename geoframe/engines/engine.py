"""`Engine`: what computes the cells of a run. It measures and reports; the runner alone writes the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from geoframe.cells import Record
from geoframe.plan import Cell

if TYPE_CHECKING:
    import xarray as xr


@attrs.define(eq=False)
class Job:
    """A cell of the plan, with what an earlier run left of it.

    Attributes
    ----------
    cell : Cell
    record : Record or None
        What it was started with; None if it has to start from scratch.
    done : set of int
        Starts of its finished blocks.
    """

    cell: Cell
    record: Record | None = None
    done: set[int] = attrs.field(factory=set)

    @property
    def missing(self) -> list[tuple[int, int]] | None:
        """Blocks to compute; None where the cell was never started."""
        return None if self.record is None else self.record.missing(self.done)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compute."""
        return self.missing == []

    def restart(self) -> None:
        """Forget what was done."""
        self.record, self.done = None, set()


@attrs.frozen(eq=False)
class Event:
    """Something that happened to a cell."""

    job: Job


@attrs.frozen(eq=False)
class Outdated(Event):
    """What was done before was done with other weights or images: it is computed again."""

    reason: str


@attrs.frozen(eq=False)
class Started(Event):
    """The cell's settings are fixed from here on."""

    record: Record


@attrs.frozen(eq=False)
class BlockDone(Event):
    """Images start… are measured."""

    start: int
    dataset: xr.Dataset


@attrs.frozen(eq=False)
class Finished(Event):
    """Every block of the cell is done."""


@attrs.frozen(eq=False)
class Failed(Event):
    """The cell can't be finished; others go on."""

    error: BaseException


class Engine:
    """Base of engines. A subclass implements `run`.

    Parameters
    ----------
    device : str
        A torch device that exists.
    memory : int or None
        Cap in bytes on the activations of a forward pass.
    on_pass : callable or None
        Called with the number of forward passes just done.
    """

    def __init__(
        self, device: str = "cpu", memory: int | None = None, on_pass: Callable[[float], None] | None = None
    ) -> None:
        self.device = device
        self.memory = memory
        self.on_pass = on_pass

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Compute the jobs that aren't complete, and yield events; each is dealt with before the next is asked for.

        Complete jobs are given too, so that one whose encoder or images turn out to have changed can be `Outdated`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement run()")
