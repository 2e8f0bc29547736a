"""The one place that fixes how torch computes while something is measured, and restores it after."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

T = TypeVar("T")


def _precision_switches() -> list[Any]:
    """Return the backends whose float32 may silently be computed as TF32 or bfloat16."""
    backends = torch.backends
    return [
        backends.cuda.matmul,
        backends.cudnn.conv,  # type: ignore[attr-defined]  # absent from torch's own stubs, as are mkldnn's
        backends.cudnn.rnn,
        backends.mkldnn.matmul,  # type: ignore[attr-defined]
        backends.mkldnn.conv,  # type: ignore[attr-defined]
        backends.mkldnn.rnn,  # type: ignore[attr-defined]
    ]


@contextmanager
def _attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _restored(read: Callable[[], T], write: Callable[[T], object], value: T) -> Iterator[None]:
    """Set what has a getter and a setter, and set it back."""
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


@contextmanager
def plain_torch() -> Iterator[None]:
    """Undo what a caller's surroundings may impose: autocast, inference mode, default dtype and device.

    Autocast would round to 16 bits, inference mode kills derivatives, and another default dtype or device
    changes what a forward creates for itself. Everything is as the caller had it on leaving.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(_restored(torch.get_default_dtype, torch.set_default_dtype, torch.float32))
        yield


@contextmanager
def exact_numerics() -> Iterator[None]:
    """Full float32 everywhere, kernels that have forward-mode derivatives, no autograd graph.

    TF32 is off (cuDNN convolutions use it by default). Attention runs as plain matrix products, in the
    numerator and the denominator alike, since the fused kernels and the fast path of a frozen
    `nn.MultiheadAttention` have no forward-mode derivative. A probe that needs reverse mode wraps its
    own part in `torch.enable_grad()`. A caller's autocast, inference mode and defaults don't count (see
    `plain_torch`). All settings are restored on leaving, also after an error.
    """
    with ExitStack() as stack:
        stack.enter_context(plain_torch())
        for backend in _precision_switches():
            stack.enter_context(_attribute(backend, "fp32_precision", "ieee"))
        stack.enter_context(_attribute(torch.backends.cudnn, "benchmark", False))
        stack.enter_context(_attribute(torch.backends.cudnn, "deterministic", True))
        fastpath = torch.backends.mha
        stack.enter_context(_restored(fastpath.get_fastpath_enabled, fastpath.set_fastpath_enabled, False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(torch.no_grad())
        yield


def with_fused_attention(run: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a map whose attention runs in one kernel where torch has one: faster, and without forward-mode derivative.

    In float32 that is on a CPU; a GPU has one for bfloat16, and computes plain matrix products else.
    """

    def fused(x: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            return run(x)

    return fused


@contextmanager
def training_numerics(device: torch.device) -> Iterator[None]:
    """Full float32 and gradients for training; off the CPU, algorithms that give the same bits again.

    Only where torch has such. What it chooses on the CPU repeats as it is, with equal threads. A caller's surroundings
    don't count (see `plain_torch`), and all settings are restored on leaving.
    """
    with ExitStack() as stack:
        stack.enter_context(plain_torch())
        for backend in _precision_switches():
            stack.enter_context(_attribute(backend, "fp32_precision", "ieee"))
        if device.type != "cpu":
            stack.enter_context(_deterministic())
        stack.enter_context(torch.enable_grad())
        yield


@contextmanager
def _deterministic() -> Iterator[None]:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # torch asks for it; read before the first product
    with ExitStack() as stack:
        stack.enter_context(_attribute(torch.backends.cudnn, "benchmark", False))
        stack.enter_context(_attribute(torch.backends.cudnn, "deterministic", True))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation")
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def threads(count: int) -> AbstractContextManager[None]:
    """Run with `count` CPU threads: another number of threads gives other last bits."""
    return _restored(torch.get_num_threads, torch.set_num_threads, count)
