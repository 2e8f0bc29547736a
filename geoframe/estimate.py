"""How long a plan takes: forward passes, times the seconds that one takes here, measured on a random-weight copy."""

from __future__ import annotations

import time

from geoframe.encoder import Encoder

BATCH = 8
BUDGET = 40.0  # seconds that all calibrations of one plan may take together


class Estimator:
    """Times each architecture once, on `device`, without any download.

    An encoder is timed on its `randomised()` copy. One that doesn't have such a copy might need a download to be
    built, so it isn't timed, unless it is a live module.
    """

    def __init__(self, device: str = "auto") -> None:
        from geoframe.measuring import resolve_device

        self.device = resolve_device(device)
        self._known: dict[str, float | None] = {}
        self._deadline = time.monotonic() + BUDGET

    def seconds(self, encoder: Encoder, passes: float | None) -> float | None:
        """Return the estimated time of so many passes, or None where it can't be told."""
        if passes is None:
            return None
        if passes == 0:
            return 0.0
        per_pass = self._per_pass(encoder)
        return None if per_pass is None else passes * per_pass

    def _per_pass(self, encoder: Encoder) -> float | None:
        if type(encoder).randomised is Encoder.randomised and not encoder.in_process_only:
            return None
        try:
            copy = encoder.randomised()
            if copy.key not in self._known:
                late = time.monotonic() > self._deadline
                self._known[copy.key] = None if late else seconds_per_pass(copy, self.device)
        except Exception:  # an estimate may fail for any reason; the run itself will say what is wrong
            return None
        return self._known[copy.key]


def seconds_per_pass(encoder: Encoder, device: str) -> float:
    """Build an encoder and time one small batch, after one image to warm up."""
    import torch

    from geoframe.numerics import exact_numerics

    loaded = encoder.load(device)
    batch = torch.full((BATCH, *loaded.input_shape), 0.5, device=loaded.device)
    with exact_numerics():
        loaded.features(batch[:1]).sum().item()
        start = time.perf_counter()
        loaded.features(batch).sum().item()  # item() waits for the device
        return (time.perf_counter() - start) / BATCH


def readable_time(seconds: float) -> str:
    """Return a time as people say it: 0.4 s, 35 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, size, limit in (("s", 1.0, 100.0), ("min", 60.0, 6000.0), ("h", 3600.0, 172800.0)):
        if seconds < limit:
            return f"{seconds / size:.1f} {unit}" if unit == "h" else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
