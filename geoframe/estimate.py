"""How long a plan takes: forward passes, times the seconds that one takes here, measured without any download."""

from __future__ import annotations

import time
from collections.abc import Callable

from geoframe.attacks import Attack
from geoframe.encoder import Encoder
from geoframe.foresight import nested
from geoframe.plan import Cell
from geoframe.training.recipe import Training

BATCH = 8
LONG = 0.1  # seconds that the timed batch may grow to: small networks run far faster in large batches
BUDGET = 40.0  # seconds that all calibrations of one plan may take together
NO_COPY = "it has no copy with random weights to time, and building it might need a download"


class Estimator:
    """Times each architecture once, on `device`, and a step of each kind of training; see `Encoder.for_timing`.

    Attributes
    ----------
    reasons : dict of str to str
        Why encoders (by name) could not be timed.
    """

    def __init__(self, device: str = "auto") -> None:
        from geoframe.settings import resolve_device

        self.device = resolve_device(device)
        self.reasons: dict[str, str] = {}
        self._known: dict[str, float | str] = {}
        self._deadline = time.monotonic() + BUDGET

    def seconds(self, encoder: Encoder, passes: float | None) -> float | None:
        """Return the estimated time of so many passes, or None where it can't be told."""
        if passes is None:
            return None
        if passes == 0:
            return 0.0
        return self._timed(encoder, passes)

    def _timed(self, encoder: Encoder, passes: float, attack: Attack | None = None) -> float | None:
        per_pass = self._per_pass(encoder, attack)
        if isinstance(per_pass, str):
            self.reasons[encoder.label] = per_pass
            return None
        return passes * per_pass

    def cell_seconds(self, cell: Cell, passes: float | None) -> float | None:
        """Return the estimated time of so many passes of a cell, or None where it can't be told.

        Those of attacks are priced by an attack: they go image by image, with foolbox's own work around each.
        """
        attacks = [spec for spec in nested(cell.probe) if isinstance(spec, Attack)]
        planned = cell.passes(1)
        if not attacks or not passes or not planned:
            return self.seconds(cell.encoder, passes)
        images = passes / planned
        parts = [self.seconds(cell.encoder, passes - images * sum(attack.passes() for attack in attacks))]
        parts += [self._timed(cell.encoder, images * one.passes(), one) for one in attacks]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def training_seconds(self, training: Training) -> float | None:
        """Return the estimated time of a whole training, or None where it can't be told."""
        from geoframe.training.timing import alike, seconds_per_step

        try:
            if training.steps is None:
                return None
            per_step = self._once(alike(training), lambda: seconds_per_step(training, self.device))
        except Exception:  # as below
            return None
        return None if isinstance(per_step, str) else training.steps * per_step

    def _per_pass(self, encoder: Encoder, attack: Attack | None) -> float | str:
        """Seconds of a pass, or of one of an attack; or why they can't be told."""
        try:
            copy = encoder.for_timing()
            if copy is None:
                return NO_COPY
            if attack is None:
                return self._once(copy.key, lambda: seconds_per_pass(copy, self.device))
            return self._once(copy.key + attack.key, lambda: seconds_per_attack_pass(copy, attack, self.device))
        except Exception as error:  # an estimate may fail for any reason; the run itself will say more
            return " ".join(f"{type(error).__name__}: {error}".split())

    def _once(self, key: str, take: Callable[[], float]) -> float | str:
        """Time what has a key, once; or say that there's no time for it."""
        if key not in self._known:
            late = time.monotonic() > self._deadline
            self._known[key] = f"timing the others took more than {BUDGET:.0f} s" if late else take()
        return self._known[key]


def seconds_per_pass(encoder: Encoder, device: str) -> float:
    """Build an encoder and time batches, after one image to warm up: larger ones as long as they are quick."""
    import torch

    from geoframe.numerics import exact_numerics
    from geoframe.settings import choose_settings

    loaded = encoder.load(device)
    largest = max(BATCH, choose_settings(loaded).micro_batch)
    size, took = BATCH, 0.0
    with exact_numerics():
        loaded.features(torch.full((1, *loaded.input_shape), 0.5, device=loaded.device)).sum().item()
        while True:
            batch = torch.full((size, *loaded.input_shape), 0.5, device=loaded.device)
            start = time.perf_counter()
            loaded.features(batch).sum().item()  # item() waits for the device
            took = time.perf_counter() - start
            if size == largest or took > LONG / 2:
                return took / size
            size = min(2 * size, largest)


def seconds_per_attack_pass(encoder: Encoder, attack: Attack, device: str) -> float:
    """Attack one image twice, shortly, and time the second time: the first one warms up."""
    import torch

    from geoframe.attacking import attack_image

    loaded, short = encoder.load(device), attack.smoke()
    x = torch.full((1, *loaded.input_shape), 0.5)
    for _ in range(2):
        start = time.perf_counter()
        attack_image(loaded, x, -1, short)
    return (time.perf_counter() - start) / short.passes()


def readable_time(seconds: float) -> str:
    """Return a time as people say it: 0.4 s, 35 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, size, limit in (("s", 1.0, 100.0), ("min", 60.0, 6000.0), ("h", 3600.0, 172800.0)):
        if seconds < limit:
            return f"{seconds / size:.1f} {unit}" if unit == "h" else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.1f} days"
