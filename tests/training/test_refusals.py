"""What can't be trained: one line that says what, where and what to do."""

from __future__ import annotations

import filelock
import pytest
import torch

import geoframe as gf
from geoframe.errors import EncoderRefused
from geoframe.report import RunFailed
from geoframe.training.cache import TrainingCache
from geoframe.training.losses import CrossEntropy
from geoframe.training.published import digits_training, mnist_training
from tests.doubles import Norm
from tests.training.recipes import digests, small, weights

SHAPE = (1, 8, 8)
NETS = """
import torch
from torch import nn

def plain(classes=2):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))

def normed():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))

def flat():
    return nn.Sequential(nn.Flatten(), nn.AvgPool1d(32))

def frozen():
    return plain().requires_grad_(False)

def maps():
    return nn.Conv2d(1, 2, 3)

def infinite():
    net = plain()
    nn.init.constant_(net[1].weight, float("inf"))
    return net

class Pair(nn.Module):
    # returns a tuple, always or in training only
    def __init__(self, always=True):
        super().__init__()
        self.net, self.always = plain(), always

    def forward(self, x):
        made = self.net(x)
        return (made, made) if self.always or self.training else made

class Drawing(nn.Module):
    # draws in eval mode too
    def __init__(self):
        super().__init__()
        self.net = plain()

    def forward(self, x):
        return self.net(x) + torch.rand(1)

class Moody(nn.Module):
    def __init__(self, after=5):
        super().__init__()
        self.net, self.left = plain(), after

    def forward(self, x):
        self.left -= self.training
        if self.left < 0:
            raise ZeroDivisionError("no more\\nsecond line")
        return self.net(x)

class Centred(nn.Module):
    # takes a running mean away, from a step on
    def __init__(self, persistent=False, after=0):
        super().__init__()
        self.net, self.left = plain(), after
        self.register_buffer("centre", torch.zeros(64), persistent=persistent)
        self.register_buffer("scale", torch.full((64,), float("nan")), persistent=False)
        self.register_buffer("pattern", torch.eye(2).to_sparse(), persistent=False)

    def forward(self, x):
        self.left -= self.training
        if self.training and self.left < 0:
            self.centre.lerp_(x.flatten(1).mean(0), 0.1)
        return self.net(x.flatten(1) - self.centre)

class Blown(nn.Module):
    # gives NaN, or a gradient that isn't finite, from a step on
    def __init__(self, after=5, how="loss"):
        super().__init__()
        self.net, self.left, self.how = plain(), after, how

    def forward(self, x):
        self.left -= self.training
        made = self.net(x)
        if self.left < 0 and self.training:
            made = made * float("nan") if self.how == "loss" else made + (made - made.detach()) * 1e38 * 1e38
        return made
"""


