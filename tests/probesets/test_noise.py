from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoframe.errors import BadInput
from geoframe.probesets.noise import NoiseSet


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers())
def test_an_image_does_not_depend_on_how_many_there_are(few, more, seed):
    first, second = NoiseSet(few, seed=seed), NoiseSet(few + more, seed=seed)
    small, large = first.load((3, 4, 5)), second.load((3, 4, 5))
    assert torch.equal(small.pixels, large.pixels[:few])
    assert small.ids == large.ids[:few]


def test_noise_is_uniform_and_independent():
    pixels = NoiseSet(40).load((3, 16, 16)).pixels.flatten(1).double()
    assert abs(pixels.mean() - 1 / 2) < 0.01  # standard error 0.0017
    assert abs(pixels.var() - 1 / 12) < 0.003
    assert pixels.min() < 0.001
    assert pixels.max() > 0.999
    correlation = torch.corrcoef(pixels) - torch.eye(40, dtype=torch.float64)
    assert correlation.abs().max() < 0.2  # standard error 0.036
    other = NoiseSet(1, seed=1).load((3, 16, 16)).pixels.flatten().double()
    assert abs(torch.corrcoef(torch.stack([pixels[0], other]))[0, 1]) < 0.2


def test_the_shape_is_the_encoders_or_must_be_it():
    assert NoiseSet(2).load((1, 28, 28)).pixels.shape == (2, 1, 28, 28)
    with pytest.raises(BadInput, match=r"has shape \(3, 8, 8\), but the encoder takes \(3, 4, 4\)"):
        NoiseSet(2, shape=(3, 8, 8)).load((3, 4, 4))


def test_names_coords_and_smoke():
    noise = NoiseSet(32, seed=5)
    assert (noise.label, noise.coords, noise.count()) == ("noise32", {"seed": 5}, 32)
    assert (noise.smoke().label, noise.smoke().count()) == ("noise32", 1)
    with pytest.raises(BadInput, match="n=0"):
        NoiseSet(0)
    with pytest.raises(BadInput, match="n=None should be a whole number"):
        NoiseSet(None)
    with pytest.raises(BadInput, match="seed='a'"):
        NoiseSet(1, seed="a")
