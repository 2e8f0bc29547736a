"""How a training tells where it is: lines on the standard error, the first one after two seconds.

Lines, not a bar: the command line's bar, which may be on the screen, prints them above itself.
"""

from __future__ import annotations

import sys
import time

FIRST, EVERY = 2.0, 15.0  # seconds before the first line, and between lines


class TrainingProgress:
    """Told of each step, of each epoch's end, and of the time that each of so many `checkpoints` takes.

    The steps `before` were done by an earlier run.
    """

    def __init__(self, label: str, epochs: int, per_epoch: int, before: int = 0, checkpoints: int = 0) -> None:
        self.label, self.epochs, self.per_epoch, self.before = label, epochs, per_epoch, before
        self._checkpoints, self._keeping = checkpoints, list[float]()
        self._since = time.monotonic()
        self._last = self._since + FIRST - EVERY

    def kept(self, seconds: float) -> None:
        """Count a checkpoint; a logarithmic schedule has most of them early, so they are timed apart."""
        self._keeping.append(seconds)

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

        left = f", about {readable_time(self._left(spent, done, total))} left" if done < total else ""
        self.say(f"training {self.label}: {where}, loss {loss:.3g}{left}")

    def _left(self, spent: float, done: int, total: int) -> float:
        keeping, kept = sum(self._keeping), len(self._keeping)
        steps = (spent - keeping) / (done - self.before) * (total - done)
        return steps + keeping / max(1, kept) * max(0, self._checkpoints - kept)

    @staticmethod
    def say(line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)
