"""Coverage under random labels on made-up results: ranges, tests, and the gate of memorisation."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.summaries.random_labels import RandomLabelClaims
from tests.arm_trees import labelled_tree


def claims(tree: xr.DataTree) -> dict[tuple[str, str], dict[str, str]]:
    headers, rows = RandomLabelClaims().rows(RandomLabelClaims().compute(tree))
    return {(row[0], row[1]): dict(zip(headers, row, strict=True)) for row in rows}


def test_the_published_picture_agrees():
    tree = labelled_tree()
    found = claims(tree)
    assert [key[0] for key in found] == ["mlp MNIST, true"] * 3 + ["mlp MNIST, random10"] * 4 + [
        "mlp MNIST, random100"
    ] * 4
    ten = found["mlp MNIST, random10", "coverage in range"]
    mean = 100 * float(tree["coverage"]["coverage"].isel(encoder=1, probeset=0).mean())
    assert ten["ours [95 %]"].startswith(f"{mean:.3g} [")
    assert (ten["n"], ten["published"], ten["verdict"]) == ("40", "17–24 %", "agrees")
    assert found["mlp MNIST, true", "coverage above 80 %"]["verdict"] == "agrees"
    for variant in ("random10", "random100"):
        assert found[f"mlp MNIST, {variant}", "less than true labels"]["verdict"] == "agrees"
    hundred = tree["coverage"]["coverage"].isel(encoder=2, probeset=1)
    assert found["mlp MNIST, random100", "coverage in range"]["ours [95 %]"].startswith(
        f"{100 * float(hundred.mean()):.3g}"
    )


def test_accuracies_are_reported():
    found = claims(labelled_tree())
    row = found["mlp MNIST, random10", "train accuracy"]
    assert (row["ours [95 %]"], row["n"], row["verdict"]) == ("95 %", "50", "reported")
    assert found["mlp MNIST, random100", "test accuracy"]["ours [95 %]"] == "1 %"


def test_other_coverages_disagree():
    found = claims(labelled_tree(coverage=(0.5, 0.6, 0.5)))
    assert found["mlp MNIST, true", "coverage above 80 %"]["verdict"] == "disagrees"
    assert found["mlp MNIST, random10", "coverage in range"]["verdict"] == "disagrees"
    assert found["mlp MNIST, random10", "less than true labels"]["verdict"] == "disagrees"
    assert found["mlp MNIST, random100", "less than true labels"]["verdict"] == "inconclusive"


def test_networks_that_did_not_memorise_say_nothing():
    found = claims(labelled_tree(train=(0.5, 0.79, 0.8)))
    for claim in ("coverage in range", "less than true labels"):
        assert found["mlp MNIST, random10", claim]["verdict"] == "inconclusive: memorised only 79 %"
        assert found["mlp MNIST, random100", claim]["verdict"] == "agrees"
    assert found["mlp MNIST, true", "coverage above 80 %"]["verdict"] == "agrees", "true labels aren't memorised"


@pytest.mark.parametrize("known", [True, False])
def test_without_accuracies(known):
    tree = labelled_tree(train=(np.nan, np.nan, np.nan))
    if not known:
        tree = xr.DataTree.from_dict({"coverage": tree["coverage"].to_dataset()})
    found = claims(tree)
    row = found["mlp MNIST, random10", "less than true labels"]
    assert row["verdict"] == "inconclusive: train accuracy not known"
    assert found["mlp MNIST, random10", "train accuracy"]["ours [95 %]"] == "–"


def test_on_other_data_levels_are_reported_and_the_difference_judged():
    found = claims(labelled_tree(dataset="digits"))
    assert found["mlp digits, true", "coverage above 80 %"]["verdict"] == "reported"
    assert found["mlp digits, random10", "coverage in range"]["verdict"] == "reported"
    assert found["mlp digits, random10", "less than true labels"]["verdict"] == "agrees"


def test_without_a_network_of_true_labels():
    tree = labelled_tree()
    nodes = {name: child.to_dataset().isel(encoder=[1, 2, 3]) for name, child in tree.children.items()}
    found = claims(xr.DataTree.from_dict(nodes))
    row = found["mlp MNIST, random10", "less than true labels"]
    assert row["verdict"] == "inconclusive: no network of true labels"
    assert found["mlp MNIST, random10", "coverage in range"]["verdict"] == "agrees"


def test_few_images_have_no_interval():
    found = claims(labelled_tree(images=5))
    assert found["mlp MNIST, random10", "coverage in range"]["verdict"] == "inconclusive"


def test_a_wide_interval_around_another_mean_does_not_agree():
    tree = labelled_tree(images=10)
    coverage = tree["coverage"]["coverage"]
    coverage[1, 0] = np.array([0.0] * 6 + [0.9] * 4)  # 36 %, of which the interval meets 17–24 %
    tree["coverage"]["coverage"] = coverage
    row = claims(tree)["mlp MNIST, random10", "coverage in range"]
    assert row["ours [95 %]"].startswith("36 [9")
    assert row["verdict"] == "inconclusive"


def test_nothing_trained():
    tree = labelled_tree()
    nodes = {name: child.to_dataset().isel(encoder=[3]) for name, child in tree.children.items()}
    summary = RandomLabelClaims()
    assert summary.rows(summary.compute(xr.DataTree.from_dict(nodes)))[0] == ["nothing to compare"]
