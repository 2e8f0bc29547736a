"""Micro-batch from a memory cap: a function of the encoder and the cap alone, never of free memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from geoframe.loaded import LoadedEncoder
from geoframe.preflight import first_features

MEMORY_CAP = {"cpu": 512 * 2**20, "cuda": 2 * 2**30}
LARGEST_BATCH = 513
# On a CPU a batch is fastest while its activations stay in the cache (ResNet-20 for CIFAR: a quarter faster at 64
# images than at 513), but some are needed to keep the cores busy.
CPU_CACHE = 24 * 2**20
CPU_LEAST = 17
# input, output and one temporary of the widest layer, each of which may exist twice (layout copies)
_COPIES = 3


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, tuple | list):
        return sum(_bytes(v) for v in value)
    return 0


class _Operations(TorchDispatchMode):
    """Watch every operation, for scripted modules, which take no hooks."""

    def __init__(self, watch: Callable[[Any, Any, Any], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        self.watch(func, args, output)
        return output


@contextmanager
def _watched(network: torch.nn.Module, watch: Callable[[Any, Any, Any], None]) -> Iterator[None]:
    modules = list(network.modules())
    if any(isinstance(m, torch.jit.ScriptModule) for m in modules):
        with _Operations(watch):
            yield
        return
    hooks = [m.register_forward_hook(watch) for m in modules if not list(m.children())]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def sample_bytes(encoder: LoadedEncoder) -> int:
    """Estimate the peak memory of one image in a forward pass, from the widest module's input and output."""
    shape = (1, *encoder.input_shape)
    widest = [_bytes(torch.empty(shape, device="meta")) * 2]

    def watch(_module: Any, inputs: Any, output: Any) -> None:
        widest.append(_bytes(inputs) + _bytes(output))

    with _watched(encoder.network, watch):
        first_features(encoder, torch.full(shape, 0.5, dtype=encoder.dtype, device=encoder.device))
    return _COPIES * max(widest)


def choose_micro_batch(encoder: LoadedEncoder, memory: int | None = None) -> tuple[int, int, int]:
    """Choose the number of images in a forward pass.

    Parameters
    ----------
    encoder : LoadedEncoder
    memory : int or None
        Cap in bytes on activations; None takes 512 MiB on a CPU and 2 GiB on a GPU. On a CPU a batch is also
        kept within 24 MiB, about its cache, but not below 17 images.

    Returns
    -------
    micro_batch : int
        At least 3, at most 513.
    largest : int
        The same without regard to the cache.
    memory : int
        The cap.
    """
    cap = memory or MEMORY_CAP.get(encoder.device.type, MEMORY_CAP["cuda"])
    largest = max(3, min(LARGEST_BATCH, cap // encoder.sample_bytes))
    if encoder.device.type != "cpu":
        return largest, largest, cap
    return max(3, min(largest, max(CPU_LEAST, CPU_CACHE // encoder.sample_bytes))), largest, cap
