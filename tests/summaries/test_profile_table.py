"""The table of a response profile: medians as `bump` has them, shares and counts of what is there."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput
from geoframe.summaries.bump import bump
from geoframe.summaries.profile_table import VARIABLES, ProfileSummary, profile_table
from geoframe.summaries.tables import with_error
from tests.figures.conftest import PAIR, make_tree


@pytest.fixture
def ratios():
    """Two encoders on sets of 4 and 2 images, padded; one rung of one image isn't valid."""
    ds = make_tree(PAIR, ["four", "two"], [4, 2])["ratio"].to_dataset()
    there = ds["ratio"].notnull()
    ds["directions_used"] = xr.where(there, 32, -1)
    ds["directions_used"][0, 0, :2, 5] = 96
    ds["ratio"][0, 0, 1, 5] = np.nan
    return ds.assign(valid=ds["ratio"].notnull())


def test_values(ratios):
    found = profile_table(ratios, replicates=50)
    assert set(found.data_vars) == set(VARIABLES)
    xr.testing.assert_allclose(found["median_ratio"], ratios["ratio"].median("image"))
    np.testing.assert_array_equal(found["median_ratio_se"], bump(ratios, replicates=50)["median_ratio_se"])
    np.testing.assert_array_equal(found["n_images"], [[4, 2], [4, 2]])
    share = np.ones((2, 2, 9))
    share[0, 0, 5] = 0.75
    np.testing.assert_array_equal(found["valid_share"], share)
    directions = np.full((2, 2, 9), 32.0)
    directions[0, 0, 5] = 64
    np.testing.assert_array_equal(found["directions"], directions)


def test_rows_name_what_there_is_several_of(ratios):
    summary = ProfileSummary(replicates=50)
    headers, rows = summary.rows(summary.compute(xr.DataTree.from_dict({"ratio": ratios})))
    assert headers == ["encoder", "probe set", "η", "median ratio", "valid", "directions"]
    assert len(rows) == 2 * 2 * 9
    assert rows[5][:3] == [PAIR[0][0], "four", "3.16"]
    assert rows[5][4:] == ["3/4", "64"]
    one = ratios.isel(encoder=[0], probeset=[1])
    headers, rows = summary.rows(summary.compute(xr.DataTree.from_dict({"ratio": one})))
    assert headers == ["η", "median ratio", "valid", "directions"]
    assert rows[0][0] == "0.01"
    value, error = map(float, rows[0][1].split(" ± "))
    assert value == pytest.approx(float(one["ratio"][0, 0, :, 0].median()), rel=5e-3)
    assert 0 < error < value


def test_what_was_not_measured_is_a_dash(ratios):
    ratios["ratio"][0, 0] = np.nan
    ratios["valid"][0, 0] = False
    ratios["directions_used"][0, 0] = -1
    ratios["ratio"][0, 1, :, 8] = np.nan
    ratios["valid"][0, 1, :, 8] = False
    summary = ProfileSummary(replicates=50)
    _, rows = summary.rows(summary.compute(xr.DataTree.from_dict({"ratio": ratios})))
    assert rows[0][3:] == ["–", "–", "–"]
    assert rows[17][3:] == ["–", "0/2", "32"]


def test_another_probes_node_is_refused(ratios):
    with pytest.raises(BadInput, match="this one lacks directions_used"):
        profile_table(ratios.drop_vars("directions_used"))
    with pytest.raises(BadInput, match="lacks scales"):
        profile_table(ratios.isel(scale=0))


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.00012, 0.000021, "1.000120 ± 0.000021"),
        (12.34, 1.06, "12.3 ± 1.1"),
        (1234.0, 150.0, "1234 ± 150"),
        (3.0, np.nan, "3.00"),
        (3.0, 0.0, "3.00"),
        (1.0, 2e-9, "1.000000 ± 2.0e-09"),
    ],
)
def test_numbers_have_the_decimals_of_their_errors(value, error, text):
    assert with_error(value, error) == text
