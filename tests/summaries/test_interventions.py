"""Arms of an intervention on made-up results: means over seeds, tests over seeds, verdicts that can turn."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from geoframe.errors import BadInput
from geoframe.summaries.arms import arm_courses, last_epoch, loss_settings
from geoframe.summaries.intervention_claims import InterventionClaims
from geoframe.summaries.interventions import InterventionSummary
from tests.arm_trees import ACCURACY, COVERAGE, GI, NETWORKS, NOISE, intervention_tree


def verdicts(tree: xr.DataTree, network: str = "mlp on MNIST") -> dict[str, dict[str, str]]:
    headers, rows = InterventionClaims().rows(InterventionClaims().compute(tree))
    return {row[1]: dict(zip(headers, row, strict=True)) for row in rows if row[0] == network}


def changed(tree: xr.DataTree, node: str, **variables: xr.DataArray) -> xr.DataTree:
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    return xr.DataTree.from_dict(nodes | {node: nodes[node].assign(variables)})


def test_courses_by_network_arm_seed_and_epoch():
    courses = arm_courses(intervention_tree(), "coverage", "gi")
    assert courses["network"].values.tolist() == ["mlp on MNIST", "cnn on FashionMNIST"]
    assert courses["arm"].values.tolist() == ["control", "expand", "restrict"]
    assert dict(courses.sizes) == {"network": 2, "arm": 3, "seed": 3, "epoch": 3}
    one = courses.sel(network="cnn on FashionMNIST", arm="restrict", seed=2, epoch=1)
    assert float(one["test_accuracy"]) == pytest.approx(0.75 / 2 + NOISE[2])
    assert float(one["train_accuracy"]) == pytest.approx(0.75 / 2 + NOISE[2] - 0.013)
    assert float(one["coverage"]) == pytest.approx(0.5 / 2 + NOISE[2])
    assert float(one["reentry"]) == pytest.approx(0.25 * (1 - float(one["coverage"])))
    assert float(one["gi"]) == pytest.approx(0.8 / 2 + NOISE[2]), "both signs"


def test_order_of_the_encoders_is_no_matter():
    tree = intervention_tree()
    shuffled = {name: child.to_dataset().isel(encoder=slice(None, None, -1)) for name, child in tree.children.items()}
    shuffled["gi"] = tree["gi"].to_dataset()
    courses = arm_courses(xr.DataTree.from_dict(shuffled), "coverage", "gi")
    expected = arm_courses(tree, "coverage", "gi")
    xr.testing.assert_equal(courses.sel(network=expected["network"]), expected)


def test_initial_weights_and_other_variants_are_left_out():
    tree = intervention_tree()
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    for ds in nodes.values():
        ds["training"] = ds["training"].copy(data=np.where(ds["epoch"] == 1, "random", ds["training"]))
        ds["variant"] = ds["variant"].copy(data=np.where(ds["seed"] == 2, "mine", ds["variant"]))
    courses = arm_courses(xr.DataTree.from_dict(nodes), "coverage", "gi")
    assert (courses["seed"].values.tolist(), courses["epoch"].values.tolist()) == ([0, 1], [2, 3])


def test_two_of_one_place_are_refused_in_a_line():
    tree = intervention_tree()
    nodes = {
        name: child.to_dataset().assign_coords(seed=("encoder", [0] * 54)) for name, child in tree.children.items()
    }
    with pytest.raises(BadInput, match="is another control of mlp on MNIST, seed 0, epoch 1") as error:
        arm_courses(xr.DataTree.from_dict(nodes), "coverage", "gi")
    assert "\n" not in str(error.value)


def test_one_encoder_under_two_names_counts_once():
    tree = intervention_tree(networks={"mlp": "MNIST"})
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    epochs, keys = ("encoder", [1] * 27), ("encoder", np.repeat([f"key{i}" for i in range(9)], 3).astype(object))
    nodes["training"] = nodes["training"].assign_coords(epoch=epochs, scores_key=keys)
    courses = arm_courses(xr.DataTree.from_dict(nodes), "coverage", "gi")
    assert courses["epoch"].values.tolist() == [1]
    assert courses["gi"].sel(arm="expand", seed=1).item() == pytest.approx(1.2 / 2)


def test_the_last_epoch_is_each_networks_own():
    courses = arm_courses(intervention_tree(), "coverage", "gi")
    known = (courses["epoch"] == 1) | (courses["network"] == "mlp on MNIST")
    final = last_epoch(courses.where(known))
    assert final["epoch"].values.tolist() == [3, 1]


def test_the_summary_is_mean_and_standard_deviation_over_seeds():
    ds = InterventionSummary().compute(intervention_tree())
    cell = ds.sel(network="mlp on MNIST", arm="expand", epoch=3)
    assert float(cell["test_accuracy"]) == pytest.approx(0.89)
    assert float(cell["test_accuracy_sd"]) == pytest.approx(np.std(NOISE, ddof=1))
    assert (float(cell["gi"]), float(cell["coverage"])) == (pytest.approx(1.2), pytest.approx(0.8))
    assert int(cell["seeds"]) == 3
    (title, headers, rows), (_, _, uncovered) = InterventionSummary().tables(ds)
    assert title == "interventions, λ = 0.5, τ = 1, ε = 0.3"
    row = dict(zip(headers, rows[2], strict=True))
    assert row["network"] == "mlp on MNIST"
    assert row["arm"] == "restrict"
    assert (row["test accuracy (%)"], row["train accuracy (%)"]) == ("75 ± 0.4", "73.7 ± 0.4")
    assert (row["mean GI"], row["coverage (%)"]) == ("0.8 ± 0.004", "50 ± 0.4")
    assert uncovered[2][2:5] == ["37.5 ± 0.3", "12.5 ± 0.1", "25"]


def test_published_effects_agree_with_welchs_test_over_seeds():
    found = verdicts(intervention_tree())
    row = found["restrict lowers test accuracy"]
    expected = stats.ttest_ind(0.75 + np.array(NOISE), 0.87 + np.array(NOISE), equal_var=False)
    assert float(row["p"]) == pytest.approx(expected.pvalue, rel=0.05)
    assert row["ours [95 %]"].startswith("-12 [-12.9, -11.1] pp")
    assert (row["n"], row["published"], row["verdict"]) == ("3", "−12.2, p 0.003", "agrees")
    assert {row["verdict"] for row in found.values()} == {"agrees"}
    assert len(found) == 11
    fashion = verdicts(intervention_tree(), "cnn on FashionMNIST")
    assert fashion["restrict lowers ray coverage"]["published"] == "−19.5, p ≈ 0.008"


def test_the_other_sign_disagrees():
    turned = {"control": 0.8, "expand": 0.75, "restrict": 0.9}
    found = verdicts(intervention_tree(turned, turned, turned))
    assert {row["verdict"] for row in found.values()} == {"disagrees"}


def test_noise_is_inconclusive_and_not_apart():
    found = verdicts(intervention_tree(noise=50))
    assert found["expand raises test accuracy"]["verdict"] == "inconclusive"
    assert found["expand: ray coverage apart"]["verdict"] == "disagrees"


def test_one_overlap_of_one_seed_at_one_epoch_is_not_apart():
    tree = intervention_tree()
    name = "mlp-mnist-expand-seed1-epoch1"
    low = tree["coverage"]["coverage"].where(tree["coverage"]["encoder"] != name, 0.34)
    found = verdicts(changed(tree, "coverage", coverage=low))
    assert found["expand: ray coverage apart"]["ours [95 %]"] == "66.7 % of epochs"
    assert found["expand: ray coverage apart"]["verdict"] == "disagrees"
    assert found["restrict: ray coverage apart"]["verdict"] == "agrees"
    assert found["expand: mean GI apart"]["verdict"] == "agrees"


def test_equal_coverage_is_not_apart():
    full = dict.fromkeys(COVERAGE, 1.0)
    found = verdicts(intervention_tree(coverage=full, noise=0))
    assert found["expand: ray coverage apart"]["verdict"] == "disagrees"
    assert found["expand raises ray coverage"]["verdict"] == "inconclusive: no spread"


def test_one_seed_says_nothing():
    found = verdicts(intervention_tree(seeds=1))
    verdicts_of = {kind: {found[claim]["verdict"] for claim in found if ("apart" in claim) == kind} for kind in (0, 1)}
    assert verdicts_of == {0: {"inconclusive: fewer than 2 seeds"}, 1: {"inconclusive: fewer than 3 seeds"}}
    assert found["restrict lowers test accuracy"]["ours [95 %]"] == "-12 pp"


@pytest.mark.parametrize(("seeds", "epochs"), [(2, 3), (3, 2)])
def test_two_seeds_or_two_epochs_may_be_apart_by_luck(seeds, epochs):
    nodes = {name: child.to_dataset() for name, child in intervention_tree(seeds=seeds).children.items()}
    early = nodes["training"]["epoch"].values <= epochs
    found = verdicts(xr.DataTree.from_dict({name: ds.isel(encoder=early) for name, ds in nodes.items()}))
    reason = "inconclusive: fewer than 3 " + ("seeds" if seeds < 3 else "epochs")
    assert {row["verdict"] for claim, row in found.items() if "apart" in claim} == {reason}


def test_missing_arms_and_accuracies():
    some = {arm: ACCURACY[arm] for arm in ("control", "restrict")}
    found = verdicts(intervention_tree(some, COVERAGE, GI))
    assert found["expand raises mean GI"]["verdict"] == "inconclusive: not trained"
    assert found["restrict lowers mean GI"]["verdict"] == "agrees"
    tree = intervention_tree()
    blank = changed(tree, "training", test_accuracy=tree["training"]["test_accuracy"] * np.nan)
    assert verdicts(blank)["restrict lowers test accuracy"]["verdict"] == "inconclusive: not measured"


def test_other_networks_have_signs_only():
    found = verdicts(intervention_tree(networks={"mlp": "digits"}), "mlp on digits")
    assert found["restrict lowers test accuracy"]["published"] == "lower"
    assert found["restrict lowers test accuracy"]["verdict"] == "agrees"


def test_results_without_an_arm_say_so():
    tree = intervention_tree()
    random = {
        name: child.to_dataset().assign(training=("encoder", np.array(["random"] * 54, dtype=object)))
        for name, child in tree.children.items()
    }
    bare = xr.DataTree.from_dict(random)
    for summary in (InterventionSummary(), InterventionClaims()):
        ((_, headers, rows),) = summary.tables(summary.compute(bare))
        assert headers == ["nothing to compare"]
        assert len(rows) == 1


def test_losses_of_several_settings_and_of_none():
    tree = intervention_tree()
    some = tree["training"]["loss_epsilon"].copy(data=np.where(np.arange(54) < 27, 1.0, 0.3))
    assert loss_settings(changed(tree, "training", loss_epsilon=some)) == "λ = 0.5, τ = 1, ε = 0.3 and 1"
    bare = tree["training"].to_dataset().drop_vars(["loss_weight", "loss_margin", "loss_epsilon"])
    assert loss_settings(xr.DataTree.from_dict({"training": bare})) == ""


def test_a_table_for_each_network():
    tables = InterventionClaims().tables(InterventionClaims().compute(intervention_tree()))
    assert [title for title, _, _ in tables] == [
        f"intervention-claims, {name} on {dataset}" for name, dataset in NETWORKS.items()
    ]
    assert all("measured" not in headers for _, headers, _ in tables)
