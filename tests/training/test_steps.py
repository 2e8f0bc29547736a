"""Checkpoints at optimiser steps, and encoders made of them."""

from __future__ import annotations

import re

import attrs
import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.training import loop, saved
from geoframe.training.cache import TrainingCache
from geoframe.training.moments import Moment
from tests.doubles import Norm
from tests.training.recipes import checkpoint_bytes, small, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


@pytest.fixture
def model(tmp_path):
    return write_net(tmp_path)


def recipe(model, **changes) -> gf.Training:
    """4 epochs of 5 steps."""
    return small(model, **{"checkpoint_steps": (1, 7, 10), "checkpoints": (3,), **changes})


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Uncounted(gf.Digits):
    """Digits whose number isn't known early."""

    def count(self):
        return None

    def listing(self):
        raise gf.MissingFile("not there yet")


def test_the_weights_are_those_after_the_step(model):
    training = recipe(model)
    module = model.build_model().module.train()
    images = training.data.load((1, 8, 8))
    x, y = (images.pixels - 0.5) / 0.5, torch.tensor(images.labels)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    order, step = torch.Generator().manual_seed(0), 0
    for _ in range(4):
        for rows in torch.randperm(101, generator=order)[:100].split(20):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(x[rows]), y[rows]).backward()
            optimiser.step()
            step += 1
            if step in (1, 7, 10, 15, 20):
                found = gf.TrainedEncoder(training, at_step=step).build_model().module.state_dict()
                assert all(torch.equal(found[name], tensor) for name, tensor in module.state_dict().items())


def test_files_and_log(model):
    training = recipe(model)
    weights(training)
    assert set(checkpoint_bytes(training)) == {
        "step-0000001.pt", "step-0000007.pt", "step-0000010.pt", "epoch-00003.pt", "epoch-00004.pt",
    }  # fmt: skip
    rows = TrainingCache(training).log()["checkpoints"]
    assert [(row["step"], row["epoch"]) for row in rows] == [(1, 0.2), (7, 1.4), (10, 2), (15, 3), (20, 4)]


def test_keeping_more_changes_no_weights(tmp_path):
    model = write_net(tmp_path).evolve(kwargs={"dropout": 0.3})
    assert torch.equal(weights(recipe(model)), weights(recipe(model, checkpoint_steps=(), checkpoints=())))


def test_a_lost_step_is_made_again(model):
    training = recipe(model)
    weights(training)
    whole = checkpoint_bytes(training)
    TrainingCache(training).file(Moment(7, "step")).unlink()
    gf.TrainedEncoder(training, at_step=7).build()
    assert checkpoint_bytes(training) == whole


def test_only_what_is_missing_is_made_again(model, monkeypatch):
    """Up to the end of the epoch with the last one that is missing."""
    training = recipe(model)
    weights(training)
    TrainingCache(training).file(Moment(7, "step")).unlink()
    kept, real = [], saved.write
    monkeypatch.setattr(saved, "write", lambda path, *a, **k: kept.append(path.name) or real(path, *a, **k))
    loop.weights_after(training, Moment(7, "step"))
    assert kept == ["step-0000001.pt", "resume.pt", "step-0000007.pt", "step-0000010.pt"]


def test_names_and_coordinates(model):
    training = recipe(model, variant="Random labels", name=None)
    encoders = [gf.TrainedEncoder(training, at_step=step) for step in (0, 1, 7, 10, 15, 20)]
    assert [encoder.label for encoder in encoders] == [
        f"net-digits-random-labels{end}" for end in ("-random", "-step1", "-step7", "-step10", "-step15", "-step20")
    ]
    found = [(encoder.coords["step"], encoder.coords["epoch"]) for encoder in encoders]
    assert found == [(0, 0), (1, 0.2), (7, 1.4), (10, 2), (15, 3), (20, 4)]
    assert [encoder.coords["training"] for encoder in encoders] == ["random"] + ["digits"] * 5
    assert {encoder.coords["variant"] for encoder in encoders} == {"Random labels"}
    assert gf.TrainedEncoder(training, step=3).coords["step"] == 15
    assert gf.TrainedEncoder(training, at_step=7).randomised().key == gf.TrainedEncoder(training, step="init").key


