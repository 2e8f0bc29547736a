"""Crops of the embedded photographs."""

from __future__ import annotations

import pytest
import torch

import geoframe as gf
from geoframe.probesets.crops import FILES, TILE

pytest.importorskip("skimage", reason="photos come with scikit-image")
pytest.importorskip("sklearn", reason="photos come with scikit-learn")


def test_labels_take_turns_and_a_smaller_set_is_part_of_a_larger_one():
    small, large = (gf.PhotoCrops(split="train", n=n).load((3, 32, 32)) for n in (7, 20))
    assert small.labels == (0, 1, 2, 3, 4, 5, 0)
    assert small.ids == large.ids[:7]
    assert torch.equal(small.pixels, large.pixels[:7])
    assert small.pixels.shape == (7, 3, 32, 32)
    assert small.pixels.min() >= 0
    assert small.pixels.max() <= 1
    assert len({row.sum().item() for row in large.pixels}) == 20


def test_no_pixel_is_in_both_splits():
    for split, colour in (("train", 0), ("test", 1)):
        crops = gf.PhotoCrops(split=split, n=200)
        for name in crops.listing().ids:
            left, upper, right, lower = crops._box(name, (512, 400))
            assert left // TILE == (right - 1) // TILE
            assert upper // TILE == (lower - 1) // TILE
            assert (left // TILE + upper // TILE) % 2 == colour
            assert right <= 512
            assert lower <= 400
            assert 40 <= right - left == lower - upper <= 64


def test_some_crops_are_those_of_the_whole_and_seeds_differ():
    crops = gf.PhotoCrops(n=9)
    picked, every = crops.pick((3, 16, 16), (2, 5)), crops.load((3, 16, 16))
    assert torch.equal(picked.pixels, every.pixels[[2, 5]])
    assert picked.labels == (2, 5)
    assert crops.evolve(seed=1).load((3, 16, 16)).digest != every.digest
    assert crops.classes() == len(FILES)
    assert crops.source_digest()


def test_a_network_learns_them(tmp_path, monkeypatch):
    from geoframe.training.published import photo_training

    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path))
    training = photo_training("resnet20", n=240, epochs=4)
    curve = gf.training_curve(training)
    assert float(curve["train_accuracy"][-1]) > float(curve["train_accuracy"][0]) + 0.2
