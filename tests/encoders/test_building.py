from __future__ import annotations

import random

import numpy as np
import torch

from geoframe.encoders.building import clean_build


def _state():
    return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002


def test_the_seed_alone_decides():
    def draw(seed):
        with clean_build(seed):
            return torch.rand(3).tolist(), random.random(), float(np.random.rand())  # noqa: NPY002

    torch.manual_seed(5)
    first = draw(1)
    torch.manual_seed(6)
    assert draw(1) == first
    assert draw(2) != first


def test_the_callers_state_comes_back_even_after_an_error():
    before = _state()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.inference_mode():
            try:
                with clean_build(3):
                    layer = torch.nn.Linear(2, 2)
                    raise RuntimeError
            except RuntimeError:
                pass
            assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert layer.weight.dtype == torch.float32
    assert layer.weight.requires_grad
    assert not layer.weight.is_inference()
    assert _state() == before