def test_the_radius_of_adversarial_training_is_a_coordinate(model):
    training = recipe(model, loss=gf.AdversarialL2(0.5))
    assert gf.TrainedEncoder(training).coords["epsilon"] == 0.5
    assert "epsilon" not in gf.TrainedEncoder(training, step="init").coords
    assert "epsilon" not in gf.TrainedEncoder(recipe(model)).coords


def test_encoders_of_epochs_have_the_keys_they_always_had(model):
    encoder = gf.TrainedEncoder(recipe(model))
    assert "at_step" not in encoder.identity()["fields"]
    assert gf.TrainedEncoder(recipe(model), at_step=7).key != encoder.key


@pytest.mark.parametrize("step", [21, 10**9])
def test_a_step_that_is_never_reached_is_refused_at_once(model, step):
    with pytest.raises(gf.BadInput, match=rf"^Training: no checkpoint after step {step}: training has steps 1 to 20$"):
        recipe(model, checkpoint_steps=(1, step))
    with pytest.raises(gf.BadInput, match=rf"^training 'net-digits' has no step {step}: it ends with step 20$"):
        gf.TrainedEncoder(recipe(model), at_step=step)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda t: t.evolve(checkpoint_steps=(0,)), "no checkpoint after step 0: training has steps 1 to 20"),
        (lambda t: t.evolve(checkpoint_steps="all"), "checkpoint_steps=.* should be numbers of optimiser steps"),
        (lambda t: t.evolve(checkpoint_steps=None), "checkpoint_steps=None should be numbers of optimiser steps"),
        (lambda t: t.evolve(epochs=2, checkpoints=()).evolve(epochs=1), "step 7: training has steps 1 to 5"),
        (lambda t: gf.TrainedEncoder(t, at_step=8), r"keeps no step 8 \(it keeps 1, 7, 10\): add it to checkpoint_ste"),
        (lambda t: gf.TrainedEncoder(t, at_step=5), r"keeps no step 5 \(it keeps 1, 7, 10\): add it to checkpoint_ste"),
        (lambda t: gf.TrainedEncoder(t, at_step=-1), "at_step=-1 should be the number of an optimiser step"),
        (lambda t: gf.TrainedEncoder(t, at_step="7"), "at_step='7' should be the number of an optimiser step"),
        (lambda t: gf.TrainedEncoder(t, at_step=7, step=3), "step=3 and at_step=7 are two moments: give one"),
        (lambda t: gf.TrainedEncoder(t.evolve(checkpoint_steps=()), at_step=7), r"it keeps none"),
    ],
)
def test_refusals(model, make, said):
    with pytest.raises(gf.BadInput, match=said) as error:
        make(recipe(model))
    assert "\n" not in str(error.value)


def test_a_set_that_cannot_be_counted_is_checked_before_the_first_step(model, monkeypatch):
    data = Uncounted(split="train", n=101)
    training = recipe(model, data=data, checkpoint_steps=(7, 30))
    assert (gf.TrainedEncoder(training).coords["step"], gf.TrainedEncoder(training, at_step=7).epoch) == (None, None)
    assert gf.TrainedEncoder(training, at_step=7).label == "net-digits-step7"
    with pytest.raises(gf.BadInput, match="no checkpoint after step 30: training has steps 1 to 20"):
        weights(training)
    with pytest.raises(gf.BadInput, match="training counts steps from 1"):
        recipe(model, data=data, checkpoint_steps=(0,))
    right = recipe(model, data=data)
    found = gf.TrainedEncoder(right, at_step=7).build_model().module.state_dict()
    want = gf.TrainedEncoder(recipe(model), at_step=7).build_model().module.state_dict()
    assert all(torch.equal(found[name], want[name]) for name in want)


