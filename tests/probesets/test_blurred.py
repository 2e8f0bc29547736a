from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision.transforms.v2.functional import gaussian_blur as torchvisions

from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet, Record
from geoframe.probesets.blurred import Blurred, gaussian_blur
from geoframe.probesets.frame import frame, load_framed
from geoframe.probesets.noise import NoiseSet
from geoframe.probesets.photos import Photos
from geoframe.probesets.tensor import TensorSet


@attrs.frozen(kw_only=True)
class One(ProbeSet):
    image: object = attrs.field(eq=False)

    def records(self):
        yield Record("one", 3, self.image)


def spread(profile):
    """Variance of the place of a bump along a line."""
    place = torch.arange(len(profile), dtype=torch.float64)
    weight = profile.double() / profile.double().sum()
    centre = (weight * place).sum()
    return float((weight * (place - centre) ** 2).sum())


def edge_spread(pixels):
    """Variance of the derivative of a vertical edge."""
    return spread(pixels[0].double().mean(0).diff())


@pytest.mark.parametrize("sigma", [1.0, 2.0, 3.3])
def test_the_blur_is_a_true_gaussian(sigma):
    pixels = torch.zeros(1, 41, 41)
    pixels[0, 20, 20] = 1
    blurred = gaussian_blur(pixels, sigma)
    assert blurred.sum() == pytest.approx(1, abs=1e-5)
    for axis in (1, 0):
        line = blurred[0].sum(axis)
        assert spread(line) == pytest.approx(sigma**2, rel=0.02)
        reach = round(2 * sigma)
        assert line[20 + reach] / line[20] == pytest.approx(np.exp(-0.5 * (reach / sigma) ** 2), rel=1e-4)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.0])
def test_the_blur_agrees_with_torchvisions(sigma):
    pixels = torch.rand(3, 30, 22)
    size = 2 * int(np.ceil(4 * sigma)) + 1
    torch.testing.assert_close(gaussian_blur(pixels, sigma), torchvisions(pixels, size, sigma), rtol=0, atol=2e-6)


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.floats(0.2, 6))
def test_a_flat_image_stays_flat_however_small(height, width, sigma):
    pixels = torch.full((1, height, width), 0.3)
    torch.testing.assert_close(gaussian_blur(pixels, sigma), pixels, rtol=1e-6, atol=0)


