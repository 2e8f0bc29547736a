"""Settings of a cell: where and how it is computed, fixed when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import torch

from geoframe.errors import BadInput
from geoframe.loaded import LoadedEncoder
from geoframe.memory import choose_micro_batch
from geoframe.tuning import Derivative, tuned_batch, tuned_bfloat16, tuned_derivative

FIXED = ("micro_batch", "memory", "derivative", "bfloat16")  # settings that a loaded encoder has as attributes


@attrs.frozen(kw_only=True)
class Settings:
    """What may change the last bits but not the meaning of a number: fixed when a cell starts, and recorded.

    Attributes
    ----------
    device, device_name : str
        Where the cell is computed.
    threads : int
        CPU threads.
    dtype : str
        Precision of the forward passes.
    micro_batch, memory : int
        Images in a forward pass, and the cap in bytes that it was chosen from.
    derivative : {"batch", "shared"}
        How Jacobian–vector products at one image are computed (see `geoframe.tuning`).
    bfloat16 : bool
        Whether bfloat16 is faster, so that a precision ladder tries it.
    torch : str
        Version of torch.
    """

    device: str
    device_name: str
    threads: int
    dtype: str = "float32"
    micro_batch: int
    memory: int
    derivative: Derivative = "batch"
    bfloat16: bool = False
    torch: str

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Read what `to_json` wrote."""
        return cls(**data)


def resolve_device(name: str = "auto") -> str:
    """Return a torch device that exists here; "auto" takes a GPU where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=torch.device(name)).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        have = "cpu" + (", cuda" if torch.cuda.is_available() else "; this torch finds no CUDA device")
        raise BadInput(f"device {name!r} can't be used here (there is {have}): leave out --device") from error
    return name


def device_name(device: str) -> str:
    """Return what the device is called, e.g. the GPU's model."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(torch.device(device))
    import platform

    return platform.machine()


def choose_settings(encoder: LoadedEncoder, memory: int | None = None, timed: bool = False) -> Settings:
    """Choose the settings of a new cell: a function of encoder, device and cap, unless they are `timed`."""
    micro_batch, largest, cap = choose_micro_batch(encoder, memory)
    derivative: Derivative = "batch"
    bfloat16 = False
    if timed:
        micro_batch, derivative = tuned_batch(encoder, micro_batch, largest), encoder.derived(tuned_derivative)
        bfloat16 = tuned_bfloat16(encoder, micro_batch)
    device = str(encoder.device)
    return Settings(
        device=device,
        device_name=device_name(device),
        threads=torch.get_num_threads(),
        micro_batch=micro_batch,
        memory=cap,
        derivative=derivative,
        bfloat16=bfloat16,
        torch=torch.__version__,
    )
