from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput, UnknownName
from geoframe.statistics.coverage import CoverageSummary, CoverageTests
from tests.coverage_trees import coverage_tree


@pytest.fixture
def tree() -> xr.DataTree:
    return coverage_tree()


def table(summary, tree) -> dict[str, dict[str, str]]:
    headers, rows = summary.rows(summary.compute(tree))
    return {
        " ".join(row[:3] if "contrast" in headers else row[:2]): dict(zip(headers, row, strict=True)) for row in rows
    }


def test_means_by_outcome(tree):
    ds = CoverageSummary(replicates=200).compute(tree)
    same = tree["coverage"].to_dataset().sel(encoder="mlp", probeset="mnist")
    cell = ds.sel(encoder="mlp", probeset="mnist", classes="same")
    right = same["correct"].values
    assert float(cell["coverage"].sel(outcome="all")) == pytest.approx(float(same["coverage"].mean()))
    assert float(cell["coverage"].sel(outcome="correct")) == pytest.approx(same["coverage"].values[right].mean())
    assert float(cell["coverage"].sel(outcome="misclassified")) == pytest.approx(same["coverage"].values[~right].mean())
    assert cell["images"].values.tolist() == [30, right.sum(), 30 - right.sum()]
    assert float(ds["accuracy"].sel(encoder="mlp", probeset="mnist")) == pytest.approx(right.mean())


def test_the_table_has_a_row_for_each_cell_that_was_measured(tree):
    rows = table(CoverageSummary(replicates=50), tree)
    assert list(rows) == ["mlp mnist", "mlp-random mnist", "cnn fashion", "cnn-random fashion"]
    assert rows["mlp mnist"]["same"].startswith("9")
    assert "[" in rows["mlp mnist"]["different"]


def test_without_different_rays(tree):
    alone = xr.DataTree.from_dict({"coverage": tree["coverage"].to_dataset()})
    headers, rows = CoverageSummary(different="").rows(CoverageSummary(different="", replicates=20).compute(alone))
    assert "different" not in headers
    assert len(rows) == 4
    with pytest.raises(UnknownName, match="coverage-different"):
        CoverageSummary().compute(alone)


def test_images_without_labels_have_no_outcome(tree):
    ds = tree["coverage"].to_dataset().assign(label=("image", [-1] * 30))
    ds = ds.assign_coords(label=(("probeset", "image"), np.full((2, 30), -1)))
    found = CoverageSummary(different="", replicates=20).compute(xr.DataTree.from_dict({"coverage": ds}))
    assert np.isnan(found["accuracy"]).all()
    assert np.isnan(found["coverage"].sel(outcome="correct")).all()


def test_contrasts_and_verdicts(tree):
    rows = table(CoverageTests(), tree)
    assert len(rows) == 6
    first = rows["mlp mnist trained: same − untrained: same"]
    assert first["verdict"] == "agrees"
    assert first["published"] == "89–96 − 32–47"
    assert rows["mlp mnist trained: same − trained: different"]["verdict"] == "agrees"
    assert rows["mlp mnist untrained: same − untrained: different"]["verdict"] == "reported"


def test_the_other_sign_disagrees_and_no_difference_is_inconclusive():
    worse = table(CoverageTests(), coverage_tree(same=0.2, untrained=0.6))
    assert worse["mlp mnist trained: same − untrained: same"]["verdict"] == "disagrees"
    equal = table(CoverageTests(), coverage_tree(same=0.5, untrained=0.5, spread=0.2))
    assert equal["mlp mnist trained: same − untrained: same"]["verdict"] == "inconclusive"


def test_results_without_a_pair_have_nothing_to_compare(tree):
    trained = tree["coverage"].to_dataset().sel(encoder=["mlp", "cnn"])
    nodes = {"coverage": trained, "coverage-different": trained}
    assert CoverageTests().rows(CoverageTests().compute(xr.DataTree.from_dict(nodes)))[1] == []


def test_a_node_of_another_probe(tree):
    with pytest.raises(BadInput, match="name a RayCoverageProbe's"):
        CoverageTests(different="ratio").compute(
            xr.DataTree.from_dict({"coverage": tree["coverage"].to_dataset(), "ratio": xr.Dataset()})
        )


def test_stored_and_read_back_it_prints_the_same(tree, tmp_path):
    for summary in (CoverageSummary(replicates=20), CoverageTests()):
        ds = summary.compute(tree)
        xr.DataTree.from_dict({"s": ds}).to_zarr(tmp_path / f"{summary.label}.zarr", consolidated=False, zarr_format=3)
        back = xr.open_datatree(tmp_path / f"{summary.label}.zarr", engine="zarr", consolidated=False)
        assert summary.rows(back["s"].to_dataset()) == summary.rows(ds)
        assert summary.caption
