"""Where a training runs; without a GPU: a device that is the CPU, and torch's `meta`, which computes nothing."""

from __future__ import annotations

import json

import pytest
import torch

import geoframe as gf
from geoframe import settings
from geoframe.errors import BadInput, EncoderRefused
from geoframe.numerics import training_numerics
from geoframe.training import checks, loop, scoring
from geoframe.training.cache import TrainingCache
from geoframe.training.course import Course
from geoframe.training.data import labelled
from geoframe.training.place import Place, training_on
from geoframe.training.scores import loss_and_accuracy
from tests.doubles import Norm
from tests.training.recipes import checkpoint_bytes, small, stop_at, weights, write_net
from tests.training.test_resumed_recipes import RECIPES

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
META = torch.device("meta")


@pytest.fixture
def training(tmp_path):
    return small(write_net(tmp_path).evolve(kwargs={"dropout": 0.3}), checkpoints=(2,), checkpoint_steps=(3,))


@pytest.fixture
def fake(monkeypatch):
    """A computer whose "cuda" is the CPU; gpus holds what the names of devices that are there are called."""
    gpus = {"cpu": "x86_64", "cuda": "Model A", "cuda:1": "Model A"}

    def resolve(name="auto"):
        if name not in gpus:
            raise BadInput(f"no {name}")
        return name

    monkeypatch.setattr(settings, "resolve_device", resolve)
    monkeypatch.setattr(settings, "device_name", lambda name: gpus[name])
    monkeypatch.setattr(Place, "torch", property(lambda self: torch.device("cpu")))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return gpus


def place(training):
    log = TrainingCache(training).log()
    return log["device"], log["device_name"]


def begin(training, device, monkeypatch, epoch=3):
    with monkeypatch.context() as patch:
        stop_at(patch, epoch, 2, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt), training_on(device):
            weights(training)


def test_the_device_is_the_one_that_an_encoder_is_loaded_on(training, fake, monkeypatch):
    asked = []
    real = Place.here.__func__
    monkeypatch.setattr(Place, "here", classmethod(lambda cls: asked.append(real(cls)) or asked[-1]))
    monkeypatch.setattr(gf.loaded.LoadedEncoder, "from_network", classmethod(lambda cls, built, label, device: built))
    gf.TrainedEncoder(training).load("cuda:1")
    assert [found.device for found in asked] == ["cuda:1"]
    assert place(training) == ("cuda", "Model A")
    assert Place.here().device == "cpu", "the device holds inside the loading only"


@pytest.mark.parametrize("how", ["run", "measure", "curve"])
def test_who_passes_the_device_down(training, monkeypatch, tmp_path, how):
    seen = []
    real = loop.train
    monkeypatch.setattr(loop, "train", lambda *args: seen.append(Place.here().device) or real(*args))

    class Small(gf.Study):
        encoders = (gf.TrainedEncoder(training),)
        probesets = (gf.Digits(n=2),)
        probes = (Norm(),)

    if how == "run":
        gf.run(Small, out=tmp_path / "run", device="cpu:0")
    elif how == "measure":
        gf.measure(Norm(), gf.TrainedEncoder(training), gf.Digits(n=2), device="cpu:0")
    else:
        gf.training_curve(training, device="cpu:0")
    assert seen == ["cpu:0"]
    assert place(training)[0] == "cpu"


def test_the_device_is_not_in_the_key_and_what_is_cached_counts_anywhere(training, fake, monkeypatch):
    key = training.key
    with training_on("cuda"):
        first = weights(training)
        assert training.key == key
    monkeypatch.setattr(loop, "train", None)
    assert torch.equal(weights(training), first)
    assert torch.equal(weights(training, 2), first) is False


def test_the_curve_says_where_it_was_trained(training, fake):
    curve = gf.training_curve(training, device="cuda")
    said = json.loads(curve.attrs["settings"])
    assert (said["device"], said["device_name"], said["dtype"]) == ("cuda", "Model A", "float32")
    assert gf.training_curve(training).identical(curve)


@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda:1")])
def test_an_interrupted_training_goes_on_where_it_began(training, fake, elsewhere, monkeypatch, capsys, first, then):
    weights(training)
    whole = checkpoint_bytes(training)
    elsewhere()
    begin(training, first, monkeypatch)
    begun = place(training)
    capsys.readouterr()
    with training_on(then):
        weights(training)
    assert place(training) == begun == ("cuda" if "cuda" in first else "cpu", fake[first])
    assert capsys.readouterr().err.endswith("goes on after epoch 2 of 4\n")
    assert checkpoint_bytes(training) == whole


