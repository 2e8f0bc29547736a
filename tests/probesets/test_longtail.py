from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoframe.errors import BadInput
from geoframe.probesets.frame import load_framed
from geoframe.probesets.longtail import PAPER_BANDS, LongTail, frequency_bands, long_tail_counts
from geoframe.probesets.noise import NoiseSet
from geoframe.probesets.torchvision import TorchvisionSet
from tests.probesets.sets import same, tensors

MNIST_TRAIN = dict(enumerate((5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)))


@given(st.lists(st.integers(1, 7000), min_size=2, max_size=12), st.floats(1, 100))
def test_counts_have_the_ratio_and_are_there(held, ratio):
    held = dict(enumerate(held))
    try:
        counts = list(long_tail_counts(held, ratio).values())
    except BadInput:
        assert min(n * ratio ** (k / (len(held) - 1)) for k, n in held.items()) < ratio * (1 + 1e-9)
        return
    assert all(1 <= kept <= held[label] for label, kept in enumerate(counts))
    assert max(counts) == counts[0]
    assert abs(counts[0] - ratio * counts[-1]) <= 0.5 + 1e-9
    for k, kept in enumerate(counts):
        assert abs(kept - counts[0] * ratio ** (-k / (len(counts) - 1))) <= 1  # rounded; or all that is there


@pytest.mark.parametrize(("ratio", "first", "last"), [(6.5, 5922, 911), (78.6, 5895, 75), (1, 5421, 5421)])
def test_the_papers_ratios_on_mnist(ratio, first, last):
    counts = long_tail_counts(MNIST_TRAIN, ratio)
    assert (counts[0], counts[9]) == (first, last)
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


def test_the_bands_of_ten_classes():
    bands = frequency_bands(long_tail_counts(MNIST_TRAIN, 78.6))
    assert list(bands.values()) == ["head"] * 4 + ["medium"] * 3 + ["tail"] * 3
    assert [PAPER_BANDS[band] for band in ("head", "medium", "tail")] == ["H", "M", "L"]
    assert set(frequency_bands(dict.fromkeys(range(10), 7)).values()) == {"medium"}
    assert frequency_bands({3: 1, 1: 100, 2: 10}) == {3: "tail", 1: "head", 2: "medium"}


def test_the_images_are_as_many_as_told():
    toy = tensors({0: 20, 4: 22, 9: 30})
    tail = LongTail(toy, 5)
    images = tail.load((3, 4, 4))
    assert tail.class_counts() == dict(Counter(images.labels)) == {0: 20, 4: 9, 9: 4}
    assert tail.bands() == {0: "head", 4: "medium", 9: "tail"}
    assert same(images, load_framed(tail, (3, 4, 4)))
    assert (images.ids, images.labels) == tuple(tail.listing())
    steeper = LongTail(toy, 10).listing()
    assert set(steeper.ids) <= set(images.ids)
    assert LongTail(toy, 5, seed=1).listing().ids != images.ids
    assert list(images.ids) == sorted(images.ids)


def test_names_coords_keys_and_smoke():
    toy = tensors({0: 20, 1: 20})
    tail = LongTail(toy, 6.5)
    assert (tail.label, tail.coords, tail.count()) == ("toy-lt6.5", {"imbalance": 6.5, "subset_seed": 0}, None)
    assert LongTail(toy, 2).key == LongTail(toy, 2.0).key
    assert len({toy.key, tail.key, LongTail(toy, 2).key, LongTail(toy, 6.5, seed=1).key}) == 4
    assert (tail.smoke().count(), tail.smoke().label) == (1, "toy-lt6.5")


def test_what_cannot_be_a_long_tail_is_refused():
    toy = tensors({0: 20, 1: 20})
    for ratio in (0.5, -1, float("nan"), float("inf"), True, "6"):
        with pytest.raises(BadInput, match=r"ratio=.* should be a number, 1 or more"):
            LongTail(toy, ratio)
    with pytest.raises(BadInput, match="ratio=21 leaves class 1 without an image: lower it"):
        LongTail(toy, 21).load((3, 4, 4))
    with pytest.raises(BadInput, match="LongTail needs two classes or more, and there is 1"):
        LongTail(tensors({3: 4}), 2).load((3, 4, 4))
    with pytest.raises(BadInput, match="LongTail needs labels, and 3 of 3 images of probe set 'noise3'"):
        LongTail(NoiseSet(3), 2).load((3, 4, 4))


def test_the_real_mnist(real_data):
    mnist = TorchvisionSet("MNIST", split="train", root=real_data("MNIST"))
    listing = LongTail(mnist, 78.6).listing()
    assert dict(Counter(mnist.listing().labels)) == MNIST_TRAIN
    assert dict(Counter(listing.labels)) == long_tail_counts(MNIST_TRAIN, 78.6)
