"""The arms of two experiments of Neural Expansion: which losses, labels, seeds, names."""

from __future__ import annotations

from collections import Counter

import pytest

import geoframe as gf
from geoframe.plan import belong_together
from geoframe.training.arms import intervention_arms, labelled_arms
from geoframe.training.published import digits_training, mnist_training

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


def test_interventions_are_three_losses_by_seeds_by_epochs():
    arms = intervention_arms(digits_training("mlp", epochs=3), weight=0.2, margin=2, epsilon=0.3)
    assert len({arm.label for arm in arms}) == len({arm.key for arm in arms}) == 27
    assert Counter(arm.coords["variant"] for arm in arms) == dict.fromkeys(("control", "expand", "restrict"), 9)
    assert {(arm.coords["seed"], arm.coords["epoch"]) for arm in arms} == {(s, e) for s in range(3) for e in (1, 2, 3)}
    losses = {arm.coords["variant"]: arm.training.loss for arm in arms}
    assert isinstance(losses["control"], gf.CrossEntropy)
    settings = {"weight": 0.2, "margin": 2, "epsilon": 0.3}
    assert losses["expand"].key == gf.Expand(**settings).key
    assert losses["restrict"].key == gf.Restrict(**settings).key
    assert len({arm.training.key for arm in arms}) == 9, "the epochs of an arm and seed are one training"


def test_interventions_at_some_epochs():
    arms = intervention_arms(digits_training("mlp", epochs=8), seeds=2, epochs=(1, 8))
    assert len(arms) == 12
    assert arms[0].label == "mlp-digits-control-seed0-epoch1"


def test_random_labels_and_the_sets_that_they_are_tested_on():
    training = mnist_training("mlp")
    arms = labelled_arms(training, gf.Subset(training.data, 50), training.test)
    true, ten, hundred = arms
    assert [arm.label for arm in arms] == ["mlp-mnist-true", "mlp-mnist-random10", "mlp-mnist-random100"]
    assert [arm.training.data.coords.get("labelling") for arm in arms] == [None, "random-10", "random-100"]
    assert [arm.coords["labelling"] for arm in arms] == ["true", "true", "random-100"]
    assert hundred.training.model.kwargs["classes"] == 100
    tests = gf.TrueLabels(gf.TorchvisionSet("MNIST", n=9)), gf.RandomLabels(gf.TorchvisionSet("MNIST", n=9), 100)
    assert [[belong_together(arm, test, "labelling") for test in tests] for arm in (true, ten, hundred)] == [
        [True, False],
        [True, False],
        [False, True],
    ]


def test_an_encoder_whose_test_set_says_nothing_of_its_labels_has_no_such_coordinate():
    assert "labelling" not in gf.TrainedEncoder(digits_training("mlp")).coords
    assert "labelling" not in gf.TrainedEncoder(digits_training("mlp").evolve(test=None)).coords


def test_training_and_test_images_have_labels_of_their_own():
    arms = labelled_arms(digits_training("mlp"), gf.Digits(split="train"), gf.Digits())
    labels = [(arm.training.data.listing().labels, arm.training.test.listing().labels) for arm in arms]
    assert labels[0][1] == labels[1][1] == gf.Digits().listing().labels
    assert [len(set(data)) for data, _ in labels] == [10, 10, 100]
    assert len(set(labels[2][1])) > 90
    agree = sum(a == b for a, b in zip(labels[0][0], labels[1][0], strict=True)) / len(labels[0][0])
    assert agree == pytest.approx(0.1, abs=0.04)
