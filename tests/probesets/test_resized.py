from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from geoframe.errors import BadInput
from geoframe.probesets.blurred import Blurred
from geoframe.probesets.noise import NoiseSet
from geoframe.probesets.resized import Resized
from geoframe.probesets.subset import Subset
from tests.probesets.sets import Pictures, tensors


def grey(record, size=None):
    image = record.image.convert("L")
    return np.array(image.resize(size, Image.Resampling.BILINEAR) if size else image) / 255


def test_colour_images_are_grey_28_by_28_for_an_mnist_network():
    pictures = Pictures(n=3)  # of 32 × 32 pixels, as CIFAR's
    framed, whole = pictures.load((1, 28, 28)).pixels, Resized(pictures).load((1, 28, 28)).pixels
    assert framed.shape == whole.shape == (3, 1, 28, 28)
    for record, middle, all_of_it in zip(pictures.records(), framed, whole, strict=True):
        np.testing.assert_allclose(middle[0], grey(record)[2:30, 2:30], atol=1e-6)
        np.testing.assert_allclose(all_of_it[0], grey(record, (28, 28)), atol=1e-6)


def test_nothing_is_cropped():
    wide = Resized(Pictures(n=1, size=(10, 40))).load((3, 20, 20)).pixels
    record = next(Pictures(n=1, size=(10, 40)).records())
    expected = np.array(record.image.resize((20, 20), Image.Resampling.BILINEAR)) / 255
    np.testing.assert_allclose(wide[0].permute(1, 2, 0), expected, atol=1e-6)
    own = Pictures(n=1)
    assert torch.equal(Resized(own).load((3, 32, 32)).pixels, own.load((3, 32, 32)).pixels)


def test_tensors_keep_their_mean():
    toy = tensors({0: 2}, size=8)
    halved = Resized(toy).load((3, 4, 4)).pixels
    torch.testing.assert_close(halved.mean((2, 3)), toy.load((3, 8, 8)).pixels.mean((2, 3)), rtol=0, atol=0.03)
    with pytest.raises(BadInput, match=r"has shape \(3, 8, 8\), but the encoder takes \(1, 8, 8\)"):
        Resized(toy).load((1, 4, 4))


def test_it_goes_with_other_wrappers():
    pictures = Pictures(n=3)
    whole = Resized(pictures).load((1, 28, 28))
    part = Subset(Resized(pictures), 1).load((1, 28, 28))
    assert torch.equal(part.pixels[0], whole.image(part.ids[0]))
    assert Blurred(Resized(pictures), 1).load((1, 28, 28)).pixels.var() < whole.pixels.var() / 2
    assert Resized(Subset(pictures, 1)).load((1, 28, 28)).digest == part.digest
    for of in (NoiseSet(2), Blurred(pictures, 1), Resized(pictures)):
        with pytest.raises(BadInput, match="makes its pixels at the encoder's size: use it as it is"):
            Resized(of)


def test_names_coords_keys_and_smoke():
    pictures = Pictures(name="p")
    whole = Resized(pictures)
    assert (whole.label, whole.coords, whole.key == pictures.key) == ("p-whole", {"framing": "whole"}, False)
    assert (whole.smoke().count(), whole.smoke().label) == (1, "p-whole")
