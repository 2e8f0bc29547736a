from __future__ import annotations

import pytest

from geoframe.errors import BadInput
from geoframe.probesets.noise import NoiseSet
from geoframe.probesets.photos import Photos
from geoframe.probesets.relabelled import RandomLabels
from geoframe.probesets.true_labels import TrueLabels
from tests.probesets.sets import same, tensors

SHAPE = (3, 4, 4)


def test_everything_is_the_other_sets_but_for_a_coordinate():
    toy = tensors({0: 2, 1: 3})
    true = TrueLabels(toy)
    assert same(true.load(SHAPE), toy.load(SHAPE))
    assert true.listing() == toy.listing()
    assert same(true.pick(SHAPE, [1, 3]), toy.pick(SHAPE, [1, 3]))
    assert [record.label for record in true.records()] == [record.label for record in toy.records()]
    assert true.coords == {**toy.coords, "labelling": "true"}
    assert (true.label, true.count()) == (toy.label, 5)
    assert RandomLabels(true, 7).coords["labelling"] == "random-7"


def test_unlabelled_images_are_refused():
    with pytest.raises(BadInput, match="TrueLabels needs labels, and 4 of 4 images"):
        TrueLabels(NoiseSet(4)).listing()


def test_smoke_is_one_image_that_belongs_to_every_network():
    smoke = TrueLabels(Photos()).smoke()
    assert smoke.label == Photos().label
    assert "labelling" not in smoke.coords
