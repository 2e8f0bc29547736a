"""Interventions and random labels: what their presets plan, and both on tiny networks from training to tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import geoframe as gf
from geoframe.loading import find_study
from geoframe.plan import Plan
from geoframe.training.arms import intervention_arms, labelled_arms
from geoframe.training.published import digits_training

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
def test_interventions_are_measured_on_their_own_test_images_in_every_arm_and_seed(preset):
    plan = Plan.of(find_study("interventions").study.resolve(preset))
    assert all(cell.encoder.coords["dataset"] == cell.probeset.coords["dataset"] for cell in plan.cells)
    final = [e for e in plan.study.encoders if e.step == e.training.epochs]
    arms = Counter((e.coords["dataset"], e.coords["variant"]) for e in final)
    assert set(arms.values()) == {3}, "seeds"
    assert len(arms) == (3 if preset == "quick" else 6)
    if preset == "paper":
        assert {e.epoch for e in plan.study.encoders} == set(range(1, 11))
        assert {e.training.data.count() for e in final} == {60000}


@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
def test_networks_of_random_labels_meet_the_labels_that_they_are_tested_on(preset):
    plan = Plan.of(find_study("random_labels").study.resolve(preset))
    found = [(cell.encoder.coords["variant"], cell.probeset.coords["labelling"]) for cell in plan.cells]
    assert found == [("true", "true"), ("random10", "true"), ("random100", "random-100")]
    references = [cell.encoder.training_set for cell in plan.cells]
    assert [reference.coords.get("labelling") for reference in references] == [None, "random-10", "random-100"]
    assert plan.cells[0].probe.reference is None
    if preset == "paper":
        assert {cell.probeset.count() for cell in plan.cells} == {10000}
        assert plan.cells[0].probe.n_reference is None
        assert plan.cells[0].probe.step == 0.01


def test_tiny_interventions(tmp_path, cache):
    class Tiny(gf.Study):
        encoders = intervention_arms(digits_training("mlp", epochs=2, lr=0.01), seeds=2, epsilon=0.3)
        probesets = (gf.Digits(n=6),)
        probes = (
            gf.RayCoverageProbe(n_reference=4, step=0.25),
            gf.GIProbe(along="random", n_directions=4, step=0.25, cap=1.0),
        )
        summaries = (gf.InterventionSummary(), gf.InterventionClaims())
        figures = (gf.InterventionCourses(),)

    tree = gf.run(Tiny, out=tmp_path / "run")
    table = tree["interventions"].to_dataset()
    assert dict(table.sizes) == {"network": 1, "arm": 3, "epoch": 2}
    assert np.isfinite(table.to_array()).all()
    assert table.attrs["losses"] == "λ = 0.25, τ = 1, ε = 0.3"
    training = tree["training"].to_dataset()
    for arm in ("control", "expand", "restrict"):
        mine = (training["variant"] == arm) & (training["epoch"] == 2)
        expected = float(training["test_accuracy"].where(mine).mean())
        assert table["test_accuracy"].sel(arm=arm, epoch=2).item() == pytest.approx(expected)
    claims = tree["intervention-claims"].to_dataset()
    assert claims["n"].values[:7].tolist() == [2] * 7
    assert (tmp_path / "run" / "figures" / "interventions.png").is_file()


def test_tiny_random_labels(tmp_path, cache):
    class Tiny(gf.Study):
        match = "labelling"
        encoders = labelled_arms(digits_training("mlp", epochs=2), gf.Digits(split="train"), gf.Digits())
        probesets = (gf.TrueLabels(gf.Digits(n=12)), gf.RandomLabels(gf.Digits(n=12), 100))
        probes = (gf.RayCoverageProbe(n_reference=4, step=0.25),)
        summaries = (gf.CoverageSummary(different=""), gf.RandomLabelClaims())
        figures = (gf.CoverageByOutcome(),)

    tree = gf.run(Tiny, out=tmp_path / "run")
    measured = tree["coverage"]["coverage"].notnull().any("image").values
    assert measured.tolist() == [[True, False], [True, False], [False, True]]
    assert int(tree["coverage"]["predicted"].isel(encoder=2, probeset=1).max()) > 9
    labels = tree["coverage"]["label"].values
    assert labels[0].max() <= 9 < labels[1].max()
    claims = tree["random-label-claims"].to_dataset()
    rows = zip(*(claims[name].values for name in ("subject", "claim", "verdict")), strict=True)
    verdicts = {(subject, claim): verdict for subject, claim, verdict in rows}
    assert verdicts["mlp digits, random10", "less than true labels"].startswith("inconclusive: memorised only")
    assert verdicts["mlp digits, true", "coverage above 80 %"] == "reported"
