"""AttackSummary and AttackClaims on made-up results: counts, shares, and verdicts that can go either way."""

from __future__ import annotations

import numpy as np
import pytest

import geoframe as gf
from geoframe.summaries.alignment import top_energy
from geoframe.summaries.attacks import attack_of
from tests.attack_trees import attack_tree


def verdicts(**changes: object) -> dict[tuple[str, str], str]:
    return {(c.subject, c.claim): c.verdict for c in gf.AttackClaims().claims(attack_tree(**changes))}


def test_counts_shares_and_distances() -> None:
    tree = attack_tree()
    ds = gf.AttackSummary().compute(tree)
    cell = ds.sel(encoder="mlp-mnist", probeset="mnist-test", attack="pgd")
    assert [int(cell[name]) for name in ("images", "correct", "wrong", "correct_before")] == [40, 20, 20, 39]
    assert float(cell["success"]) == pytest.approx(19 / 39)  # the first image was wrong before
    assert float(cell["success_low"]) < 19 / 39 < float(cell["success_high"])
    node = tree["coverage-pgd"].to_dataset().sel(encoder="mlp-mnist", probeset="mnist-test")
    assert float(cell["distance"]) == np.median(node["distance"].values[1:20])
    assert float(cell["distance_inf"]) == pytest.approx(float(cell["distance"]) / 30)
    right, wrong = (cell.sel(outcome=outcome) for outcome in ("correct", "wrong"))
    assert int(right["covered_images"]) == int(wrong["covered_images"]) == 20
    assert float(right["coverage"]) == pytest.approx(node["coverage"].values[20:].mean())
    assert float(wrong["coverage"]) == pytest.approx(node["coverage"].values[:20].mean())
    assert float(cell["difference"]) == pytest.approx(float(wrong["coverage"] - right["coverage"]))
    assert float(cell["p"]) < 1e-6
    clean = ds.sel(encoder="mlp-mnist", probeset="mnist-test", attack="none")
    assert (int(clean["wrong"]), int(clean["correct_before"])) == (2, 38)
    assert np.isnan(float(clean["distance"]))
    other = ds.sel(encoder="mlp-mnist", probeset="cifar10-test")
    assert (other["images"] == 0).all()


def test_the_tables_say_what_is_published_and_of_whom() -> None:
    summary = gf.AttackSummary()
    (_, _, rows), (_, _, coverage) = summary.tables(summary.compute(attack_tree()))
    said = {(row[0], row[2]): row[4] for row in rows}
    assert len(said) == len(rows) == 12
    assert said["mlp-mnist", "cw"] == "132 / 68"
    assert said["resnet20-cifar10", "ifgsm"] == "25 / 75"
    assert said["mlp-digits", "cw"] == said["mlp-mnist", "none"] == "–"
    ranges = {(row[0], row[2], row[3]): row[6] for row in coverage}
    assert ranges["mlp-mnist", "pgd", "wrong"] == "91.2–94.5"
    assert ranges["resnet20-cifar10", "pgd", "correct"] == "63.9–68.7"
    assert ranges["mlp-digits", "pgd", "correct"] == "–"


def test_images_without_rays_or_labels_have_no_coverage() -> None:
    tree = attack_tree(("MNIST",))
    node = tree["coverage-cw"].to_dataset()
    node["coverage"] = node["coverage"].where(node["correct"])  # the other classes have no reference images
    tree["coverage-cw"].dataset = node
    node = tree["coverage-pgd"].to_dataset()
    tree["coverage-pgd"].dataset = node.assign_coords(label=node["label"] * 0 - 1)
    ds = gf.AttackSummary().compute(tree).isel(encoder=0, probeset=0)
    cw = ds.sel(attack="cw", outcome="wrong")
    assert (int(cw["wrong"]), int(cw["covered_images"])) == (12, 0)
    assert np.isnan(float(cw["coverage"]))
    assert int(ds.sel(attack="pgd")["images"]) == 0
    claims = gf.AttackClaims().claims(tree)
    assert {c.claim: c.verdict for c in claims if c.claim in ("cw: wrong", "cw: wrong − correct")} == {
        "cw: wrong": "inconclusive",
        "cw: wrong − correct": "inconclusive: n < 10",
    }
    assert not [c for c in claims if c.claim.startswith("pgd:")]


def test_verdicts_on_results_like_the_papers() -> None:
    found = verdicts()
    for attack in ("cw", "ifgsm", "pgd"):
        for claim in ("correct", "wrong", "wrong − correct"):
            assert found["mlp-mnist", f"{attack}: {claim}"] == "agrees"
            assert found["resnet20-cifar10", f"{attack}: {claim}"] == "agrees"
            assert found["mlp-digits", f"{attack}: {claim}"] == "inconclusive: data"
    for claim in ("gradient, top 5", "difference, top 5", "gradient − difference", "pgd − difference"):
        assert found["mlp-mnist", claim] == "agrees"
    assert found["mlp-digits", "gradient, top 5"] == "inconclusive: data"
    assert found["mlp-digits", "gradient − difference"] == "agrees"
    assert found["mlp-mnist", "|cos(v₁, gradient)|"] == "inconclusive: ours"


