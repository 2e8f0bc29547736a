"""`training_curve`: each number is the network's own, whatever the log holds."""

from __future__ import annotations

import json

import pytest
import torch
from torch.nn.functional import cross_entropy

import geoframe as gf
from geoframe.training import loop
from geoframe.training.cache import TrainingCache
from tests.training.recipes import small, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
SCORES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


@pytest.fixture
def training(tmp_path):
    """4 epochs of 5 steps, with what must not enter the scores: dropout, augmentation, an attack."""
    return small(
        write_net(tmp_path).evolve(kwargs={"dropout": 0.3}),
        checkpoints=(1,),
        checkpoint_steps=(2, 5, 7),
        test=gf.Digits(n=40),
        augment="crop-flip",
        loss=gf.AdversarialL2(0.2, steps=2),
    )


def by_hand(training, step, images) -> tuple[float, float]:
    logits = gf.TrainedEncoder(training, at_step=step).load().logits(images.pixels).double()
    y = torch.tensor(images.labels)
    return float(cross_entropy(logits, y)), float((logits.argmax(1) == y).double().mean())


def check(curve, training):
    for step in curve["step"].values.tolist():
        at = curve.isel(checkpoint=curve["step"].values.tolist().index(step))
        for split, probeset in (("train", training.data), ("test", training.test)):
            want = by_hand(training, step, probeset.load((1, 8, 8)))
            assert [float(at[f"{split}_{score}"]) for score in ("loss", "accuracy")] == pytest.approx(want, rel=1e-5)


def test_the_curve_is_the_networks(training):
    curve = gf.training_curve(training)
    assert dict(curve.sizes) == {"checkpoint": 5}
    assert curve["step"].values.tolist() == [0, 2, 5, 7, 20]  # step 5 is epoch 1: one point
    assert curve["epoch"].values.tolist() == [0.0, 0.4, 1.0, 1.4, 4.0]
    assert set(curve.data_vars) == set(SCORES)
    check(curve, training)
    for name in (*SCORES, "step", "epoch"):
        assert set(curve[name].attrs) == {"long_name", "units"}
        assert curve[name].dims == ("checkpoint",)
    assert curve["train_loss"].attrs["units"] == "nats"
    assert json.loads(curve.attrs["training"])["fields"]["lr"] == 0.1
    assert curve.attrs["key"] == training.key


def test_it_is_read_the_second_time(training, monkeypatch):
    first = gf.training_curve(training)
    monkeypatch.setattr(loop, "train", None)
    monkeypatch.setattr("geoframe.training.scoring.labelled", None)
    assert gf.training_curve(training, train=False).identical(first)


def test_it_can_be_stored(training, tmp_path):
    import xarray as xr

    curve = gf.training_curve(training)
    curve.to_zarr(tmp_path / "curve.zarr", consolidated=False)
    assert xr.open_zarr(tmp_path / "curve.zarr", consolidated=False).load().identical(curve)


def test_nothing_is_trained_where_that_is_not_wanted(training, cache):
    with pytest.raises(gf.BadInput, match=r"isn't complete: epoch 1 isn't in the cache; leave train=True") as error:
        gf.training_curve(training, train=False)
    assert "\n" not in str(error.value)
    assert not cache.exists()


def test_another_test_set_has_other_scores(training):
    before = gf.training_curve(training)
    other = training.evolve(test=gf.Digits(n=30, seed=4))
    curve = gf.training_curve(other, train=False)
    check(curve, other)
    assert not curve["test_loss"].equals(before["test_loss"])
    assert curve["train_loss"].equals(before["train_loss"])
    assert gf.training_curve(training).identical(before)


def test_without_a_test_set_there_are_no_test_scores(training):
    curve = gf.training_curve(training.evolve(test=None))
    assert set(curve.data_vars) == {"train_loss", "train_accuracy"}
    check(gf.training_curve(training, train=False), training)


def test_an_older_log_is_completed(tmp_path):
    """As version 2 wrote it before there were losses and steps."""
    training = small(write_net(tmp_path), checkpoints=(1,), test=gf.Digits(n=40))
    new = gf.training_curve(training)
    place = TrainingCache(training)
    log = place.log()
    del log["initial"]
    for row in log["checkpoints"]:
        for name in set(row) - {"epoch", "loss", "train_accuracy", "test_accuracy", "weights"}:
            del row[name]
    place.write_log(log)
    assert len(weights(training, 1))
    assert gf.training_curve(training, train=False).identical(new)


def test_weights_that_are_damaged_are_one_line(training):
    weights(training)
    place = TrainingCache(training)
    place.file(1).write_bytes(b"x")
    with pytest.raises(gf.BadInput, match=r"epoch-00001.pt can't be read; build an encoder of it to train it again"):
        gf.training_curve(training.evolve(test=gf.Digits(n=9)))
    gf.TrainedEncoder(training, step=1).build()
    gf.training_curve(training)


def test_scoring_leaves_the_callers_state_alone(training):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    weights(training)
    gf.training_curve(training)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled()
