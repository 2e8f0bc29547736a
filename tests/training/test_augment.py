"""Augmentations against definitions image by image."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import pad

from geoframe.training.augment import AUGMENTATIONS, crop_flip, crop_flip_jitter
from geoframe.training.recipe import AUGMENTATIONS as NAMES


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def images(n=400, channels=3, height=6, width=9):
    return torch.rand(n, channels, height, width, generator=seeded(1))


def test_each_image_is_a_window_of_its_padded_self_mirrored_or_not():
    x = images()
    made = crop_flip(x, seeded())
    assert made.shape == x.shape
    seen = {(mirrored, dy, dx): 0 for mirrored in (0, 1) for dy in range(9) for dx in range(9)}
    for one, whole in zip(made, pad(x, (4,) * 4), strict=True):
        fits = [
            place
            for place in seen
            if torch.equal(one.flip(2) if place[0] else one, whole[:, place[1] : place[1] + 6, place[2] : place[2] + 9])
        ]
        assert len(fits) == 1
        seen[fits[0]] += 1
    flips = sum(count for (mirrored, _, _), count in seen.items() if mirrored)
    assert 160 < flips < 240
    for axis in (1, 2):
        offsets = {place[axis] for place, count in seen.items() if count}
        assert offsets == set(range(9))
    assert len([count for count in seen.values() if count]) > 120  # rows, columns and flips are drawn apart


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_an_augmentation_is_pure_and_reproducible(name, channels):
    x = images(16, channels)
    before = x.clone()
    state = torch.get_rng_state()
    made = AUGMENTATIONS[name](x, seeded())
    assert torch.equal(made, AUGMENTATIONS[name](x, seeded()))
    assert not torch.equal(made, AUGMENTATIONS[name](x, seeded(2)))
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert made.shape == x.shape
    assert made.dtype == torch.float32
    assert 0 <= float(made.min()) <= float(made.max()) <= 1


def test_jitter_is_torchvisions_image_by_image():
    from torchvision.transforms.v2 import functional as F

    x = images(20)
    generator = seeded()
    cropped = crop_flip(x, generator)
    factors = 0.6 + 0.8 * torch.rand((3, 20), generator=generator)
    made = crop_flip_jitter(x, seeded())
    for one, want, (brightness, contrast, saturation) in zip(made, cropped, factors.T.tolist(), strict=True):
        want = F.adjust_contrast(F.adjust_brightness(want, brightness), contrast)
        # torchvision's luminance weights sum to 0.9999
        torch.testing.assert_close(one, F.adjust_saturation(want, saturation), atol=3e-4, rtol=0)
    assert float(factors.min()) < 0.7 < 1.3 < float(factors.max())


def test_the_recipe_names_all_augmentations():
    assert set(NAMES) == set(AUGMENTATIONS)
