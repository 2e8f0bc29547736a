"""When weights are kept: after an epoch, or after an optimiser step. Imports no torch."""

from __future__ import annotations

import attrs


@attrs.frozen
class Moment:
    """A moment of a training: `Moment(5)` after epoch 5, `Moment(391, "step")` after optimiser step 391."""

    number: int
    unit: str = "epoch"

    @classmethod
    def of(cls, when: int | Moment) -> Moment:
        """Return a moment; a plain number is an epoch."""
        return when if isinstance(when, Moment) else cls(when)

    @property
    def file(self) -> str:
        """Name of the file with the weights."""
        return f"{self.unit}-{self.number:0{5 if self.unit == 'epoch' else 7}d}.pt"

    def steps(self, per_epoch: int) -> int:
        """Optimiser steps done."""
        return self.number * per_epoch if self.unit == "epoch" else self.number

    def epochs(self, per_epoch: int) -> float:
        """Epochs done, a whole number at the end of one."""
        return self.number if self.unit == "epoch" or not self.number else self.number / per_epoch

    def __str__(self) -> str:
        return f"{self.unit} {self.number}"
