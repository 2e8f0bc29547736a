from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoframe.errors import BadInput
from geoframe.probesets.blurred import Blurred
from geoframe.probesets.folder import ImageFolder
from geoframe.probesets.frame import load_framed
from geoframe.probesets.noise import NoiseSet
from geoframe.probesets.subset import Subset
from geoframe.probesets.torchvision import TorchvisionSet
from tests.probesets.sets import Pictures, same, tensors

SHAPE = (3, 4, 4)


@given(st.integers(1, 12), st.integers(0, 8), st.integers())
def test_a_draw_is_in_order_and_part_of_a_larger_one(few, more, seed):
    toy = tensors({0: 10, 1: 10})
    small, large = Subset(toy, few, seed=seed).places(), Subset(toy, few + more, seed=seed).places()
    assert small == sorted(set(small))
    assert len(small) == few
    assert set(small) <= set(large)


@given(st.integers(1, 5), st.integers())
def test_so_many_a_class(per_class, seed):
    toy = tensors({0: 5, 3: 9, 7: 20})
    images = Subset(toy, per_class=per_class, seed=seed).load(SHAPE)
    assert Counter(images.labels) == dict.fromkeys((0, 3, 7), per_class)
    assert set(Subset(toy, per_class=1, seed=seed).listing().ids) <= set(images.ids)


def test_a_classs_draw_does_not_depend_on_other_classes():
    toy = tensors({0: 8, 1: 8})
    merged = toy.evolve(labels=[label if label == 0 else 5 for label in toy.labels])
    assert Subset(toy, per_class=3).listing().ids == Subset(merged, per_class=3).listing().ids


def test_all_at_once_is_the_same_as_one_by_one():
    toy = tensors({0: 10, 1: 10})
    for subset in (Subset(toy, 7), Subset(toy, per_class=4), Subset(Subset(toy, 12), 5), Blurred(Subset(toy, 7), 1)):
        whole = subset.load(SHAPE)
        assert same(whole, load_framed(subset, SHAPE))
        assert (whole.ids, whole.labels) == tuple(subset.listing())
        assert same(subset.pick(SHAPE, [0, 3]), load_framed(subset, SHAPE, [0, 3]))
        assert torch.equal(subset.pick(SHAPE, [0, 3]).pixels, whole.pixels[[0, 3]])


def test_files_that_are_not_drawn_are_not_opened(picture, tmp_path):
    for name in "abcdef":
        picture(f"x/{name}.png", size=(8, 8))
    folder = ImageFolder(tmp_path)
    subset = Subset(folder, 2, seed=1)
    ids = subset.listing().ids
    for name in "abcdef":
        if f"x/{name}.png" not in ids:
            (tmp_path / f"x/{name}.png").write_bytes(b"broken")
    assert subset.load((3, 8, 8)).ids == ids == ImageFolder(tmp_path, n=2, seed=1).listing().ids
    with pytest.raises(BadInput, match="can't read the image"):
        folder.load((3, 8, 8))


def test_blur_before_the_frame_reaches_through_a_subset():
    pictures = Pictures(n=4, size=(40, 40))
    part = Blurred(Subset(pictures, 2), sigma=2, at=64).load((3, 32, 32))
    whole = Blurred(pictures, sigma=2, at=64).load((3, 32, 32))
    assert all(torch.equal(part.image(name), whole.image(name)) for name in part.ids)
    with pytest.raises(BadInput, match="makes its pixels in the measured frame"):
        Blurred(Subset(NoiseSet(4), 2), sigma=2, at=64)


def test_names_coords_keys_counts_and_smoke():
    toy = tensors({0: 10, 1: 10})
    some, each = Subset(toy, 7, seed=2), Subset(toy, per_class=4)
    assert (some.label, each.label) == ("toy-7", "toy-4each")
    assert some.coords == {"subset_seed": 2}
    assert (some.count(), each.count()) == (7, 8)
    mnist = (Subset(TorchvisionSet("MNIST", n=n), per_class=4).count() for n in (None, 50))
    assert tuple(mnist) == (40, None)  # a draw may lack classes
    assert len({toy.key, some.key, each.key, Subset(toy, 7).key}) == 4
    assert (each.smoke().count(), each.smoke().label) == (1, "toy-4each")


def test_what_cannot_be_drawn_is_refused():
    toy = tensors({0: 10, 4: 3})
    with pytest.raises(BadInput, match="n=None, per_class=None: give one of them"):
        Subset(toy)
    with pytest.raises(BadInput, match="n=1, per_class=2: give one of them"):
        Subset(toy, 1, per_class=2)
    with pytest.raises(BadInput, match="n=0 should be a whole number"):
        Subset(toy, 0)
    with pytest.raises(
        BadInput, match="4 asked for, but there are only 3 images of class 4 in probe set 'toy': lower n"
    ):
        Subset(toy, per_class=4).load(SHAPE)
    with pytest.raises(BadInput, match="14 asked for, but there are only 13 images in probe set 'toy'"):
        Subset(toy, 14).load(SHAPE)
    with pytest.raises(BadInput, match="Subset needs labels, and 3 of 3 images of probe set 'noise3' have none"):
        Subset(NoiseSet(3), per_class=1).load(SHAPE)
