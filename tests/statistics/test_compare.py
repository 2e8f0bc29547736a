from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from geoframe.errors import BadInput
from geoframe.statistics.compare import (
    binomial_interval,
    mann_whitney,
    mean_interval,
    median_interval,
    pearson,
    variation,
    welch,
)

RNG = np.random.default_rng(0)


def array(values: object, *dims: str) -> xr.DataArray:
    return xr.DataArray(np.asarray(values, dtype=float), dims=dims)


def test_mann_whitney_is_scipys_with_nan_left_out_and_unequal_sizes():
    a, b = RNG.normal(0.5, 1, (3, 20)), RNG.normal(0, 1, 14)
    a[1, 5:] = np.nan
    found = mann_whitney(array(a, "encoder", "image"), array(b, "image"))
    assert dict(found.sizes) == {"encoder": 3}
    for i, row in enumerate(a):
        row = row[np.isfinite(row)]
        expected = stats.mannwhitneyu(row, b)
        assert (found["u"][i], found["p"][i]) == (expected.statistic, expected.pvalue)
        assert float(found["difference"][i]) == pytest.approx(row.mean() - b.mean())
    assert found["n_first"].values.tolist() == [20, 5, 20]


def test_mann_whitney_without_values():
    found = mann_whitney(array([np.nan, np.nan], "image"), array([1, 2], "image"))
    assert np.isnan(found["p"])
    assert (found["n_first"], found["n_second"]) == (0, 2)


def test_positions_of_two_samples_have_nothing_to_do_with_each_other():
    a = array([1, 2, 3], "image").assign_coords(image=[0, 1, 2])
    b = array([1, 2, 3], "image").assign_coords(image=[7, 8, 9])
    assert float(mann_whitney(a, b)["n_second"]) == 3


def test_welch_is_scipys_with_its_interval():
    a, b = RNG.normal(0.5, 1, (2, 5)), RNG.normal(0, 3, 3)
    a[1, 4] = np.nan
    found = welch(array(a, "network", "seed"), array(b, "seed"))
    for i, row in enumerate(a):
        expected = stats.ttest_ind(row[np.isfinite(row)], b, equal_var=False)
        assert (found["t"][i], found["p"][i]) == (expected.statistic, expected.pvalue)
        assert (found["low"][i], found["high"][i]) == tuple(expected.confidence_interval())
        assert float(found["low"][i]) < float(found["difference"][i]) < float(found["high"][i])
    assert found["n_first"].values.tolist() == [5, 4]


def test_welch_of_three_seeds_can_be_surer_than_ranks():
    """Neural Expansion, H.3: restricted, 74.7, 76.5 and 74.3 %, 12.2 points below a control whose runs we made up."""
    restricted, control = array([0.747, 0.765, 0.743], "seed"), array([0.873, 0.875, 0.874], "seed")
    assert float(welch(restricted, control)["p"]) == pytest.approx(0.003, abs=2e-4)
    assert float(mann_whitney(restricted, control, "seed")["p"]) == pytest.approx(0.1)


@pytest.mark.parametrize(("a", "b"), [([1, 2], [3]), ([1, 1], [2, 2]), ([], [1, 2])])
def test_welch_without_spread_or_values_has_no_p(a, b):
    found = welch(array(a, "seed"), array(b, "seed"))
    assert np.isnan([found["t"], found["p"], found["low"], found["high"]]).all()
    assert np.isnan(found["difference"]) == (not a)


def test_welch_with_one_constant_sample():
    found = welch(array([1.0, 1.0, 1.0], "seed"), array([0.5, 0.6, 0.7], "seed"))
    assert float(found["p"]) == pytest.approx(stats.ttest_1samp([0.5, 0.6, 0.7], 1.0).pvalue)


def test_pearson_is_scipys():
    x = RNG.normal(size=12)
    y = x + RNG.normal(size=12)
    y[3] = np.nan
    good = np.isfinite(y)
    expected = stats.pearsonr(x[good], y[good])
    found = pearson(array(x, "epoch"), array(y, "epoch"), "epoch")
    assert float(found["r"]) == pytest.approx(expected.statistic)
    assert float(found["p"]) == pytest.approx(expected.pvalue)
    assert float(found["low"]) < float(found["r"]) < float(found["high"])
    assert np.isnan(pearson(array([1, 1, 1, 1], "epoch"), array([1, 2, 3, 4], "epoch"), "epoch")["r"])