def test_a_study_of_formation(model, tmp_path):
    training = recipe(model)

    class Formation(gf.Study):
        encoders = tuple(gf.TrainedEncoder(training, at_step=step) for step in (0, *training.checkpoint_steps))
        probesets = (gf.Digits(n=2),)
        probes = (Norm(),)

    tree = gf.run(Formation, out=tmp_path / "run")
    assert tree["norm"]["step"].values.tolist() == [0, 1, 7, 10]
    assert tree["norm"]["epoch"].values.tolist() == [0.0, 0.2, 1.4, 2.0]
    assert len(set(tree["norm"]["norm"].values.reshape(4, -1).mean(1).tolist())) == 4


def test_the_number_of_a_step_can_be_set(model):
    class One(gf.Study):
        encoders = (gf.TrainedEncoder(recipe(model), name="net"),)
        probesets = (gf.Digits(n=1),)
        probes = (Norm(),)

    assert One.resolve(set=["encoders.net.at_step=7"]).encoders[0].at_step == 7
    with pytest.raises(gf.BadInput, match=r"--set: encoders.net.at_step: training 'net-digits' keeps no step 8"):
        One.resolve(set=["encoders.net.at_step=8"])


def test_weights_that_are_not_finite_are_not_kept(model, monkeypatch):
    training = recipe(model, checkpoint_steps=(6, 7))
    from geoframe.training.course import Course

    real = Course._step

    def step(self, rows, number):
        loss = real(self, rows, number)
        if self.steps == 6:
            self.module[1].weight.data[0, 0] = float("nan")
        return loss

    monkeypatch.setattr(Course, "_step", step)
    with pytest.raises(gf.BadInput, match=r"diverged in epoch 2, step 2 \(weights that aren't finite\)"):
        weights(training)
    assert set(checkpoint_bytes(training)) == {"step-0000006.pt", "resume.pt"}


def test_long_epochs_tell_their_steps(monkeypatch, capsys):
    from geoframe.training import progress

    clock = iter([0.0, 1.0, 3.0, 4.0, 20.0, 100.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    shown = progress.TrainingProgress("net", 2, 391, before=391)
    for step in (392, 400, 401, 491):
        shown.step(step, 0.5)
    shown.step(782, 0.5)  # the epoch's own line follows
    shown.epoch(2, 0.25)
    assert capsys.readouterr().err.splitlines() == [
        "training net: epoch 2 of 2, step 400 of 782, loss 0.5, about 127 s left".replace("127 s", "2 min"),
        "training net: epoch 2 of 2, step 491 of 782, loss 0.5, about 58 s left",
        "training net: epoch 2 of 2, loss 0.25",
    ]


def test_the_time_left_counts_checkpoints_apart(monkeypatch, capsys):
    from geoframe.training import progress

    clock = iter([0.0, 20.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    shown = progress.TrainingProgress("net", 1, 100, checkpoints=4)
    for _ in range(3):
        shown.kept(5.0)
    shown.step(10, 0.5)
    assert capsys.readouterr().err == "training net: epoch 1 of 1, step 10 of 100, loss 0.5, about 50 s left\n"


def test_the_file_names_sort_by_time():
    assert [Moment(5).file, Moment(391, "step").file] == ["epoch-00005.pt", "step-0000391.pt"]
    assert re.match(r"epoch \d", str(Moment.of(5)))


def test_steps_of_a_set_whose_size_its_labels_tell(tmp_path):
    data = gf.LongTail(gf.Digits(split="train"), 6.5)
    assert data.count() is None
    recipe = small(write_net(tmp_path), data=data, batch=64)
    per_epoch = -(-len(data.listing().labels) // 64)
    assert recipe.steps == per_epoch * recipe.epochs
    encoder = gf.TrainedEncoder(recipe.evolve(checkpoint_steps=(5,)), at_step=5)
    assert (encoder.coords["step"], encoder.coords["epoch"]) == (5, 5 / per_epoch)
    assert gf.TrainedEncoder(recipe).coords["step"] == recipe.steps
