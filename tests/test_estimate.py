from __future__ import annotations

import pytest

import geoframe as gf
from geoframe import estimate
from geoframe.encoder import Encoder
from geoframe.encoders.factory import FactoryEncoder
from geoframe.estimate import Estimator, readable_time
from geoframe.plan import Cell
from geoframe.training import timing
from geoframe.training.published import digits_training, photo_training
from tests.doubles import BrokenEncoder, Dots, Norm, TinyEncoder


@pytest.fixture
def timed(monkeypatch):
    """Estimator for which every pass takes 2 s, and the encoders that it timed."""
    seen = []
    monkeypatch.setattr(estimate, "seconds_per_pass", lambda encoder, device: seen.append(encoder.label) or 2.0)
    return Estimator("cpu"), seen


def test_each_architecture_is_timed_once(timed):
    estimator, seen = timed
    assert estimator.seconds(TinyEncoder(name="a", training="long"), 10) == 20
    assert estimator.seconds(TinyEncoder(name="b", training="short"), 5) == 10
    assert seen == ["a"]
    assert estimator.seconds(TinyEncoder(name="c", width=9), 1) == 2
    assert seen == ["a", "c"]


def test_what_might_need_a_download_is_not_built(timed):
    estimator, seen = timed
    assert estimator.seconds(Encoder(name="x"), 10) is None
    assert estimator.seconds(TinyEncoder(), None) is None
    assert estimator.seconds(Encoder(name="x"), 0) == 0
    assert seen == []
    assert "no copy with random weights" in estimator.reasons["x"]


def test_passes_of_attacks_are_priced_by_an_attack(timed, monkeypatch):
    estimator, _ = timed
    monkeypatch.setattr(estimate, "seconds_per_attack_pass", lambda encoder, attack, device: 100.0)
    probe = gf.RayCoverageProbe(attack=gf.PGD(steps=5), n_reference=2)
    cell = Cell(TinyEncoder(name="a"), Dots(), probe)
    attacking = 3 * 5
    assert estimator.cell_seconds(cell, 2 * cell.passes(1)) == 2 * (100 * attacking + 2 * (cell.passes(1) - attacking))
    assert estimator.cell_seconds(cell, 0) == 0
    plain = Cell(TinyEncoder(name="a"), Dots(), Norm())
    assert estimator.cell_seconds(plain, 7) == 14


def test_an_attack_is_timed():
    pytest.importorskip("foolbox", reason="attacks need foolbox: pip install 'geoframe[attacks]'")
    encoder = gf.TrainedEncoder(digits_training("mlp"))
    per_pass = estimate.seconds_per_attack_pass(encoder.for_timing(), gf.CarliniWagner(), "cpu")
    assert 0 < per_pass < 1


def test_after_the_budget_nothing_more_is_timed(timed, monkeypatch):
    monkeypatch.setattr(estimate, "BUDGET", -1.0)
    estimator = Estimator("cpu")
    assert estimator.seconds(TinyEncoder(name="a"), 10) is None
    assert estimator.reasons["a"] == "timing the others took more than -1 s"


def test_an_encoder_that_cannot_be_built_is_not_calibrated():
    estimator = Estimator("cpu")
    assert estimator.seconds(BrokenEncoder(name="b"), 10) is None
    assert estimator.reasons == {"b": "RuntimeError: weights went missing"}


def test_what_a_function_of_the_user_builds_is_timed():
    kwargs = {"inputs": 16, "widths": (4,)}
    encoder = FactoryEncoder("geoframe.models.small:mlp", kwargs=kwargs, input_shape=(1, 4, 4))
    estimator = Estimator("cpu")
    assert 0 < estimator.seconds(encoder, 1) < 1
    assert estimator.reasons == {}
    broken = encoder.evolve(factory="geoframe.models.small:mpl", name="typo")
    assert estimator.seconds(broken, 1) is None
    assert "no function 'mpl'; did you mean 'mlp'" in estimator.reasons["typo"]


def test_a_real_calibration_is_positive_and_small():
    assert 0 < Estimator("cpu").seconds(TinyEncoder(), 1) < 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.9, "9.9 s"), (35, "35 s"), (720, "12 min"), (12600, "3.5 h"), (181440, "2.1 days")],
)
def test_readable_times(seconds, text):
    assert readable_time(seconds) == text


def test_trainings_that_differ_in_nothing_that_takes_time_are_timed_once(monkeypatch):
    seen = []
    monkeypatch.setattr(timing, "seconds_per_step", lambda training, device: seen.append(training.label) or 2.0)
    estimator = Estimator("cpu")
    training = digits_training("mlp", epochs=3)
    assert estimator.training_seconds(training) == 2 * 3 * 38
    assert estimator.training_seconds(training.evolve(seed=4, epochs=1, lr=0.1, checkpoint_steps=(7,))) == 2 * 38
    assert len(seen) == 1
    estimator.training_seconds(training.evolve(optimiser="adam"))
    estimator.training_seconds(training.evolve(batch=16))
    assert len(seen) == 3


def test_a_step_is_timed_without_data_or_weights(monkeypatch, tmp_path):
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    monkeypatch.setattr("geoframe.encoders.weights.download", None)
    model = gf.TorchvisionEncoder("shufflenet_v2_x0_5", model_kwargs={"num_classes": 10}, input_shape=(3, 32, 32))
    training = gf.Training(model=model, data=gf.TorchvisionSet("CIFAR10", split="train"), batch=16, augment="crop-flip")
    assert 0 < Estimator("cpu").training_seconds(training) < 1e6
    unknown = training.evolve(data=gf.ImageFolder("nowhere"))
    assert Estimator("cpu").training_seconds(unknown) is None
    broken = training.evolve(model=gf.FactoryEncoder("geoframe.models.small:mpl", input_shape=(1, 8, 8)))
    assert Estimator("cpu").training_seconds(broken) is None


def test_a_long_step_is_timed_on_few_images_once(monkeypatch):
    sizes, real = [], timing._timed
    monkeypatch.setattr(timing, "_timed", lambda training, n, device: sizes.append(n) or real(training, n, device))
    training = photo_training("resnet18", n=64, width=0.125)
    monkeypatch.setattr(timing, "LONG", 0.0)
    assert timing.seconds_per_step(training, "cpu") > 0
    monkeypatch.setattr(timing, "LONG", 1e9)
    assert timing.seconds_per_step(training, "cpu") > 0
    assert sizes == [8, 8, 32]