def test_variation():
    values = array([[1, 2, 3], [2, 2, 2], [np.nan, 1, 3]], "optimiser", "seed")
    np.testing.assert_allclose(variation(values, "seed"), [0.5, 0, np.sqrt(2) / 2])


def test_mean_interval_covers_the_mean_and_shrinks():
    wide = mean_interval(array(RNG.normal(3, 1, 20), "image"))
    narrow = mean_interval(array(RNG.normal(3, 1, 2000), "image"))
    for found in (wide, narrow):
        assert float(found["low"]) < float(found["mean"]) < float(found["high"])
    assert float(narrow["high"] - narrow["low"]) == pytest.approx(2 * 1.96 / np.sqrt(2000), rel=0.1)
    assert float(wide["high"] - wide["low"]) > 5 * float(narrow["high"] - narrow["low"])


def test_mean_interval_of_ten_values_holds_the_mean_as_often_as_it_says():
    values = array(np.random.default_rng(4).normal(3, 1, (600, 10)), "encoder", "image")
    found = mean_interval(values, replicates=1000)
    assert 0.93 <= float(((found["low"] <= 3) & (found["high"] >= 3)).mean()) <= 0.97


def test_mean_interval_of_few_and_of_equal_values():
    values = array([[np.nan, np.nan], [4, np.nan], [1, 2]], "encoder", "image")
    found = mean_interval(values)
    np.testing.assert_array_equal(found["mean"], [np.nan, 4, 1.5])
    assert np.isnan(found["low"]).all()
    np.testing.assert_array_equal(found["n"], [0, 1, 2])
    assert np.isnan(mean_interval(array(np.full(20, 4.0), "image"))["low"]), "no spread is no certainty"
    assert np.isnan(mean_interval(array(np.arange(9), "image"))["low"])
    assert np.isfinite(mean_interval(array(np.arange(10), "image"))["low"])


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0.161), (1.0, 0.839, 1)])
def test_shares_that_are_all_0_or_all_1_are_not_certain(share, low, high):
    found = mean_interval(array(np.full(20, share), "image"), shares=True)
    assert (float(found["low"]), float(found["high"])) == pytest.approx((low, high), abs=1e-3)


def test_median_interval_covers_as_often_as_it_says():
    samples = np.random.default_rng(1).exponential(size=(2000, 25))
    found = median_interval(array(samples, "experiment", "ray"), "ray")
    inside = float(((found["low"] <= np.log(2)) & (np.log(2) <= found["high"])).mean())
    assert 0.94 < inside < 0.98
    assert np.isnan(median_interval(array([1, 2, 3, 4, 5], "ray"), "ray")["low"])


def test_binomial_interval_is_wilsons():
    found = binomial_interval(array([1, 1, 1, 0, np.nan], "ray"), "ray")
    expected = stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (float(found["share"]), float(found["n"])) == (0.75, 4)
    assert (float(found["low"]), float(found["high"])) == (expected.low, expected.high)
    assert np.isnan(binomial_interval(array([np.nan], "ray"), "ray")["share"])


@pytest.mark.parametrize("values", [[0.4, 1.0], [2, 0], [-1, 1], [np.inf, 0]])
def test_what_is_no_yes_and_no_no_is_refused_in_a_line(values):
    with pytest.raises(BadInput, match="binomial_interval counts 0, 1, True, False and NaN, and found") as error:
        binomial_interval(array(values, "ray"), "ray")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("yes", [[True, False, True], [1, 0, 1], xr.DataArray([True, False, True], dims="ray")])
def test_yes_and_no_of_any_type(yes):
    assert float(binomial_interval(yes, "ray")["share"]) == pytest.approx(2 / 3)
    masked = xr.DataArray([True, False, True], dims="ray").where(xr.DataArray([True, True, False], dims="ray"))
    assert float(binomial_interval(masked, "ray")["share"]) == 0.5


