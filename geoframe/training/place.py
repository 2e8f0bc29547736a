"""Where a training runs: device and threads, which are recorded, since an interrupted one goes on where it began."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import attrs
import torch

from geoframe.errors import BadInput

_DEVICE: ContextVar[str] = ContextVar("device of new trainings", default="cpu")


@contextmanager
def training_on(device: str) -> Iterator[None]:
    """Let trainings that begin inside the block run on a torch device.

    Encoders are built on the CPU whatever they are measured on, so what loads one says here which device that is.
    """
    token = _DEVICE.set(device)
    try:
        yield
    finally:
        _DEVICE.reset(token)


@attrs.frozen
class Place:
    """A device, what it is called (a GPU's model, a CPU's architecture), and the number of CPU threads."""

    device: str
    device_name: str
    threads: int

    @classmethod
    def here(cls) -> Place:
        """Return where a training that begins now runs."""
        from geoframe.settings import device_name

        return cls(_DEVICE.get(), device_name(_DEVICE.get()), torch.get_num_threads())

    @classmethod
    def again(cls, before: Mapping[str, Any]) -> Place | None:
        """Return where one runs that is recorded as begun, None where no such device is here: bits would differ.

        Of several GPUs of that model, it is the one that new trainings run on, or else torch's first.
        """
        from geoframe.settings import device_name, resolve_device

        kind, name = device_of(before)
        new = _DEVICE.get()
        try:
            device = resolve_device(new if _kind(new) == kind else kind)
        except BadInput:
            return None
        return cls(device, name, int(before["threads"])) if device_name(device) == name else None

    @property
    def torch(self) -> torch.device:
        """The device."""
        return torch.device(self.device)

    def record(self) -> dict[str, Any]:
        """Return what the log says; which of several GPUs it is makes no difference."""
        return {"threads": self.threads, "device": _kind(self.device), "device_name": self.device_name}


def device_of(recorded: Mapping[str, Any]) -> tuple[str, str]:
    """Return a recorded training's kind of device, and what it is called; older ones ran on the CPU."""
    return str(recorded.get("device", "cpu")), str(recorded.get("device_name", platform.machine()))


def _kind(device: str) -> str:
    return torch.device(device).type


def generator_of(device: torch.device) -> torch.Generator | None:
    """Return the device's own generator, which a model's dropout draws from there; None for the CPU."""
    module: Any = getattr(torch, device.type, None)  # torch.cuda, say
    generators = getattr(module, "default_generators", ())
    if not generators:
        return None
    index: int | None = device.index
    found: torch.Generator = generators[module.current_device() if index is None else index]
    return found


@contextmanager
def seeded_on(device: torch.device, seed: int) -> Iterator[None]:
    """Seed the device's own generator inside the block, and put it back afterwards."""
    generator = generator_of(device)
    if generator is None:
        yield
        return
    before = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(before)