def test_verdicts_on_other_results_disagree() -> None:
    found = verdicts(gradient=0.2, difference=0.6, shift=-0.2)
    for claim in ("cw: correct", "pgd: wrong", "gradient, top 5", "difference, top 5"):
        assert found["mlp-mnist", claim] == "disagrees"
    for claim in ("gradient − difference", "pgd − difference"):
        assert found["mlp-mnist", claim] == found["mlp-digits", claim] == "disagrees"


def test_the_order_of_outcomes_can_disagree_and_a_copy_of_the_data_has_orders_only() -> None:
    tree = attack_tree(("CIFAR10",), stand_in=True)
    found = {c.claim: c.verdict for c in gf.AttackClaims().claims(tree)}
    assert found["cw: correct"] == found["cw: wrong"] == found["gradient, top 5"] == "inconclusive: copy"
    assert found["cw: wrong − correct"] == "agrees"
    node = tree["coverage-cw"].to_dataset()
    tree["coverage-cw"].dataset = node.assign(coverage=1 - node["coverage"])
    found = {c.claim: c.verdict for c in gf.AttackClaims().claims(tree)}
    assert found["cw: wrong − correct"] == "disagrees"


def test_few_images_decide_nothing() -> None:
    found = {c.claim: (c.verdict, c.n) for c in gf.AttackClaims().claims(attack_tree(("MNIST",), images=3))}
    assert found["cw: wrong − correct"] == ("inconclusive: n < 10", 3)
    assert found["gradient − difference"] == ("inconclusive", 3)
    assert found["gradient, top 5"] == found["difference, top 5"] == ("inconclusive", 3)  # no interval


@pytest.mark.parametrize(
    ("wrong", "verdict"), [(1, "inconclusive: n < 10"), (9, "inconclusive: n < 10"), (10, "agrees")]
)
def test_an_order_needs_ten_images_of_either_outcome(wrong: int, verdict: str) -> None:
    tree = attack_tree(("MNIST",), images=100)
    node = tree["coverage-pgd"].to_dataset()
    correct = node["correct"].copy(data=(np.arange(100) >= wrong)[None, None])
    coverage = node["coverage"].copy(data=np.where(correct, 0.85, 0.93))
    tree["coverage-pgd"].dataset = node.assign(correct=correct, coverage=coverage)
    found = {c.claim: c.verdict for c in gf.AttackClaims().claims(tree)}
    assert found["pgd: wrong − correct"] == verdict


def test_random_baseline_and_differences_are_taken_image_by_image() -> None:
    tree = attack_tree(("MNIST",))
    found = {c.claim: c for c in gf.AttackClaims().claims(tree)}
    gradient = tree["alignment"]["energy"].isel(component=4, vector=0).values.ravel()
    random = tree["alignment"]["baseline_pullback"].isel(component=4).values.ravel()
    differences = tree["alignment-difference"]["energy"].isel(component=4).mean("vector").values.ravel()
    assert found["gradient, top 5"].value == pytest.approx(100 * gradient.mean())
    assert found["gradient − random"].value == pytest.approx(100 * (gradient - random).mean())
    assert found["gradient − difference"].value == pytest.approx(100 * (gradient - differences).mean())
    assert found["|cos(v₁, gradient)|"].value == pytest.approx(np.sqrt(0.4 * 0.85), rel=0.01)


def test_a_network_of_fewer_features_has_all_of_its_energy() -> None:
    node = attack_tree(("MNIST",))["alignment"].to_dataset()
    node["energy"] = node["energy"].where(node["component"] < 3)
    np.testing.assert_allclose(top_energy(node), node["energy"].isel(component=2, vector=0))


def test_alignments_may_be_left_out_and_other_nodes_are_refused() -> None:
    tree = attack_tree(("MNIST",))
    only = gf.AttackClaims(gradient="", differences="", moves=()).claims(tree)
    assert {c.claim.partition(":")[0] for c in only} == {"cw", "ifgsm", "pgd"}
    with pytest.raises(gf.BadInput, match="'alignment' holds no coverage"):
        gf.AttackSummary(nodes=("alignment",)).compute(tree)
    assert attack_of("coverage-different-pgd") == "different-pgd"


def test_a_study_that_lacks_a_node_is_refused_before_it_runs() -> None:
    from geoframe.loading import find_study

    study = find_study("attacks").study
    with pytest.raises(gf.BadInput, match="made from the results of 'coverage-pgd'"):
        study.resolve("paper", set=["probes=coverage,coverage-cw,coverage-ifgsm,alignment*"])