@pytest.fixture
def nets(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(NETS)

    def model(name, **kwargs):
        fields = {"input_shape": SHAPE} | {k: kwargs.pop(k) for k in ("input_shape", "mean", "std") if k in kwargs}
        return gf.FactoryEncoder(f"{path}:{name}", kwargs=kwargs, **fields)

    return model


def images(n=12, labels=None):
    x = torch.rand(n, *SHAPE, generator=torch.Generator().manual_seed(0))
    return gf.TensorSet(x, labels=labels or [i % 2 for i in range(n)], name="toy")


def recipe(model, **changes):
    return small(model, **{"data": images(), "batch": 4, "name": "t", "momentum": 0.0, **changes})


REFUSED = {
    "labels": (
        lambda net: recipe(net("plain"), data=images(labels=[0, 55] * 6)),
        "probe set 'toy' has labels up to 55, so the model needs 56 classes, but it has 2",
    ),
    "test labels": (
        lambda net: recipe(net("plain"), test=images(labels=[0, 86] * 6)),
        "probe set 'toy' has labels up to 86, so the model needs 87 classes, but it has 2",
    ),
    "random": (lambda net: recipe(net("Drawing")), "other logits for the same images in eval mode"),
    "one image": (
        lambda net: recipe(net("normed"), data=images(1)),
        "batch normalisation knows no variance of a single image, and the one image of probe set 'toy' gives it one",
    ),
    "batch of one": (
        lambda net: recipe(net("normed"), batch=1),
        "batch normalisation knows no variance of a single image, and batch=1 gives it one at a time: use two or more",
    ),
    "mean": (
        lambda net: recipe(net("plain", mean=(0.1, 0.2))),
        "mean and std hold 2 values, but its images have 1 channel: give a value for each channel, or one for all",
    ),
    "std": (lambda net: recipe(net("plain", std=1e-45)), r"NaN or infinite values: .* normalisation \(mean, std\)"),
    "infinite": (lambda net: recipe(net("infinite")), "the untrained model returns NaN or infinite values"),
    "shape": (
        lambda net: recipe(net("plain", input_shape=(1, 9, 9)), data=gf.Digits(n=9)),
        r"the model fails on images of shape \(1, 9, 9\): .*; correct the model or its input_shape",
    ),
    "tuple": (lambda net: recipe(net("Pair")), "the model returns a tuple, not logits"),
    "tuple while training": (lambda net: recipe(net("Pair", always=False)), "the model returns a tuple, not logits"),
    "maps": (
        lambda net: recipe(net("maps")),
        r"the model returns float32 of shape \(2, 2, 6, 6\) for 2 images, not logits \(image, class\)",
    ),
    "no parameters": (lambda net: recipe(net("flat")), "the model has no parameters to train"),
    "frozen": (lambda net: recipe(net("frozen")), "the model has no parameters to train"),
    "fails later": (
        lambda net: recipe(net("Moody")),
        "'t' failed in epoch 2, step 3: ZeroDivisionError: no more; correct the model",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained(nets, case):
    make, said = REFUSED[case]
    with pytest.raises(gf.BadInput, match=rf"^training 't'.*{said}|^training .*{said}") as error:
        gf.TrainedEncoder(make(nets)).build()
    assert "\n" not in str(error.value)


def test_a_test_set_that_comes_later_is_checked_before_anything_is_scored(nets):
    training = recipe(nets("plain"), epochs=1)
    gf.training_curve(training)
    with pytest.raises(gf.BadInput, match="labels up to 86, so the model needs 87 classes, but it has 2"):
        gf.training_curve(training.evolve(test=images(labels=[0, 86] * 6)))


def test_a_run_gives_it_as_bad_input(nets, tmp_path):
    class Wrong(gf.Study):
        encoders = (gf.TrainedEncoder(REFUSED["labels"][0](nets)),)
        probesets = (gf.Digits(n=1),)
        probes = (Norm(),)

    with pytest.raises(RunFailed, match="has labels up to 55") as error:
        gf.run(Wrong, out=tmp_path / "run")
    assert error.value.report.exit_code == 2


@pytest.mark.parametrize(
    ("after", "steps", "kept"),
    [(0, (), set()), (0, (1,), set()), (1, (2,), set()), (5, (), {1}), (5, (5, 6), {1, 5 / 3})],
)
def test_a_buffer_that_checkpoints_would_lack_is_refused(nets, after, steps, kept):
    training = recipe(nets("Centred", after=after), checkpoints=(1, 2), checkpoint_steps=steps)
    said = r"^training 't': the model's buffer 'centre' changes in training, .*: register it with persistent=True$"
    with pytest.raises(EncoderRefused, match=said):
        weights(training)
    assert set(digests(training)) == kept


def test_a_buffer_that_checkpoints_have_is_not(nets):
    training = recipe(nets("Centred", persistent=True), test=images())
    network, x = gf.TrainedEncoder(training).load(), images().load(SHAPE)
    right = (network.logits(x.pixels).argmax(1) == torch.tensor(x.labels)).double().mean()
    assert float(right) == pytest.approx(TrainingCache(training).log()["checkpoints"][-1]["test_accuracy"])


@pytest.mark.parametrize(("how", "what"), [("loss", "loss nan"), ("gradient", "loss nan|weights that aren't finite")])
@pytest.mark.parametrize(("after", "where"), [(5, "epoch 2, step 3"), (11, "epoch 4, step 3")])
def test_diverged_training_says_where_and_keeps_what_it_has(nets, how, what, after, where):
    training = recipe(nets("Blown", after=after, how=how), checkpoints=(1,))
    with pytest.raises(gf.BadInput, match=rf"'t' diverged in {where} \({what}\): lower lr; the checkpoints") as error:
        weights(training)
    assert "\n" not in str(error.value)
    assert set(digests(training)) == {1}
    assert len(weights(training, 1))


def test_batches_of_one_train(nets):
    training = recipe(nets("plain"), batch=1, epochs=6, checkpoints=(1,))
    weights(training)
    first, last = TrainingCache(training).log()["checkpoints"]
    assert 0 < last["loss"] < first["loss"]
    assert not torch.equal(weights(training, 1), weights(training, 6))


@pytest.mark.parametrize(("n", "batch", "sizes"), [(9, 4, [4, 4]), (10, 4, [4, 4, 2]), (3, 1, [1] * 3), (1, 4, [1])])
def test_only_a_last_smaller_batch_of_one_is_left_out_and_the_loss_is_of_the_images_used(
    nets, monkeypatch, n, batch, sizes
):
    seen, losses = [], []
    real = CrossEntropy.__call__

    def counted(self, model, x, y, generator):
        loss = real(self, model, x, y, generator)
        seen.append(len(y))
        losses.append(float(loss.detach()))
        return loss

    monkeypatch.setattr(CrossEntropy, "__call__", counted)
    training = recipe(nets("plain"), data=images(n), batch=batch, epochs=1)
    weights(training)
    assert seen == sizes
    (row,) = TrainingCache(training).log()["checkpoints"]
    assert row["loss"] == pytest.approx(sum(a * b for a, b in zip(sizes, losses, strict=True)) / sum(sizes))


@pytest.mark.parametrize("step", [3, 40])
def test_an_epoch_that_is_not_kept_is_refused_with_the_recipe(nets, step):
    training = recipe(nets("plain"), checkpoints=(1,))
    with pytest.raises(gf.BadInput, match=rf"training 't' keeps no epoch {step} \(it keeps 1, 4\): add it"):
        gf.TrainedEncoder(training, step=step)
    assert [gf.TrainedEncoder(training, step=kept).epoch for kept in (0, 1, 4, "init", "final")] == [0, 1, 4, 0, 4]


def test_an_epoch_that_is_not_kept_is_refused_by_a_plan(nets):
    class Steps(gf.Study):
        encoders = (gf.TrainedEncoder(recipe(nets("plain")), name="net"),)
        probesets = (gf.Digits(n=1),)
        probes = (Norm(),)

    with pytest.raises(gf.BadInput, match=r"--set: encoders.net.step: training 't' keeps no epoch 3"):
        Steps.resolve(set=["encoders.net.step=3"])


@pytest.mark.parametrize("make", [mnist_training, digits_training])
def test_an_unknown_architecture(make):
    with pytest.raises(gf.UnknownName, match=r"no architecture 'cn'; did you mean 'cnn'\?"):
        make("cn")
    with pytest.raises(gf.UnknownName, match="no architecture 'resnet'; known: cnn, mlp"):
        make("resnet")


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(30, "Read-only file system")])
def test_a_lock_that_cannot_be_made(nets, cache, monkeypatch, error):
    def acquire(self, *args, **kwargs):
        raise error

    (cache / "training").mkdir(parents=True)
    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with pytest.raises(gf.BadInput, match=rf"can't write .*lock: {error.strerror}; set GEOFRAME_CACHE") as raised:
        weights(recipe(nets("plain")))
    assert "\n" not in str(raised.value)


def test_a_finished_training_needs_no_lock(nets, monkeypatch):
    first = weights(recipe(nets("plain")))
    monkeypatch.setattr(filelock, "FileLock", None)
    assert torch.equal(weights(recipe(nets("plain"))), first)
