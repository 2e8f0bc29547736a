"""The node `training` of a run: loss and accuracy of each encoder that was trained."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest

import geoframe as gf
from geoframe.training.cache import TrainingCache, cache_root
from geoframe.training.node import training_node
from tests.training.recipes import small, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


@pytest.fixture
def training(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    return small(write_net(tmp_path), checkpoints=(2,), test=gf.Digits(n=40), name="net")


def study_of(*shown: gf.Encoder) -> type[gf.Study]:
    class Tiny(gf.Study):
        encoders = shown
        probesets = (gf.Digits(n=2),)
        probes = (gf.RayCoverageProbe(n_reference=2, step=0.5),)

    return Tiny


def test_each_checkpoint_has_the_scores_of_the_training_curve(training, tmp_path):
    study = study_of(*(gf.TrainedEncoder(training, step=step) for step in ("final", 2, "init")))
    node = gf.run(study, out=tmp_path / "run")["training"]
    curve = gf.training_curve(training).swap_dims(checkpoint="epoch").sel(epoch=[4, 2, 0])
    for name in ("train_accuracy", "test_accuracy", "train_loss", "test_loss"):
        np.testing.assert_array_equal(node[name].values, curve[name].values)
        assert node[name].attrs["units"]
        assert node[name].attrs["long_name"]
    assert node["test_images"].values.tolist() == [training.test.count()] * 3
    assert node["epoch"].values.tolist() == [4, 2, 0]
    assert node["control"].values.tolist() == ["net-random", "net-random", ""]


def test_scores_stay_when_the_cache_is_lost(training, tmp_path):
    study = study_of(gf.TrainedEncoder(training), gf.TrainedEncoder(training, step="init"))
    before = gf.run(study, out=tmp_path / "run")["training"].to_dataset().load()
    shutil.rmtree(cache_root())
    after = gf.run(study, out=tmp_path / "run")["training"].to_dataset().load()
    assert after.identical(before)
    assert after["test_accuracy"].notnull().all()
    assert not cache_root().exists(), "nothing is trained for scores"


def test_the_training_images_of_each_class_are_counted(training, tmp_path):
    few = training.evolve(data=gf.Subset(gf.Digits(split="train"), 9), name="few")
    plain = write_net(tmp_path).evolve(name="plain")
    study = study_of(*map(gf.TrainedEncoder, (training, few)), gf.TrainedEncoder(few, step="init"), plain)
    study.probes = (gf.RayCoverageProbe(reference=gf.Digits(split="train", n=30), n_reference=2, step=0.5),)
    counts = gf.run(study, out=tmp_path / "run")["training"]["class_counts"]
    held = Counter(training.data.listing().labels), Counter(few.data.listing().labels)
    assert counts["class"].values.tolist() == list(range(10))
    for row, one in zip(counts.values, (*held, held[1]), strict=False):
        assert row.tolist() == [one[label] for label in range(10)]
    assert held[1].total() == 9
    assert counts.values[3].tolist() == [-1] * 10


def test_older_logs_are_told_the_counts(training, tmp_path):
    study = study_of(gf.TrainedEncoder(training))
    before = gf.run(study, out=tmp_path / "run")["training"].to_dataset().load()
    cache = TrainingCache(training)
    cache.write_log({name: value for name, value in cache.log().items() if name != "class_counts"})
    assert gf.run(study, out=tmp_path / "again")["training"].to_dataset().load().identical(before)


def test_the_number_of_test_images_may_be_missing(training, tmp_path):
    """As in logs, and in results, of an earlier release."""
    encoder = gf.TrainedEncoder(training)
    cache, study = TrainingCache(training), study_of(encoder)
    gf.run(study, out=tmp_path / "run")
    log = cache.log()
    for row in (log["initial"], *log["checkpoints"]):
        del row["test_images"]
    cache.write_log(log)
    node = gf.run(study, out=tmp_path / "again")["training"].to_dataset().load()
    assert node["test_images"].isnull().all()
    shutil.rmtree(cache_root())
    kept = training_node([encoder], node.drop_vars("test_images"))
    assert kept["test_images"].isnull().all()
    assert kept["test_accuracy"].equals(node["test_accuracy"])


def test_initial_weights_alone_are_not_trained_for_their_scores(training, tmp_path):
    node = gf.run(study_of(gf.TrainedEncoder(training, step="init")), out=tmp_path / "run")["training"]
    assert node["train_accuracy"].isnull().all()
    assert "class_counts" not in node


def test_results_without_trained_encoders_have_no_node(tmp_path):
    tree = gf.run(_plain(tmp_path), out=tmp_path / "run")
    assert "training" not in tree.children


def _plain(folder):
    class Plain(gf.Study):
        encoders = (write_net(folder),)
        probesets = (gf.Digits(n=2),)
        probes = (gf.JacobianProbe(),)

    return Plain


def test_the_nodes_name_is_taken(training):
    fields = {
        "encoders": (gf.TrainedEncoder(training),),
        "probesets": (gf.Digits(n=2),),
        "probes": (gf.JacobianProbe(name="training"),),
    }
    with pytest.raises(gf.BadInput, match="node 'training' holds what is known of trainings"):
        type("Clash", (gf.Study,), fields)
