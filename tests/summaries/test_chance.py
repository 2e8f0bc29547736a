"""Networks that predict one class everywhere, or guess: no claim on trained networks is decided of them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.summaries.chance import at_chance, judged
from tests.band_trees import band_tree
from tests.coverage_trees import coverage_tree, ood_tree
from tests.run_trees import seeds_tree

LOST = "inconclusive: at chance"


def guessed(tree: xr.DataTree, node: str, **where: str) -> xr.DataTree:
    """The same where encoders, on a probe set, predict class 0 everywhere."""
    rays = tree[node].to_dataset()
    here = xr.ones_like(rays["correct"])
    for dim, name in where.items():
        here = here & (rays[dim] == name)
    zero = xr.zeros_like(rays["predicted"])
    rays["predicted"] = zero.where(here, rays["predicted"])
    rays["correct"] = (rays["label"] == zero).where(here, rays["correct"])
    tree[node].dataset = rays
    return tree


def rays(predicted: np.ndarray, label: np.ndarray, coverage: np.ndarray | float = 1.0) -> xr.Dataset:
    dims = ("encoder", "probeset", "image")
    shape = (1, 1, len(label))
    values = {
        "coverage": np.broadcast_to(coverage, shape).astype(float),
        "predicted": predicted.reshape(shape),
        "correct": (predicted == label).reshape(shape),
    }
    coords = {"encoder": ["net"], "probeset": ["test"], "label": (("probeset", "image"), label[None])}
    return xr.Dataset({name: (dims, value) for name, value in values.items()}, coords)


@pytest.mark.parametrize(("right", "lost"), [(6, True), (7, True), (8, False), (40, False)])
def test_accuracy_counts_by_its_interval(right, lost):
    """Of 40 images of ten classes: Wilson's interval of 7 correct ones begins at 8.7 %, of 8 at 10.5 %."""
    label = np.arange(40) % 10
    predicted = np.where(np.arange(40) < right, label, (label + 1) % 10)
    assert at_chance(rays(predicted, label), "test") == ({"net"} if lost else set())


def test_one_class_throughout_is_a_guess_however_often_it_is_right():
    label = np.array([0] * 30 + [1] * 10)
    assert at_chance(rays(np.zeros(40, int), label), "test") == {"net"}
    nearly = np.zeros(40, int)
    nearly[-1] = 1
    assert at_chance(rays(nearly, label), "test") == set()


def test_images_without_rays_labels_or_other_classes_do_not_count():
    label = np.arange(40) % 10
    unmeasured = np.where(np.arange(40) < 20, 1.0, np.nan)
    right_elsewhere = np.where(np.arange(40) < 20, 0, label)
    assert at_chance(rays(right_elsewhere, label), "test") == set()
    assert at_chance(rays(right_elsewhere, label, unmeasured), "test") == {"net"}
    assert at_chance(rays(np.zeros(40, int), np.full(40, -1)), "test") == set()
    assert at_chance(rays(np.zeros(40, int), np.zeros(40, int)), "test") == set()


def test_a_reason_stays():
    claim = gf.Claim(subject="net", claim="any", verdict="inconclusive: no control")
    assert judged(claim, lost=True).verdict == "inconclusive: no control"
    assert judged(gf.Claim(subject="net", claim="any"), lost=True).verdict == LOST
    assert judged(gf.Claim(subject="net", claim="any"), lost=False).verdict == "inconclusive"


def test_seeds_and_optimisers():
    claims = gf.SeedClaims().claims(guessed(seeds_tree(trained=(1.0,) * 6), "coverage"))
    assert {claim.verdict for claim in claims if claim.subject != "all runs"} == {LOST}


def test_one_run_at_chance_leaves_the_other_runs():
    tree = guessed(seeds_tree(), "coverage", encoder="mlp-adam")
    found = {(claim.subject, claim.claim): claim.verdict for claim in gf.SeedClaims().claims(tree)}
    assert found["mlp-adam", "trained > untrained"] == LOST
    assert found["mlp-seed0", "trained > untrained"] == "agrees"
    assert found["mlp digits", "trained: CV over seeds"] == "agrees"
    assert found["mlp digits", "trained: CV over all runs"] == LOST
    assert found["mlp digits", "optimisers differ mildly"] == LOST


def test_contrasts_with_the_trained_network():
    tree = guessed(coverage_tree(untrained=0.4), "coverage", encoder="mlp")
    summary = gf.CoverageTests()
    verdicts = {(row[0], row[2]): row[-1] for row in summary.rows(summary.compute(tree))[1]}
    assert verdicts["mlp", "same: trained − initial"] == verdicts["mlp", "trained: same − different"] == LOST
    assert verdicts["mlp", "initial: same − different"] == "inconclusive"
    assert verdicts["cnn", "same: trained − initial"] == "agrees"


def test_images_from_elsewhere():
    own, other = (
        gf.OodClaims().claims(guessed(ood_tree(), "coverage", probeset=name)) for name in ("own", "elsewhere")
    )
    assert [claim.verdict for claim in own] == [LOST] * 4 + ["inconclusive: our reading"]
    assert [claim.verdict for claim in other][:4] == ["agrees"] * 4, "labels from elsewhere mean nothing"


def test_long_tails():
    claims = gf.LongTailClaims().claims(band_tree([(label, 0, 100, 1.0) for label in range(10)]))
    assert {claim.verdict for claim in claims} == {LOST}
