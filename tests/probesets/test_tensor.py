from __future__ import annotations

import numpy as np
import pytest
import torch

from geoframe.errors import BadInput
from geoframe.probes.coverage import RayCoverageProbe
from geoframe.probesets.tensor import TensorSet


def test_a_tensor_is_loaded_as_it_is():
    x = torch.rand(3, 1, 4, 5)
    images = TensorSet(x, labels=torch.tensor([2, 0, 1]), name="toy").load((1, 4, 5))
    assert torch.equal(images.pixels, x)
    assert (images.ids, images.labels) == (("0", "1", "2"), (2, 0, 1))
    assert TensorSet(x).load((1, 4, 5)).labels == (-1, -1, -1)
    assert TensorSet(x, ids=["a", "b", "c"]).load((1, 4, 5)).ids == ("a", "b", "c")


def test_the_key_follows_the_values_and_not_their_container():
    x = np.random.default_rng(0).random((2, 1, 4, 4))
    key = TensorSet(x, labels=[0, 1]).key
    assert TensorSet(torch.from_numpy(x), labels=np.array([0, 1]), name="other").key == key
    assert TensorSet(x.astype(np.float32), labels=(0, 1)).key == key
    assert TensorSet(x, labels=[1, 1]).key != key
    assert TensorSet(x, labels=[0, 1], ids="ab").key != key
    x[1, 0, 0, 0] += 1e-3
    assert TensorSet(x, labels=[0, 1]).key != key


def test_the_tensor_is_copied():
    x = torch.rand(2, 1, 4, 4, requires_grad=True)
    probeset, before = TensorSet(x), x.detach().clone()
    with torch.no_grad():
        x.zero_()
    probeset.load((1, 4, 4)).pixels.zero_()
    assert torch.equal(probeset.load((1, 4, 4)).pixels, before)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (torch.zeros(4, 4), {}, r"x has shape \(4, 4\): give \(image, channel, height, width\)"),
        (torch.zeros(0, 1, 4, 4), {}, "not empty"),
        (torch.zeros(1, 1, 4, 4, dtype=torch.uint8), {}, "divided by 255"),
        (np.zeros((1, 1, 4, 4), dtype=int), {}, "divided by 255"),
        (torch.zeros(2, 1, 4, 4), {"labels": [1]}, "1 labels for 2 images"),
        (torch.zeros(2, 1, 4, 4), {"labels": [1, 0.5]}, "whole numbers"),
        (torch.zeros(2, 1, 4, 4), {"labels": ["a", "b"]}, "whole numbers"),
        (torch.zeros(2, 1, 4, 4), {"labels": [float("nan"), 1]}, "whole numbers"),
        (torch.zeros(2, 1, 4, 4), {"labels": [None, 1]}, "whole numbers"),
        (torch.zeros(2, 1, 4, 4), {"labels": [2**63, 1]}, "whole numbers"),
        (torch.zeros(2, 1, 4, 4), {"labels": 5}, "whole numbers"),
        (torch.zeros(2, 1, 4, 4), {"ids": "abc"}, "3 ids for 2 images"),
        (torch.linspace(0, 255, 16).view(1, 1, 4, 4), {}, r"x has values from 0 to 255: give raw pixels, in \[0, 1\]"),
        (torch.full((1, 1, 4, 4), float("nan")), {}, "x holds NaN or infinite values"),
    ],
)
def test_bad_tensors_are_refused_at_once(x, options, message):
    with pytest.raises(BadInput, match=message):
        TensorSet(x, **options)


def test_bad_pixels_are_refused_when_loaded():
    with pytest.raises(BadInput, match=r"but the encoder takes \(1, 5, 5\)"):
        TensorSet(torch.zeros(2, 1, 4, 4)).load((1, 5, 5))
    with pytest.raises(BadInput, match="two images with the id 'a'"):
        TensorSet(torch.zeros(2, 1, 4, 4), ids="aa").load((1, 4, 4))


def test_smoke_is_the_first_image():
    smoke = TensorSet(torch.rand(3, 1, 4, 4), labels=[5, 6, 7], name="toy").smoke()
    assert (smoke.label, smoke.count(), smoke.load((1, 4, 4)).labels) == ("toy", 1, (5,))


def test_reprs_are_short():
    many = TensorSet(torch.zeros(1300, 1, 4, 4), labels=range(1300), name="x")
    assert repr(many) == "TensorSet(name='x', x=<1300×1×4×4>, labels=<1300: 0, 1, …, 1299>, ids=None)"
    assert repr(many.load((1, 4, 4))) == "<Images (1300, 1, 4, 4), ids <1300: '0', '1', …, '1299'>>"
    assert "labels=<1300: 0, 1, …, 1299>" in repr(RayCoverageProbe(reference=many))
