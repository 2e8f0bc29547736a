"""What a measuring process sets about itself, so that a CPU spends its time on the numbers. No number changes."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's malloc.h
_KEEP = 2**30


def share_cores() -> None:
    """Let idle worker threads sleep soon instead of spinning; effective only before torch is imported.

    GNU OpenMP's threads spin at every barrier, which costs nothing on an idle machine, but beside one other busy
    process on two cores makes EfficientNet-Lite0 twenty times slower; this way it is two times, and as fast as before
    alone. A value that the user has set stays.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


@cache
def keep_freed_memory() -> bool:
    """Let the C library reuse large blocks instead of mapping them anew; return whether it agreed.

    By default glibc maps every tensor of more than 32 MiB for itself and trims the heap at each chance, so that the
    kernel clears the same pages again for each layer of each forward pass: half of the time of EfficientNet-Lite0.
    No number changes. Elsewhere than on glibc nothing is done. It holds for the rest of the process.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all([mallopt(_MMAP_THRESHOLD, _KEEP) == 1, mallopt(_TRIM_THRESHOLD, _KEEP) == 1])


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Heed Ctrl-C at the end of a short piece of work: stopped in the middle, zarr's own loop complains at exit."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    asked: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *given: asked.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        before(*asked[0])
