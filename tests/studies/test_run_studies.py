"""Studies of many checkpoints: what they plan, and claims that come out as numbers computed by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import geoframe as gf
from geoframe.loading import find_study
from geoframe.plan import Plan
from geoframe.training.published import digits_training
from geoframe.training.series import all_checkpoints, over_seeds

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


def paper(study: str) -> Plan:
    return Plan.of(find_study(study).study.resolve("paper"))


def test_expansion_measures_every_epoch_of_three_runs_at_both_learning_rates():
    plan = paper("expansion")
    assert len(plan.unique()) == len(plan.cells) == 2 * 3 * 31 * 2
    trainings = {encoder.training for encoder in plan.study.encoders}
    rates = Counter((training.lr, training.seed) for training in trainings)
    assert rates == {(lr, seed): 1 for lr in (0.01, 0.001) for seed in (0, 1, 2)}
    assert {(training.epochs, training.momentum) for training in trainings} == {(30, 0)}
    assert Counter(encoder.epoch for encoder in plan.study.encoders) == dict.fromkeys(range(31), 6)
    rsv, random = plan.study.probes
    assert (rsv.along, rsv.layer, rsv.n_directions, random.along) == ("rsv", "pre", None, "random")
    assert rsv.cap == random.cap


def test_seeds_and_optimisers_are_not_crossed():
    plan = paper("seeds")
    trainings = {encoder.training for encoder in plan.study.encoders}
    models = Counter((one.architecture, one.optimiser, one.seed) for one in trainings)
    expected = [("sgd", seed) for seed in range(5)] + [("adam", 0), ("rmsprop", 0)]
    assert models == {(net, *how): 1 for net in ("mlp", "cnn") for how in expected}
    assert {(training.epochs, training.lr) for training in trainings} == {(20, 0.001)}
    assert {encoder.epoch for encoder in plan.study.encoders} == {0, 1, 2, 5, 10, 20}
    assert plan.study.probesets[0].count() == 50
    assert plan.study.probes[0].n_reference is None


@pytest.mark.parametrize("study", ["expansion", "seeds"])
@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
def test_test_images_are_of_the_training_data(study, preset):
    for cell in Plan.of(find_study(study).study.resolve(preset)).cells:
        assert cell.encoder.coords["dataset"] == cell.probeset.coords["dataset"]
        assert cell.encoder.training.data.coords["split"] == "train"
        assert cell.probeset.coords["split"] == "test"


class Tiny(gf.Study):
    encoders = all_checkpoints(*over_seeds(digits_training("mlp", epochs=4, checkpoints=range(1, 4)), (3,)))
    probesets = (gf.Digits(n=3),)
    probes = (
        gf.GIProbe(layer="pre", cap=4.0, n_directions=6, search="exact"),
        gf.GIProbe(along="random", cap=4.0, n_directions=6, search="exact", name="gi-random"),
        gf.RayCoverageProbe(n_reference=4, step=0.1),
    )
    summaries = (gf.ExpansionSummary(), gf.ExpansionClaims(), gf.SeedSummary(), gf.SeedClaims())
    figures = (gf.ExpansionCurves(), gf.CoverageRuns())


def test_claims_of_a_run_are_those_computed_by_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    tree = gf.run(Tiny, out=tmp_path / "run")
    accuracy = tree["training"]["test_accuracy"].values
    assert accuracy[-1] > 0.9 > 0.5 > accuracy[0]
    found = tree["expansion-claims"].to_dataset()
    claims = found.sel(entry=["all runs" not in subject for subject in found["subject"].values]).set_index(
        entry="claim"
    )
    for kind, node in (("RSV", "gi"), ("random", "gi-random")):
        ds = tree[node]
        means = np.stack([ds["gi"].values, ds["gi_negative"].values]).mean(axis=(0, 2, 3, 4))
        for first in (0, 1):
            expected = np.corrcoef(means[first:], accuracy[first:])[0, 1]
            one = claims.sel(entry=f"r: mean GI, {kind}, epochs {first}–4")
            assert float(one["value"]) == pytest.approx(expected)
            assert int(one["n"]) == 5 - first
    coverage = tree["coverage"]["coverage"].mean("image").values[:, 0]
    raised = tree["seed-claims"].to_dataset().set_index(entry="claim").sel(entry="trained > untrained")
    assert float(raised["value"]) == pytest.approx(100 * (coverage[-1] - coverage[0]))
    assert sorted(path.name for path in (tmp_path / "run" / "figures").iterdir()) == [
        "coverage_runs.png",
        "expansion.png",
    ]
