from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.probesets.frame import load_framed
from geoframe.probesets.noise import NoiseSet
from geoframe.probesets.photos import Photos
from geoframe.probesets.relabelled import PermutedLabels, RandomLabels
from geoframe.probesets.subset import Subset
from tests.probesets.sets import Pictures, same, tensors

SHAPE = (3, 4, 4)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers())
def test_a_permutation_keeps_the_class_counts_and_the_images(counts, seed):
    toy = tensors(dict(enumerate(counts)))
    before, after = toy.load(SHAPE), PermutedLabels(toy, seed=seed).load(SHAPE)
    assert Counter(after.labels) == Counter(before.labels)
    assert (after.ids, after.digest) == (before.ids, before.digest)
    assert PermutedLabels(toy, seed=seed).load(SHAPE).labels == after.labels


def test_every_label_goes_anywhere():
    toy = tensors(dict.fromkeys(range(4), 1))
    true = toy.load(SHAPE).labels
    images = np.array([PermutedLabels(toy, seed=seed).listing().labels for seed in range(600)])
    table = np.array([[(images[:, i] == label).mean() for label in true] for i in range(4)])
    assert abs(table - 1 / 4).max() < 0.08  # standard error 0.018
    orders = Counter(map(tuple, images.tolist()))
    assert len(orders) == 24
    assert max(orders.values()) < 50  # expected 25


def test_random_labels_are_uniform_and_of_their_seed():
    of = NoiseSet(4000)
    labels = np.array(RandomLabels(of, 10).listing().labels)
    assert abs(np.bincount(labels, minlength=10) - 400).max() < 80  # standard error 19
    other = np.array(RandomLabels(of, 10, seed=1).listing().labels)
    assert 300 < (labels == other).sum() < 500
    assert set(RandomLabels(of, 100).listing().labels) == set(range(100))


@given(st.integers(1, 40), st.integers(2, 200), st.integers())
def test_a_part_has_the_labels_that_it_has_in_the_whole(n, classes, seed):
    whole = RandomLabels(NoiseSet(40), classes, seed=seed).listing()
    part = RandomLabels(Subset(NoiseSet(40), n), classes, seed=seed).listing()
    assert dict(zip(*part, strict=True)).items() <= dict(zip(*whole, strict=True)).items()


@pytest.mark.parametrize(
    "wrap", [PermutedLabels, lambda of: RandomLabels(of, 7), lambda of: Subset(PermutedLabels(of), 9)]
)
def test_all_at_once_is_the_same_as_one_by_one(wrap):
    relabelled = wrap(tensors({0: 5, 1: 4, 2: 3}))
    whole = relabelled.load(SHAPE)
    assert same(whole, load_framed(relabelled, SHAPE))
    assert (whole.ids, whole.labels) == tuple(relabelled.listing())
    places = [1, 4, 7]
    picked = relabelled.pick(SHAPE, places)
    assert same(picked, load_framed(relabelled, SHAPE, places))
    assert torch.equal(picked.pixels, whole.pixels[places])
    assert picked.labels == tuple(whole.labels[place] for place in places)


def test_a_set_that_is_read_one_by_one_is_read_once():
    pictures = Pictures(n=5)
    PermutedLabels(pictures).load((3, 32, 32))
    assert pictures.made == [0, 1, 2, 3, 4]


def test_names_coords_keys_and_smoke():
    toy = tensors({0: 3, 5: 2})
    permuted, random = PermutedLabels(toy, seed=3), RandomLabels(toy, 100)
    assert (permuted.label, random.label) == ("toy-permuted", "toy-random100")
    assert permuted.coords == {"labelling": "permuted", "label_seed": 3}
    assert random.coords == {"labelling": "random-100", "label_seed": 0}
    assert (permuted.count(), permuted.classes(), random.classes()) == (5, 2, 100)
    keys = {toy.key, permuted.key, random.key, PermutedLabels(toy).key, RandomLabels(toy, 10).key}
    assert len(keys) == 5
    assert permuted.key == PermutedLabels(toy.evolve(name="other"), seed=3).key
    assert PermutedLabels(Photos()).source_digest() == Photos().source_digest()
    assert (permuted.smoke().count(), permuted.smoke().label) == (1, "toy-permuted")
    assert RandomLabels(Photos(), 10).smoke().load((3, 8, 8)).labels[0] in range(10)


def test_what_cannot_be_relabelled_is_refused():
    with pytest.raises(
        BadInput, match="PermutedLabels needs labels, and 2 of 2 images of probe set 'noise2' have none"
    ):
        PermutedLabels(NoiseSet(2)).load(SHAPE)
    with pytest.raises(BadInput, match="PermutedLabels: of='photos' should be a probe set"):
        PermutedLabels("photos")
    with pytest.raises(BadInput, match="PermutedLabels has no field 'sed'; did you mean 'seed'"):
        PermutedLabels(NoiseSet(2), sed=1)
    for classes in (1, 0, 2.0, True, "10"):
        with pytest.raises(BadInput, match=r"n_classes=.* should be a whole number, 2 or more"):
            RandomLabels(NoiseSet(2), classes)
    with pytest.raises(BadInput, match="seed='a'"):
        RandomLabels(NoiseSet(2), seed="a")


def test_classes_can_be_numbered_anew():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    digits = gf.Digits(n=100)
    mapped = gf.MappedLabels(digits, labels=range(100, 110))
    old, new = digits.listing(), mapped.listing()
    assert new.labels == tuple(100 + label for label in old.labels)
    assert mapped.load((1, 8, 8)).labels == new.labels == tuple(r.label for r in mapped.records())
    assert (new.ids, mapped.label, mapped.classes(), mapped.coords) == (old.ids, digits.label, 10, digits.coords)
    assert mapped.key != gf.MappedLabels(digits, labels=range(10)).key
    part = gf.Subset(mapped, per_class=2).listing()
    assert sorted(part.labels) == sorted([*range(100, 110)] * 2)
    with pytest.raises(gf.BadInput, match=r"has a class 9, and labels= names 5: give a new label for each"):
        gf.MappedLabels(digits, labels=range(5)).listing()
    for wrong in ((), (1.5,), (-2, 1)):
        with pytest.raises(gf.BadInput, match="MappedLabels: labels="):
            gf.MappedLabels(digits, labels=wrong)


def test_imagenette_has_imagenets_numbers():
    from geoframe.probesets.imagenette import imagenette

    assert imagenette().labels == (0, 217, 482, 491, 497, 566, 569, 571, 574, 701)
    assert (imagenette().classes(), imagenette("train").coords["dataset"]) == (10, "Imagenette")
