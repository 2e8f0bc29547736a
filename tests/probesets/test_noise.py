from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoframe.errors import BadInput
from geoframe.probesets.frame import load_framed
from geoframe.probesets.noise import NoiseImages, NoiseSet
from geoframe.probesets.subset import Subset
from tests.probesets.sets import same, tensors


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


def test_noise_under_another_sets_labels():
    toy = tensors({0: 20, 1: 30})
    noise = NoiseImages(toy, seed=3)
    images = noise.load((3, 8, 8))
    assert images.labels == toy.labels
    assert same(images, load_framed(noise, (3, 8, 8)))
    assert noise.listing() == (images.ids, images.labels)
    assert same(noise.pick((3, 8, 8), [4, 40]), load_framed(noise, (3, 8, 8), [4, 40]))
    assert torch.equal(noise.pick((3, 8, 8), [4, 40]).pixels, images.pixels[[4, 40]])


def test_training_inputs_are_made_anew_from_their_seed():
    training = NoiseImages(tensors({0: 20, 1: 30}), seed=3).load((3, 8, 8))
    again = NoiseSet(32, seed=3).load((3, 8, 8))
    assert (again.ids, torch.equal(again.pixels, training.pixels[:32])) == (training.ids[:32], True)
    drawn = Subset(NoiseImages(tensors({0: 20, 1: 30}), seed=3), 5).load((3, 8, 8))
    assert all(torch.equal(drawn.image(name), training.image(name)) for name in drawn.ids)
    other = NoiseSet(32, seed=4).load((3, 8, 8))
    assert not set(other.ids) & set(training.ids)
    assert not torch.equal(other.pixels, again.pixels)


def test_names_coords_and_smoke_of_noise_with_labels():
    toy = tensors({0: 2, 1: 3})
    noise = NoiseImages(toy, seed=3)
    assert (noise.label, noise.coords) == ("toy-noise", {"dataset": "noise", "seed": 3})
    assert (noise.count(), noise.classes(), noise.source_digest()) == (5, 2, None)
    assert (noise.smoke().count(), noise.smoke().label) == (1, "toy-noise")
    assert len({noise.key, NoiseImages(toy).key, NoiseImages(tensors({0: 3, 1: 2}), seed=3).key}) == 3
    with pytest.raises(BadInput, match="NoiseImages: like=32 should be a probe set"):
        NoiseImages(32)
