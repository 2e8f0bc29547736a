"""Coverage of images from elsewhere: made-up means, and which sets are compared with which."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.summaries.coverage import CoverageSummary
from geoframe.summaries.ood import OodClaims, measured_sets, ray_coverage, within
from tests.coverage_trees import ood_tree

EVERY = "the same, rays of every class"


def found(tree: xr.DataTree) -> dict[str, tuple[float, str]]:
    """Value and verdict of each claim of the paper's."""
    ds = OodClaims().compute(tree)
    ds = ds.isel(entry=np.flatnonzero(ds["claim"] != EVERY))
    return dict(zip(ds["claim"].values, zip(ds["value"].values, ds["verdict"].values, strict=True), strict=True))


def test_the_papers_figures_agree():
    claims = found(ood_tree())
    assert {verdict for _, verdict in claims.values()} == {"agrees"}
    assert claims["coverage about 10 %"][0] == pytest.approx(10, abs=1e-9)
    assert claims["own data: coverage > 89 %"][0] == pytest.approx(95)
    assert claims["coverage minus own data's < 0"][0] == pytest.approx(-85)


@pytest.mark.parametrize(
    ("inside", "outside", "verdicts"),
    [
        (0.5, 0.5, ["disagrees", "agrees", "disagrees", "inconclusive"]),
        (0.1, 0.96, ["disagrees", "agrees", "disagrees", "disagrees"]),
        (0.95, 0.001, ["disagrees", "disagrees", "agrees", "agrees"]),
        (0.95, 0.2, ["inconclusive", "agrees", "agrees", "agrees"]),
    ],
)
def test_other_figures_do_not(inside, outside, verdicts):
    assert [verdict for _, verdict in found(ood_tree(inside, outside)).values()] == verdicts


def test_the_papers_figures_are_of_its_data():
    claims = found(ood_tree(dataset="digits"))
    assert [verdict for _, verdict in claims.values()] == [
        "inconclusive: other data",
        "agrees",
        "inconclusive: other data",
        "agrees",
    ]


def test_whether_a_prediction_is_correct_plays_no_part():
    tree = ood_tree()
    turned = tree["coverage"].to_dataset()
    turned["correct"] = ~turned["correct"]
    other = xr.DataTree.from_dict({"coverage": turned, "training": tree["training"].to_dataset()})
    assert OodClaims().compute(tree).identical(OodClaims().compute(other))
    summary = CoverageSummary(different="", by_outcome=False)
    tables = summary.tables(summary.compute(tree))
    assert summary.compute(tree).identical(summary.compute(other))
    assert [(title, headers) for title, headers, _ in tables] == [
        ("coverage-summary", ["encoder", "probe set", "images", "same (%)", "re-entry (%)"])
    ]


def test_rays_of_every_class_are_covered_as_far_as_they_are_of_the_predicted_one():
    ds = OodClaims().compute(ood_tree())
    last = ds.isel(entry=-1)
    assert last["claim"].item() == EVERY
    assert last["verdict"].item() == "inconclusive: our reading"
    pools = np.where(np.arange(40) % 2, 0.1, 0.3)
    coverage = 0.1 + 0.04 * np.linspace(-1, 1, 40)
    assert float(last["value"]) == pytest.approx(100 * float((pools * coverage).mean()))
    for what in ("no node", "unknown"):
        tree = ood_tree()
        training = tree["training"].to_dataset()
        training["class_counts"] = training["class_counts"] * 0 - 1
        nodes = {"coverage": tree["coverage"].to_dataset()} | ({"training": training} if what == "unknown" else {})
        assert EVERY not in OodClaims().compute(xr.DataTree.from_dict(nodes))["claim"].values


def test_sets_are_told_apart_by_their_data_set():
    coverage = ray_coverage(ood_tree(), "coverage")
    assert measured_sets(coverage, "mlp") == (["own"], ["elsewhere"])
    unnamed = coverage.assign_coords(probeset_dataset=("probeset", np.array(["", "CIFAR10"], dtype=object)))
    assert measured_sets(unnamed, "mlp") == ([], ["elsewhere"])
    assert measured_sets(coverage.drop_vars("dataset"), "mlp") == ([], [])
    half = coverage.where(coverage["probeset"] != "elsewhere")
    assert measured_sets(half, "mlp") == (["own"], [])


def test_without_own_data_two_claims_are_left():
    tree = ood_tree()
    alone = tree["coverage"].to_dataset().sel(probeset=["elsewhere"])
    assert len(found(xr.DataTree.from_dict({"coverage": alone}))) == 2


def test_nothing_to_compare():
    tree = ood_tree()
    own = xr.DataTree.from_dict({"coverage": tree["coverage"].to_dataset().sel(probeset=["own"])})
    summary = OodClaims()
    assert summary.tables(summary.compute(own))[0][1] == ["nothing to compare"]
    with pytest.raises(BadInput, match="node 'coverage' holds no coverage"):
        summary.compute(xr.DataTree.from_dict({"coverage": own["coverage"].to_dataset().drop_vars("coverage")}))


def test_within():
    assert within(float("nan"), float("nan"), 5, 20) == "inconclusive"
    assert within(21, 30, 5, 20) == "disagrees"


def test_colour_images_are_grey_and_whole_for_an_mnist_network(tmp_path):
    """Of a picture with a bright rim, the frame's middle cut loses the rim; the whole picture keeps it, as luma."""
    from PIL import Image

    pixels = np.zeros((32, 32, 3), dtype=np.uint8)
    pixels[:2] = pixels[-2:] = (255, 0, 0)
    (tmp_path / "test" / "cat").mkdir(parents=True)
    Image.fromarray(pixels).save(tmp_path / "test" / "cat" / "0.png")
    cifar = gf.Cifar10Jpeg("test", root=tmp_path)
    cut, whole = (images.load((1, 28, 28)).pixels[0, 0] for images in (cifar, gf.Resized(cifar)))
    assert float(cut.max()) == 0
    assert float(whole[0].min()) == float(whole[0].max()) == pytest.approx(round(0.299 * 255) / 255, abs=1.5 / 255)
    assert float(whole[14].max()) == 0
