"""Replicates that draw the same images for several cells."""

from __future__ import annotations

import numpy as np
import pytest

from geoframe.statistics.replicates import heights, replicates_of, shown
from tests.bump_trees import controls_tree

CLEAN, BLUR1 = "resnet18-clean", "resnet18-blur1"


@pytest.fixture
def ds():
    found = controls_tree()["ratio"].to_dataset()
    return found.assign(ratio_se=0 * found["ratio_se"])  # no measurement error: what is left are the images


def test_every_cell_has_the_same_images_in_each_replicate(ds):
    scaled = ds["ratio"].copy()
    scaled[1] = 2 * ds["ratio"][0]  # the second network's profiles are twice the first one's, image by image
    found = replicates_of(ds.assign(ratio=scaled), [(CLEAN, "cifar16"), (BLUR1, "cifar16")], replicates=50)
    np.testing.assert_allclose(found.draws[1], 2 * found.draws[0])
    assert found.draws[0].std(axis=0).max() > 0
    assert found.draws.shape == (2, 50, 17)


def test_replicates_are_those_of_the_seed(ds):
    cells = [(CLEAN, "cifar16"), (CLEAN, "cifar16b1")]
    first, same, other = (replicates_of(ds, cells, replicates=20, seed=seed).draws for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_images_that_one_cell_lacks_are_left_out_of_all(ds):
    ratio = ds["ratio"].copy()
    ratio[1, 0, :3] = np.nan
    found = replicates_of(ds.assign(ratio=ratio), [(CLEAN, "cifar16"), (BLUR1, "cifar16")], replicates=5)
    assert found.images == 13
    np.testing.assert_allclose(found.medians[0], ds["ratio"][0, 0, 3:].median("image"))


def test_a_cell_without_data_has_no_profile_and_takes_no_images(ds):
    ratio = ds["ratio"].copy()
    ratio[1] = np.nan
    found = replicates_of(ds.assign(ratio=ratio), [(CLEAN, "cifar16"), (BLUR1, "cifar16")], replicates=5)
    assert found.images == 16
    assert np.isnan(found.medians[1]).all()
    assert np.isnan(found.draws[1]).all()
    assert found.shows_bump(0) is True
    assert found.shows_bump(1) is None, "not known"
    assert found.has_data.tolist() == [True, False]
    assert [found.end(0), found.end(1)] == [100, 0]


def test_two_valid_scales_are_no_data_and_three_are(ds):
    cells = [(CLEAN, "cifar16")]
    two, three = (replicates_of(ds.assign(ratio=ds["ratio"].where(ds["scale"] < s)), cells) for s in (0.02, 0.04))
    assert (two.has_data.item(), two.shows_bump(0)) == (False, None)
    assert (three.has_data.item(), three.shows_bump(0)) == (True, False)


def test_heights_of_peaks_falls_rises_and_nothing():
    nan = float("nan")
    profiles = [[1, 4, 1], [1.02, 1, 0.5], [1, 2, 3], [nan, 2, 1], [nan, nan, nan]]
    np.testing.assert_allclose(heights([1, 10, 100], profiles), [4, 1.02, nan, 2, nan], rtol=1e-9)


@pytest.mark.parametrize(
    ("found", "share", "expected"),
    [(True, 0.96, True), (True, 0.9, None), (False, 0.04, False), (False, 0.1, None), (True, 0.0, None)],
)
def test_what_is_seen_must_be_there_in_nearly_all_replicates(found, share, expected):
    assert shown(found, np.arange(100) < 100 * share) is expected
