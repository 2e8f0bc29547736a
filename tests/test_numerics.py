"""Numerics are fixed while measuring, and restored after, also after an error."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import geoframe as gf
from geoframe.numerics import exact_numerics, threads


def state() -> tuple[object, ...]:
    backends = torch.backends
    return (
        backends.cuda.matmul.fp32_precision,
        backends.cudnn.conv.fp32_precision,
        backends.cudnn.benchmark,
        backends.mha.get_fastpath_enabled(),
        backends.cuda.flash_sdp_enabled(),
        torch.is_grad_enabled(),
    )


def test_everything_is_set_and_restored() -> None:
    before = state()
    with exact_numerics():
        assert state() == ("ieee", "ieee", False, False, False, False)
    assert state() == before


def fail_while_measuring() -> None:
    with exact_numerics(), threads(1):
        raise RuntimeError("broken")


def test_an_error_restores_too() -> None:
    before, count = state(), torch.get_num_threads()
    with pytest.raises(RuntimeError, match="broken"):
        fail_while_measuring()
    assert state() == before
    assert torch.get_num_threads() == count


def test_a_factory_that_sets_threads_does_not_change_those_of_later_encoders(tmp_path: Path) -> None:
    factory = tmp_path / "greedy.py"
    factory.write_text(
        "import torch\n\ndef net():\n    torch.set_num_threads(7)\n    return torch.nn.Sequential(torch.nn.Flatten(), "
        "torch.nn.Linear(12, 3))\n"
    )
    before = torch.get_num_threads()
    gf.FactoryEncoder(f"{factory}:net", input_shape=(3, 2, 2)).load()
    assert torch.get_num_threads() == before