def test_plain_arrays_are_samples_if_they_have_one_dimension():
    a, b = RNG.normal(size=9), RNG.normal(size=7)
    expected = mann_whitney(array(a, "image"), array(b, "image"))
    xr.testing.assert_equal(mann_whitney(a, list(b)), expected)
    for function, args in (
        (mann_whitney, (np.ones((2, 3)), b)),
        (pearson, (np.ones((2, 3)), np.ones((2, 3)))),
        (mean_interval, (np.ones((2, 3)),)),
        (variation, (np.float64(1), "image")),
    ):
        with pytest.raises(BadInput, match=f"{function.__name__} takes labelled arrays") as error:
            function(*args)
        assert "\n" not in str(error.value)
    with pytest.raises(BadInput, match="takes numbers"):
        mann_whitney(np.array(["a"]), b)


def test_pearson_of_two_and_three_pairs_has_no_interval():
    for n in (2, 3):
        x, y = RNG.normal(size=(2, n))
        found = pearson(x, y)
        assert float(found["r"]) == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert np.isnan(found["low"])
        assert np.isnan(found["high"])
    assert np.isnan(pearson(array([1], "image"), array([2], "image"))["r"])


def test_no_such_dimension():
    with pytest.raises(BadInput, match="no dimension 'image': it has ray"):
        mann_whitney(array([1], "ray"), array([1], "image"))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 88.3])
@pytest.mark.parametrize("n", [3, 12, 20])
def test_equal_numbers_have_no_spread_whatever_rounding_makes_of_their_mean(value, n):
    equal, other = xr.DataArray(np.full(n, value), dims="seed"), xr.DataArray(np.full(n, 2 * value), dims="seed")
    found = welch(equal, other)
    assert np.isnan(found["p"])
    assert np.isnan(found["low"])
    assert np.isnan(mean_interval(equal, "seed")["low"])
    assert np.isnan(pearson(equal, other, dim="seed")["p"])


def test_few_tied_values_have_the_p_of_all_their_splits():
    """The normal approximation gives 3e-9 of 2 against 30, of which there are 496 splits."""
    few, many = np.zeros(2), np.ones(30)
    found = mann_whitney(array(few, "image"), array(many, "image"))
    assert float(found["p"]) == pytest.approx(2 / 496)
    assert float(mann_whitney(array(np.zeros(3), "image"), array(np.ones(77), "image"))["p"]) >= 1e-4


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("one", "others", "expected"),
    [(0.0, np.ones(100), 2 / 101), (1.0, np.ones(100), 1), (0.5, np.r_[np.ones(60), 0.4, 0.3], 6 / 63)],
)
def test_one_value_has_the_p_of_its_rank(one, others, expected, swapped):
    """The normal approximation gives 4e-23 in the first case."""
    samples = array([one], "image"), array(others, "image")
    found = mann_whitney(*(samples[::-1] if swapped else samples))
    assert float(found["p"]) == pytest.approx(expected)


def test_one_value_without_ties_has_scipys_p():
    one, others = RNG.normal(size=1), RNG.normal(size=20)
    found = mann_whitney(array(one, "image"), array(others, "image"))
    assert float(found["p"]) == pytest.approx(stats.mannwhitneyu(one, others, method="exact").pvalue)


def test_heavy_ties_are_permuted_in_larger_samples_too():
    """One value differs, and is in the sample of 10 by a chance of 10 / 510; the normal approximation gives 2e-12."""
    few, many = array([0.0, *np.ones(9)], "image"), array(np.ones(500), "image")
    found = mann_whitney(few, many)
    assert float(found["p"]) == pytest.approx(2 * 10 / 510, abs=0.01)
    assert float(mann_whitney(few, many)["p"]) == float(found["p"]), "the permutations have a seed"


def test_ties_that_leave_enough_other_values_are_not_permuted():
    rng = np.random.default_rng(0)
    a, b = np.where(rng.random((2, 100)) < 0.8, 1.0, rng.random((2, 100)))
    assert float(mann_whitney(array(a, "image"), array(b, "image"))["p"]) == stats.mannwhitneyu(a, b).pvalue
    same = np.ones(30)
    assert float(mann_whitney(array(same, "image"), array(same, "image"))["p"]) == 1