@pytest.mark.parametrize("size", [(512, 512), (1024, 768), (500, 400)])
def test_a_sigma_of_2_at_512_px_is_1_in_the_frame(size):
    values = np.zeros((size[1], size[0], 3), dtype=np.uint8)
    values[:, size[0] // 2 :] = 255
    edge = One(image=Image.fromarray(values))
    sharp = edge_spread(edge.load((3, 224, 224)).pixels[0])
    images = Blurred(edge, sigma=2, at=512).load((3, 224, 224))
    assert edge_spread(images.pixels[0]) - sharp == pytest.approx(1, abs=0.12)
    assert (images.ids, images.labels) == (("one",), (3,))


@pytest.mark.parametrize("as_tensor", [False, True])
def test_an_image_of_the_encoders_size_keeps_its_field_of_view(as_tensor):
    values = np.zeros((224, 224, 3), dtype=np.uint8)
    values[:, 150:] = 255
    image = Image.fromarray(values)
    edge = One(image=frame(image, (3, 224, 224), "x") if as_tensor else image)
    blurred = Blurred(edge, sigma=2, at=512).load((3, 224, 224)).pixels[0]
    place = torch.arange(223) + 0.5
    steps = blurred[0].mean(0).diff()
    assert float((steps * place).sum() / steps.sum()) == pytest.approx(149.5, abs=0.05)
    wide = Blurred(edge, sigma=6, at=512).load((3, 224, 224)).pixels[0]
    assert edge_spread(wide) - edge_spread(blurred) == pytest.approx(9 - 1, abs=0.2)


def test_without_a_size_the_blur_acts_in_the_frame():
    photos = Photos(n=2)
    plain, blurred = photos.load((3, 32, 32)), Blurred(photos, 1.0).load((3, 32, 32))
    assert torch.equal(blurred.pixels, torch.stack([gaussian_blur(pixels, 1.0) for pixels in plain.pixels]))
    assert blurred.ids == plain.ids


def test_every_kind_of_set_can_be_blurred():
    noise = NoiseSet(2).load((3, 32, 32)).pixels
    blurred = Blurred(NoiseSet(2), sigma=2).load((3, 32, 32)).pixels
    assert blurred.var() < noise.var() / 20
    twice = Blurred(Blurred(TensorSet(noise), sigma=3), sigma=4).load((3, 32, 32)).pixels
    once = Blurred(TensorSet(noise), sigma=5).load((3, 32, 32)).pixels
    torch.testing.assert_close(twice, once, rtol=0, atol=0.01)
    for of in (NoiseSet(2), Blurred(TensorSet(noise), sigma=3)):
        with pytest.raises(BadInput, match="makes its pixels in the measured frame: leave out at=512"):
            Blurred(of, sigma=2, at=512)


def test_blurring_twice_gives_the_same_bits_on_any_number_of_threads():
    threads = torch.get_num_threads()
    probeset = Blurred(Photos(names=("rocket",)), sigma=2, at=512)
    try:
        torch.set_num_threads(1)
        one = probeset.load((3, 64, 64)).digest
        torch.set_num_threads(2)
        assert probeset.load((3, 64, 64)).digest == one
    finally:
        torch.set_num_threads(threads)


def test_names_coords_key_and_smoke():
    noise = NoiseSet(32, seed=4)
    blurred = Blurred(noise, sigma=2)
    assert blurred.label == "noise32-blur2"
    assert blurred.coords == {"seed": 4, "sigma": 2.0}
    assert Blurred(Photos(), sigma=2, at=512).coords == {"sigma": 2.0, "blurred_at": 512}
    assert blurred.key == Blurred(noise, sigma=2.0).key
    assert len({blurred.key, noise.key, Blurred(noise, sigma=1).key, Blurred(NoiseSet(31), sigma=2).key}) == 4
    assert (blurred.count(), blurred.smoke().count(), blurred.smoke().label) == (32, 1, "noise32-blur2")
    assert Blurred(Photos(), sigma=1).source_digest() == Photos().source_digest()


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf"), "2", True])
def test_bad_sigmas_are_refused(sigma):
    with pytest.raises(BadInput, match="should be a positive number"):
        Blurred(Photos(), sigma=sigma)


def test_bad_sets_and_sizes_are_refused():
    with pytest.raises(BadInput, match="should be a probe set"):
        Blurred("photos", sigma=1)
    with pytest.raises(BadInput, match="at=0"):
        Blurred(Photos(), sigma=1, at=0)


@pytest.mark.parametrize("sigma", [0.3, 1, 2])
def test_all_at_once_is_the_same_as_one_by_one(sigma):
    toy = TensorSet(torch.rand(25, 3, 32, 32))  # more than are blurred at a time
    blurred = Blurred(toy, sigma)
    whole, each = blurred.load((3, 32, 32)), load_framed(blurred, (3, 32, 32))
    assert (whole.ids, whole.labels, whole.digest) == (each.ids, each.labels, each.digest)
    assert torch.equal(blurred.pick((3, 32, 32), [2, 24]).pixels, whole.pixels[[2, 24]])
    assert blurred.listing() == (whole.ids, whole.labels)


def test_some_of_the_images_are_the_same_where_the_blur_acts_before_the_frame():
    blurred = Blurred(Photos(n=3), sigma=2, at=64)
    assert torch.equal(blurred.pick((3, 32, 32), [0, 2]).pixels, blurred.load((3, 32, 32)).pixels[[0, 2]])
