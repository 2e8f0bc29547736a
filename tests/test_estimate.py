from __future__ import annotations

import pytest

from geoframe import estimate
from geoframe.encoder import Encoder
from geoframe.encoders.factory import FactoryEncoder
from geoframe.estimate import Estimator, readable_time
from tests.doubles import BrokenEncoder, TinyEncoder


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
