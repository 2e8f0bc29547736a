from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput, UnknownName
from geoframe.summaries.coverage import CoverageSummary, CoverageTests
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
    assert rows["mlp mnist"]["same (%)"].startswith("9")
    assert "[" in rows["mlp mnist"]["different (%)"]


def test_without_different_rays(tree):
    alone = xr.DataTree.from_dict({"coverage": tree["coverage"].to_dataset()})
    headers, rows = CoverageSummary(different="").rows(CoverageSummary(different="", replicates=20).compute(alone))
    assert "different (%)" not in headers
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
    first = rows["mlp mnist same: trained − initial"]
    assert (first["verdict"], first["published p"]) == ("agrees", "< 1e-11")
    assert rows["mlp mnist trained: same − different"]["verdict"] == "agrees"
    bias = rows["mlp mnist initial: same − different"]
    assert (bias["verdict"], bias["published p"]) == ("inconclusive", "3.9e-12, 0.02, 0.19")
    (_, headers, means), _ = CoverageTests().tables(CoverageTests().compute(tree))
    row = dict(zip(headers, means[0], strict=True))
    assert (row["n"], row["published (%)"]) == ("30, 30", "89–96 − 32–47")


def test_the_other_sign_disagrees_and_no_difference_is_inconclusive():
    worse = table(CoverageTests(), coverage_tree(same=0.2, untrained=0.6))
    assert worse["mlp mnist same: trained − initial"]["verdict"] == "disagrees"
    equal = table(CoverageTests(), coverage_tree(same=0.5, untrained=0.5, spread=0.2))
    assert equal["mlp mnist same: trained − initial"]["verdict"] == "inconclusive"


def test_untrained_networks_with_the_other_bias_disagree(tree):
    nodes = {name: node.to_dataset() for name, node in tree.children.items()}
    random = nodes["coverage"]["training"] == "random"
    nodes["coverage-different"]["coverage"] = nodes["coverage-different"]["coverage"].where(~random, 0.7)
    rows = table(CoverageTests(), xr.DataTree.from_dict(nodes))
    assert rows["mlp mnist initial: same − different"]["verdict"] == "disagrees"


def test_results_without_a_pair_have_nothing_to_compare(tree):
    trained = {name: node.to_dataset().sel(encoder=["mlp", "cnn"]) for name, node in tree.children.items()}
    rows = table(CoverageTests(), xr.DataTree.from_dict(trained))
    assert rows["mlp mnist same: trained − initial"]["verdict"] == "no random copy"
    assert rows["mlp mnist initial: same − different"]["verdict"] == "no random copy"
    assert rows["mlp mnist trained: same − different"]["verdict"] == "agrees", "this needs none"


def test_results_without_a_trained_network_say_so(tree):
    random = {name: node.to_dataset().isel(encoder=[1, 3]) for name, node in tree.children.items()}
    ds = CoverageTests().compute(xr.DataTree.from_dict(random))
    assert CoverageTests().rows(ds)[1] == []
    assert CoverageTests().tables(ds)[0][2] == [["no trained network in these results"]]


def test_two_networks_of_one_architecture_get_their_own_random_copies(tree):
    nodes = {name: one_factory(node.to_dataset()) for name, node in tree.children.items()}
    known = {"network": ["relu", "relu", "gelu", "gelu"], "control": ["relu-random", "", "gelu-random", ""]}
    coords = {name: ("encoder", np.array(values, dtype=object)) for name, values in known.items()}
    exact = xr.DataTree.from_dict({name: node.assign_coords(coords) for name, node in nodes.items()})
    ds = CoverageTests().compute(exact)
    assert ds["control"].values.tolist() == ["relu-random", "gelu-random"]
    same = nodes["coverage"]["coverage"].mean("image").sel(encoder=["relu-random", "gelu-random"])
    contrast = ds["second"].sel(contrast="trained: same − untrained: same")
    np.testing.assert_allclose(contrast, [same[0, 0], same[1, 1]])
    guessed = table(CoverageTests(), xr.DataTree.from_dict(nodes))
    assert guessed["relu mnist same: trained − initial"]["verdict"] == "random copy unclear"
    assert guessed["relu mnist same: trained − initial"]["p"] == "–"
    assert guessed["relu mnist trained: same − different"]["verdict"] == "agrees"


def one_factory(ds: xr.Dataset) -> xr.Dataset:
    """The tree's four encoders as two networks that a factory made, which no coordinate tells apart."""
    same = {"architecture": "net", "dataset": "MNIST"}
    names = np.array(["relu", "relu-random", "gelu", "gelu-random"], dtype=object)
    texts = {name: ("encoder", np.array([text] * 4, dtype=object)) for name, text in same.items()}
    training = ("encoder", np.array(["MNIST", "random"] * 2, dtype=object))
    return ds.assign_coords(encoder=names, training=training, **texts)


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
