"""The labelled layer: datasets in, datasets and tables out."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput, UnknownName
from geoframe.statistics.bootstrap import median_profile
from geoframe.summaries.bump import VARIABLES, BumpSummary, bump

ETA = np.logspace(-2, 2, 17)
SHAPES = {
    "bumpy": (1 + 5 * np.exp(-(np.log(ETA / 3) ** 2))) / (1 + (ETA / 20) ** 2),
    "rising": 1 + ETA,
    "falling": 1 / (1 + ETA),
    "flat": np.ones(17),
    "late": np.where(ETA < 0.02, 1.5, (1 + 5 * np.exp(-(np.log(ETA / 3) ** 2))) / (1 + (ETA / 20) ** 2)),
    "lasting": 1 + 5 * np.exp(-(np.log(ETA / 3) ** 2)) + 6 / (1 + 3 / ETA**2),
    "empty": np.full(17, np.nan),
    "short": np.where(ETA < 40, np.nan, 1.0),
}


@pytest.fixture
def ratios() -> xr.Dataset:
    """Eight encoders, two probe sets of 6 and 4 images (padded), scales last."""
    profiles = np.stack(list(SHAPES.values()))[:, None, None, :]
    factor = np.exp(np.random.default_rng(0).normal(0, 0.02, (8, 2, 6, 1)))
    ratio = profiles * factor
    ratio[:, 1, 4:] = np.nan
    data = {
        "ratio": (("encoder", "probeset", "image", "scale"), ratio),
        "ratio_se": (("encoder", "probeset", "image", "scale"), 0.05 * ratio),
        "prediction": (("encoder", "probeset", "image"), np.ones((8, 2, 6))),
        "prediction_se": (("encoder", "probeset", "image"), np.full((8, 2, 6), 0.02)),
    }
    coords = {
        "encoder": np.array(list(SHAPES), dtype=object),
        "probeset": np.array(["six", "four"], dtype=object),
        "image": np.arange(6),
        "scale": ETA,
        "training": ("encoder", np.array(["trained"] * 8, dtype=object)),
        "image_id": (("probeset", "image"), np.full((2, 6), "id", dtype=object)),
    }
    return xr.Dataset(data, coords)


def test_every_variable_is_labelled(ratios):
    result = bump(ratios, replicates=20)
    assert list(result.data_vars) == list(VARIABLES)
    for name, variable in result.data_vars.items():
        assert variable.attrs["units"], name
        assert variable.attrs["long_name"], name
        assert variable.dims == ("encoder", "probeset", "scale")[: variable.ndim]
    assert set(result.coords) == {"encoder", "probeset", "scale", "training"}
    assert result.attrs["peak_minimum"] == 1.3
    assert result.attrs["bootstrap_replicates"] == 20


def test_only_the_bump_is_one(ratios):
    result = bump(ratios, replicates=20)
    assert result["is_bump"].sel(probeset="six").values.tolist() == [True] + [False] * 7
    assert result["n_images"].values.tolist() == [[6, 4]] * 6 + [[0, 0]] + [[6, 4]]
    without_peak = result.where(~result["peak"], drop=False)
    for name in ("peak_height", "peak_height_se", "peak_scale", "log10_peak_scale_se", "width", "width_se"):
        assert without_peak[name].isnull().all()
        assert np.isfinite(result[name].sel(encoder="bumpy")).all()


def test_the_median_is_that_of_xarray(ratios):
    some = ratios.isel(encoder=slice(0, 6))
    xr.testing.assert_allclose(
        bump(some, replicates=2)["median_ratio"].drop_attrs(), some["ratio"].median("image").drop_attrs()
    )


def test_measured_dataset_without_encoders_gives_the_same_numbers(ratios):
    one = ratios.sel(encoder="bumpy", probeset="six")
    alone, together = bump(one, replicates=50), bump(ratios, replicates=50)
    for name in VARIABLES:
        np.testing.assert_array_equal(alone[name], together[name].sel(encoder="bumpy", probeset="six"))
    headers, rows = BumpSummary().rows(alone)
    assert headers[0] == "images"
    assert len(rows) == 1


def test_the_order_of_dimensions_does_not_matter(ratios):
    turned = ratios.transpose("scale", "image", "probeset", "encoder")
    a, b = bump(ratios, replicates=10), bump(turned, replicates=10)
    xr.testing.assert_identical(a, b.transpose(*a.dims))


def test_the_predictions_error_reaches_the_bootstrap_as_common(ratios):
    one = ratios.sel(encoder="bumpy", probeset="six")
    expected = median_profile(ETA, one["ratio"], one["ratio_se"], np.full(6, 0.02))
    assert float(bump(one)["log10_peak_scale_se"]) == expected.log10_scale_se
    no_common = bump(one.drop_vars(["prediction", "prediction_se"]))
    assert float(no_common["log10_peak_scale_se"]) > expected.log10_scale_se


def test_table_says_what_there_is_and_why_not(ratios):
    tree = xr.DataTree.from_dict({"ratio": ratios})
    summary = BumpSummary(replicates=100)
    assert summary.label == "bump"
    ds = summary.compute(tree)
    headers, rows = summary.rows(ds)
    assert headers == ["encoder", "probe set", "images", "peak height", "peak η", "width (decades)", "bump"]
    table = {row[0]: row for row in rows if row[1] == "six"}
    assert len(rows) == 16
    height, error = table["bumpy"][3].split(" ± ")
    assert float(height) == pytest.approx(float(ds["peak_height"].sel(encoder="bumpy", probeset="six")), rel=0.01)
    assert 0 < float(error) < 1
    scale, error = table["bumpy"][4].split(" ± ")
    assert float(scale) == pytest.approx(3, rel=0.1)
    assert 0 < float(error) < 0.5
    assert table["bumpy"][5].count(" ± ") == 1
    assert {name: row[-1] for name, row in table.items()} == {
        "bumpy": "yes",
        "rising": "censored: rises",
        "falling": "no: no peak",
        "flat": "no: no peak",
        "late": "no: no plateau",
        "lasting": "no: no decay",
        "empty": "no data",
        "short": "too few valid scales",
    }
    for name in ("rising", "falling", "flat", "empty", "short"):
        assert table[name][3:6] == ["–", "–", "–"]
    assert table["lasting"][5] == "censored"
    assert [len(row) for row in rows] == [7] * 16


@pytest.mark.parametrize(("rung", "value"), [(0, 1.5), (-1, 9.0)])
def test_a_single_image_does_not_decide_where_the_profile_starts_or_ends(ratios, rung, value):
    ratios["ratio"][:, 0, 1:, rung] = np.nan
    ratios["ratio"][:, 0, 0, rung] = value
    result = bump(ratios.sel(encoder=["bumpy"], probeset=["six"]), replicates=100)
    assert bool(result["is_bump"])
    assert float(result["bump_share"].item()) == 1
    assert bool(result["median_ratio"][..., rung].isnull())


def test_the_rule_can_be_changed_and_is_stored(ratios):
    tree = xr.DataTree.from_dict({"ratio": ratios})
    strict = BumpSummary(peak_minimum=50.0, replicates=10)
    ds = strict.compute(tree)
    assert not ds["is_bump"].any()
    assert (ds.attrs["peak_minimum"], ds.attrs["probe"]) == (50.0, "ratio")
    assert strict.key != BumpSummary(replicates=10).key


def test_results_survive_zarr(ratios, tmp_path):
    ds = bump(ratios, replicates=10)
    xr.DataTree.from_dict({"bump": ds}).to_zarr(tmp_path / "r.zarr", consolidated=False, zarr_format=3)
    back = xr.open_datatree(tmp_path / "r.zarr", engine="zarr", consolidated=False)
    assert BumpSummary().rows(back["bump"].to_dataset()) == BumpSummary().rows(ds)


def test_what_cannot_be_summarised_is_refused(ratios):
    with pytest.raises(BadInput, match="ratio"):
        bump(ratios.drop_vars("ratio"))
    with pytest.raises(UnknownName, match="no node 'ratios'; did you mean 'ratio'"):
        BumpSummary(probe="ratios").compute(xr.DataTree.from_dict({"ratio": ratios}))
