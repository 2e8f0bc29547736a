from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from geoframe.errors import BadInput
from geoframe.statistics.compare import binomial_interval, mann_whitney, mean_interval, pearson, variation

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


def test_mean_interval_of_few_and_of_equal_values():
    values = array([[np.nan, np.nan], [4, np.nan], [1, 1]], "encoder", "image")
    found = mean_interval(values)
    np.testing.assert_array_equal(found["mean"], [np.nan, 4, 1])
    np.testing.assert_array_equal(found["low"], [np.nan, np.nan, 1])
    np.testing.assert_array_equal(found["n"], [0, 1, 2])


def test_binomial_interval_is_wilsons():
    found = binomial_interval(array([1, 1, 1, 0, np.nan], "ray"), "ray")
    expected = stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (float(found["share"]), float(found["n"])) == (0.75, 4)
    assert (float(found["low"]), float(found["high"])) == (expected.low, expected.high)
    assert np.isnan(binomial_interval(array([np.nan], "ray"), "ray")["share"])


def test_no_such_dimension():
    with pytest.raises(BadInput, match="no dimension 'image': it has ray"):
        mann_whitney(array([1], "ray"), array([1], "image"))
