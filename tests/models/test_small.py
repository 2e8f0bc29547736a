from __future__ import annotations

import pytest
import torch

import geoframe as gf
from geoframe.models.small import cnn, mlp


def parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_the_papers_mlp():
    net = mlp()
    linear = [m for m in net if isinstance(m, torch.nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(784, 1024), (1024, 512), (512, 10)]
    kinds = [type(m).__name__ for m in net]
    assert kinds == ["Flatten", "Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d", "ReLU", "Linear"]


def test_other_sizes():
    assert mlp(inputs=64, widths=(32,), classes=3)(torch.zeros(2, 1, 8, 8)).shape == (2, 3)
    assert mlp(inputs=64, widths=())(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def test_the_cnn():
    assert parameters(cnn()) == 206922
    assert cnn()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert cnn(size=8, widths=(4, 8), hidden=16, classes=5)(torch.zeros(2, 1, 8, 8)).shape == (2, 5)
    assert cnn(channels=3, size=32)(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_too_many_poolings_for_the_image():
    with pytest.raises(gf.BadInput, match="8×8 image: give fewer widths"):
        cnn(size=8, widths=(4, 4, 4, 4))


def test_rays_through_the_mlp_can_be_searched_exactly():
    encoder = gf.FactoryEncoder(
        "geoframe.models.small:mlp", kwargs={"inputs": 64, "widths": (16, 8)}, input_shape=(1, 8, 8)
    )
    probe = gf.GIProbe(along="random", n_directions=4, search="exact")
    assert gf.measure(probe, encoder, gf.Digits(n=2))["gi"].shape == (2, 4)
