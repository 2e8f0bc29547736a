"""Peaks on the ladder and off it, factors between them, and ranks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from geoframe.statistics.peaks import Peaks, factor, interval, peaks, rank_correlation
from geoframe.statistics.profile import BumpRule, profile_shape

ETA = np.logspace(-1, 1, 5)
NAN = np.nan


@pytest.mark.parametrize(
    ("profile", "place", "height", "at_end"),
    [
        ([1, 1, 2, 3, 4], 10.0, 4.0, True),
        ([NAN, 1, 2, 3, NAN], ETA[3], 3.0, True),  # the last valid rung
        ([5, 4, 3, 2, 1], NAN, NAN, False),  # largest at the first rung: no peak
        ([1, 1, 1.1, 1.2, 1.25], NAN, NAN, False),  # not as high as the rule wants
        ([1, 1, 1.29, 1, 1], NAN, NAN, False),
        ([1, 0.9, 0.8, 0.7, 0.5], NAN, NAN, False),
        ([NAN] * 5, NAN, NAN, False),
        ([NAN, NAN, NAN, NAN, 7], NAN, NAN, False),  # one rung is no profile
    ],
)
def test_places(profile, place, height, at_end):
    found = peaks(ETA, profile)
    np.testing.assert_allclose((found.scale, found.height), (place, height))
    assert bool(found.at_end) == at_end


def test_an_interior_peak_is_that_of_the_bump_rule_and_rows_are_independent():
    rows = np.array([[1, 2, 5, 3, 1], [1, 1, 2, 3, 4], [1, 3, 2, 1, 1]], dtype=float)
    found, shape = peaks(ETA, rows), profile_shape(ETA, rows)
    np.testing.assert_array_equal(found.scale[[0, 2]], shape.scale[[0, 2]])
    np.testing.assert_array_equal(found.height[[0, 2]], shape.height[[0, 2]])
    assert found.at_end.tolist() == [False, True, False]
    assert np.isnan(peaks(ETA, rows[0], BumpRule(peak_minimum=6)).scale)


def of(scales: object, at_end: object = False) -> Peaks:
    place = np.array(scales, dtype=float)
    return Peaks(place, np.full(place.shape, 2.0), np.broadcast_to(at_end, place.shape))


def test_a_factor_is_that_of_the_places_replicate_by_replicate():
    before, after = np.linspace(1, 2, 1000), 10 * np.linspace(1, 2, 1000)
    found = factor(of(1), of(12), of(before), of(after), 20)
    assert (found.value, found.at_least, found.n) == (12, False, 20)
    assert (found.low, found.high) == pytest.approx((10, 10))


def test_a_peak_at_the_end_makes_the_factor_a_lower_bound_without_an_upper_end():
    draws = of(np.full(100, 20.0), np.arange(100) < 30)
    found = factor(of(2), of(20, True), of(np.full(100, 2.0)), draws, 20)
    assert (found.value, found.low, found.high, found.at_least) == (10, 10, np.inf, True)
    few = factor(of(2), of(20), of(np.full(100, 2.0)), of(np.full(100, 20.0), np.arange(100) < 1), 20)
    assert (few.high, few.at_least) == (10, False)


def test_nothing_is_known_where_the_first_peak_is_at_the_end_or_missing():
    for before in (of(2, True), of(np.nan)):
        found = factor(before, of(20), of(np.full(100, before.scale), before.at_end), of(np.full(100, 20.0)), 20)
        assert np.isnan([found.value, found.low, found.high]).all()


def test_no_interval_for_few_images_or_many_replicates_without_a_value():
    draws = np.linspace(1, 2, 100)
    assert interval(draws, 10)[0] == pytest.approx(draws[2])
    assert np.isnan(interval(draws, 9)).all()
    assert np.isfinite(interval(np.where(np.arange(100) < 5, np.nan, draws), 10)).all()
    assert np.isnan(interval(np.where(np.arange(100) < 6, np.nan, draws), 10)).all()


def test_rank_correlation_is_spearmans():
    budgets, values = np.array([0, 0.1, 0.5, 1.0]), np.random.default_rng(0).integers(0, 4, (20, 4)).astype(float)
    values[0], values[1, 2] = 1.0, np.nan
    found = rank_correlation(budgets, values)
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found[2:], [stats.spearmanr(budgets, row).statistic for row in values[2:]])
