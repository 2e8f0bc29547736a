"""How a training tells where it is: lines on the standard error, the first one after two seconds.

Lines, not a bar: the command line's bar, which may be on the screen, prints them above itself.
"""

from __future__ import annotations

import sys
import time

FIRST, EVERY = 2.0, 15.0  # seconds before the first line, and between lines


class TrainingProgress:
    """Told of each epoch's end; those `before` were done by an earlier run."""

    def __init__(self, label: str, epochs: int, before: int = 0) -> None:
        self.label, self.epochs, self.before = label, epochs, before
        self._since = time.monotonic()
        self._last = self._since + FIRST - EVERY

    def epoch(self, done: int, loss: float) -> None:
        """Print a line if one is due, and at the end of what had lines."""
        now = time.monotonic()
        spent = now - self._since
        if spent < FIRST or (now - self._last < EVERY and done < self.epochs):
            return
        self._last = now
        from geoframe.estimate import readable_time

        left = (
            f", about {readable_time(spent / (done - self.before) * (self.epochs - done))} left"
            if done < self.epochs
            else ""
        )
        self.say(f"training {self.label}: epoch {done} of {self.epochs}, loss {loss:.3g}{left}")

    @staticmethod
    def say(line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)
