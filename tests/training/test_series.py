"""Many encoders of few trainings."""

from __future__ import annotations

import pytest

import geoframe as gf
from geoframe.training.published import digits_training
from geoframe.training.series import all_checkpoints, over_optimisers, over_seeds

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


def test_all_checkpoints_of_each_training():
    found = all_checkpoints(*over_seeds(digits_training("mlp", epochs=4, checkpoints=(1, 2)), (0, 7)))
    assert [encoder.label for encoder in found[:4]] == [
        "mlp-digits-seed0-random",
        "mlp-digits-seed0-epoch1",
        "mlp-digits-seed0-epoch2",
        "mlp-digits-seed0",
    ]
    assert [encoder.epoch for encoder in found] == [0, 1, 2, 4] * 2
    assert [encoder.training.seed for encoder in found] == [0] * 4 + [7] * 4
    assert found[3].key == gf.TrainedEncoder(digits_training("mlp", epochs=4, checkpoints=(1, 2))).key


def test_optimisers_at_their_own_rate():
    base = digits_training("mlp")
    adam, rmsprop = over_optimisers(base, "adam", "rmsprop", lr=1e-3)
    assert [training.label for training in (adam, rmsprop)] == ["mlp-digits-adam", "mlp-digits-rmsprop"]
    assert [training.optimiser for training in (adam, rmsprop)] == ["adam", "rmsprop"]
    assert adam.lr == 1e-3
    assert over_optimisers(base, "adam")[0].lr == base.lr
    assert over_optimisers(base, "sgd")[0].key == base.key, "a name for SGD changes no numbers"
