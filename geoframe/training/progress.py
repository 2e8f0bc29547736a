"""How a training tells where it is: lines on the standard error, the first one after two seconds.

Lines, not a bar: the command line's bar, which may be on the screen, prints them above itself.
"""

from __future__ import annotations

import sys
import time

FIRST, EVERY = 2.0, 15.0  # seconds before the first line, and between lines


class TrainingProgress:
    """Told of each step and of each epoch's end; the steps `before` were done by an earlier run."""

    def __init__(self, label: str, epochs: int, per_epoch: int, before: int = 0) -> None:
        self.label, self.epochs, self.per_epoch, self.before = label, epochs, per_epoch, before
        self._since = time.monotonic()
        self._last = self._since + FIRST - EVERY

    def step(self, done: int, loss: float) -> None:
        """Print a line within a long epoch if one is due."""
        if done % self.per_epoch:
            epoch = f"epoch {done // self.per_epoch + 1} of {self.epochs}"
            self._tell(f"{epoch}, step {done} of {self.epochs * self.per_epoch}", done, loss)

    def epoch(self, done: int, loss: float) -> None:
        """Print a line if one is due, and at the end of what had lines."""
        self._tell(f"epoch {done} of {self.epochs}", done * self.per_epoch, loss)

    def _tell(self, where: str, done: int, loss: float) -> None:
        now, total = time.monotonic(), self.epochs * self.per_epoch
        spent = now - self._since
        if spent < FIRST or (now - self._last < EVERY and done < total):
            return
        self._last = now
        from geoframe.estimate import readable_time

        seconds = spent / (done - self.before) * (total - done)
        left = f", about {readable_time(seconds)} left" if done < total else ""
        self.say(f"training {self.label}: {where}, loss {loss:.3g}{left}")

    @staticmethod
    def say(line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)
