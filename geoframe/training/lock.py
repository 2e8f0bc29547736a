"""The lock that makes two runs which need the same training do it once. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import filelock

from geoframe.files import writing
from geoframe.training.cache import ELSEWHERE, TrainingCache
from geoframe.training.progress import TrainingProgress


@contextmanager
def locked(cache: TrainingCache) -> Iterator[None]:
    """Hold the training's lock; say so where another run holds it."""
    lock = filelock.FileLock(cache.lock)
    with writing(cache.lock, ELSEWHERE):
        cache.lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            TrainingProgress.say(f"training {cache.training.label}: another run is at it; waiting for it")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
