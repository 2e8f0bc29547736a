from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput
from geoframe.summaries.tube import TubeSummary
from tests.coverage_trees import tube_tree


def test_shares_medians_and_verdicts():
    tree = tube_tree()
    ds = TubeSummary().compute(tree)
    radius = tree["tube"]["radius"].values
    assert ds["rays"].values[:, 0].tolist() == [30, 29]
    assert ds["wide"].values[:, 0].tolist() == pytest.approx([1.0, (radius[1].min((2, 3)) >= 1).sum() / 29])
    assert float(ds["minimum"][0, 0]) == pytest.approx(np.median(radius[0, 0].min((1, 2))))
    assert float(ds["median"][1, 0]) == pytest.approx(np.nanmedian(np.median(radius[1], (2, 3))))
    for name in ("wide", "minimum", "median", "wide_radii"):
        assert (ds[f"{name}_low"] <= ds[name]).all(), name
        assert (ds[name] <= ds[f"{name}_high"]).all(), name
    headers, rows = TubeSummary().rows(ds)
    assert [dict(zip(headers, row, strict=True))["verdict"] for row in rows] == ["agrees", "disagrees"]


def test_an_architecture_that_the_paper_says_nothing_of_is_reported():
    ds = (
        tube_tree()["tube"].to_dataset().assign_coords(architecture=("encoder", np.array(["cnn", "mlp"], dtype=object)))
    )
    found = TubeSummary().compute(xr.DataTree.from_dict({"tube": ds}))
    assert [row[-1] for row in TubeSummary().rows(found)[1]] == ["agrees", "reported"]


def test_data_that_the_paper_says_nothing_of_are_reported():
    ds = tube_tree()["tube"].to_dataset()
    of = ds.assign_coords(dataset=("encoder", np.array(["MNIST", "digits"], dtype=object)))
    found = TubeSummary().compute(xr.DataTree.from_dict({"tube": of}))
    assert [row[-1] for row in TubeSummary().rows(found)[1]] == ["agrees", "reported"]
    on = of.assign_coords(probeset_dataset=("probeset", np.array(["KMNIST"] * ds.sizes["probeset"], dtype=object)))
    found = TubeSummary().compute(xr.DataTree.from_dict({"tube": on}))
    assert [row[-1] for row in TubeSummary().rows(found)[1]] == ["reported"] * 2


def test_few_rays_are_inconclusive():
    (first, _) = TubeSummary().rows(TubeSummary().compute(tube_tree(rays=3)))[1]
    assert first[-1] == "inconclusive"
    assert first[3] == "100 [44, 100]"
    _, (_, _, radii) = TubeSummary().tables(TubeSummary().compute(tube_tree(rays=3)))
    assert "[" not in radii[0][2], "three rays tell no interval of a median"


def test_what_was_not_measured_has_no_row():
    tree = tube_tree()
    ds = tree["tube"].to_dataset()
    ds["minimum"] = ds["minimum"].where(ds["encoder"] == "wide")
    ds["radius"] = ds["radius"].where(ds["encoder"] == "wide")
    found = TubeSummary().compute(xr.DataTree.from_dict({"tube": ds}))
    assert [row[0] for row in TubeSummary().rows(found)[1]] == ["wide"]


def test_a_node_of_another_probe():
    with pytest.raises(BadInput, match="name a TubeProbe's"):
        TubeSummary(probe="ratio").compute(xr.DataTree.from_dict({"ratio": xr.Dataset()}))


def test_stored_and_read_back_it_prints_the_same(tmp_path):
    ds = TubeSummary().compute(tube_tree())
    xr.DataTree.from_dict({"s": ds}).to_zarr(tmp_path / "r.zarr", consolidated=False, zarr_format=3)
    back = xr.open_datatree(tmp_path / "r.zarr", engine="zarr", consolidated=False)
    assert TubeSummary().rows(back["s"].to_dataset()) == TubeSummary().rows(ds)
    assert TubeSummary().caption