@pytest.mark.parametrize("gone", ["none", "another model"])
def test_where_that_device_is_not_it_starts_again_and_says_so(training, fake, monkeypatch, capsys, gone):
    begin(training, "cuda", monkeypatch)
    if gone == "none":
        del fake["cuda"]
    else:
        fake["cuda"] = "Model B"
    steps, real = [], Course._step
    monkeypatch.setattr(Course, "_step", lambda self, rows, step: steps.append(step) or real(self, rows, step))
    capsys.readouterr()
    weights(training)
    said = "starts again on cpu: it was begun on cuda (Model A), which isn't here"
    assert capsys.readouterr().err == f"training net-digits: {said}\n"
    assert len(steps) == 4 * 5, "nothing of before is taken"
    assert place(training) == ("cpu", "x86_64")


def test_a_lost_checkpoint_is_made_again_where_it_was_made(training, fake):
    with training_on("cuda"):
        weights(training)
    before = checkpoint_bytes(training)
    TrainingCache(training).file(2).unlink()
    weights(training, 2)
    assert place(training) == ("cuda", "Model A")
    assert checkpoint_bytes(training) == before


def test_a_log_and_a_state_of_before_there_were_devices_are_of_the_cpu(training, monkeypatch, capsys):
    from geoframe.training import saved

    begin(training, "cpu", monkeypatch)
    cache = TrainingCache(training)
    log, state = cache.log(), saved.read_sealed(cache.resume)
    for record in (log, state["settings"]):
        del record["device"], record["device_name"]
    cache.write_log(log)
    saved.write(cache.resume, state, sealed=True)
    capsys.readouterr()
    weights(training)
    assert capsys.readouterr().err.endswith("goes on after epoch 2 of 4\n")
    cache.write_log({name: value for name, value in cache.log().items() if not name.startswith("device")})
    cache.file(2).unlink()
    others = cache.file(4).stat().st_mtime_ns
    weights(training, 2)
    assert place(training)[0] == "cpu"
    assert cache.file(4).stat().st_mtime_ns == others, "what is there stays"


@pytest.mark.parametrize("name", RECIPES)
def test_a_step_takes_place_on_the_device_alone(training, name):
    """A tensor left on the CPU is refused beside one of `meta`; the first that needs a value is the loss."""
    recipe = training.evolve(**{"checkpoint_steps": (), **RECIPES[name]})
    model = recipe.seeded_model().build_model()
    data = labelled(recipe.data, model, "t", META)
    assert {data.pixels.device.type, data.y.device.type} == {"cpu"}
    course = Course(recipe, model.module.to(META), data)
    with pytest.raises(EncoderRefused, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        course.epoch()
    assert all(parameter.device == META for parameter in model.module.parameters())


def test_the_first_forward_pass_and_the_scores_take_place_on_the_device(training):
    model = training.seeded_model().build_model()
    data = labelled(training.data, model, "t", META)
    module = model.module.to(META).eval()
    for look in (
        lambda: checks.check_trainable("t", module, data, data, 20),
        lambda: loss_and_accuracy(module, data),
    ):
        with pytest.raises(RuntimeError, match=r"Cannot copy out of meta|cannot be called on meta tensors"):
            look()


def test_scores_are_completed_where_it_was_trained(training, fake, monkeypatch):
    with training_on("cuda"):
        weights(training)
    places, real = [], scoring.training_numerics
    monkeypatch.setattr(Place, "torch", property(lambda self: places.append(self.device) or torch.device("cpu")))
    monkeypatch.setattr(scoring, "training_numerics", real)
    gf.training_curve(training)
    assert {*places} == {"cuda"}


def test_off_the_cpu_algorithms_are_deterministic_and_everything_is_put_back():
    def switches():
        cuda = torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.deterministic
        return *cuda, torch.are_deterministic_algorithms_enabled(), torch.is_grad_enabled()

    before = switches()
    with torch.no_grad(), training_numerics(torch.device("cpu")):
        assert switches() == ("ieee", before[1], False, True)
    with torch.no_grad(), training_numerics(torch.device("cuda")):
        assert switches() == ("ieee", True, True, True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert switches() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda(training, elsewhere, monkeypatch):
    with training_on("cuda"):
        whole = weights(training)
        assert place(training) == ("cuda", torch.cuda.get_device_name())
        elsewhere()
    begin(training, "cuda", monkeypatch)
    with training_on("cpu"):
        assert torch.equal(weights(training), whole), "it goes on with the same bits"
    assert gf.TrainedEncoder(training).load("cpu").logits(torch.rand(2, 1, 8, 8)).shape == (2, 10)
