"""A place to build networks in: seeded, float32, on the CPU, without a trace in the caller's state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def clean_build(seed: int) -> Iterator[None]:
    """Seed every generator and set torch's defaults inside the block; put all of them back afterwards.

    Random initialisation depends on `seed` alone, not on what ran before, on a default dtype or device, or on
    whether gradients are on. torch's CUDA generators are never touched.
    """
    import torch

    dtype = torch.get_default_dtype()
    with seeded(seed), torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed Python's, numpy's and torch's CPU generators inside the block; put them back afterwards."""
    import numpy as np
    import torch

    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - code of third parties draws from it
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
