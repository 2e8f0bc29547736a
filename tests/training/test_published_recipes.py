"""The published recipes: which images, which labels, which moments."""

from __future__ import annotations

import pytest

import geoframe as gf
from geoframe.errors import UnknownName
from geoframe.training.published import adversarial_family, cifar_training, photo_training, through_training


def test_the_paper_has_39100_steps_and_augments_natural_images_only():
    trainings = {name: cifar_training("resnet18", name) for name in gf.cifar_training_sets()}
    assert {training.steps for training in trainings.values()} == {39100}
    augmented = {name for name, training in trainings.items() if training.augment}
    assert augmented == {"clean", "blur1", "blur2"}
    assert [training.variant for training in trainings.values()] == ["", *list(trainings)[1:]]
    assert len({training.key for training in trainings.values()}) == 5


def test_through_training_begins_with_initial_weights_and_ends_trained():
    recipe = photo_training("resnet18", width=0.125, n=64, epochs=2, checkpoint_steps=(2,))
    encoders = through_training(recipe, (0, 1, 3, 4))
    assert [encoder.steps for encoder in encoders] == [0, 1, 3, 4]
    assert encoders[-1].label == "resnet18-photo-crops"
    assert {encoder.training.checkpoint_steps for encoder in encoders} == {(1, 2, 3)}
    assert len({encoder.training.key for encoder in encoders}) == 1


def test_photo_treatments_change_the_images_or_their_labels():
    clean, permuted, blurred = (photo_training("resnet18", t, n=12).data for t in ("clean", "random-labels", "blur1"))
    assert permuted.listing().ids == clean.listing().ids == blurred.listing().ids
    assert permuted.listing().labels != clean.listing().labels == blurred.listing().labels
    assert photo_training("resnet18", "random-data").coords["variant"] == "random-data"
    assert photo_training("resnet18", "random-labels", variant="mine").variant == "mine"


@pytest.mark.parametrize("make", [cifar_training, photo_training])
def test_an_unknown_treatment_is_refused(make):
    with pytest.raises(UnknownName, match="random-label"):
        make("resnet18", "random-label")


def test_a_family_differs_in_its_loss_only_and_its_first_is_plain_training():
    recipe = photo_training("resnet18", width=0.125, n=64)
    plain, small, large = adversarial_family(recipe, (0, 0.25, 1), steps=3)
    names = [f"resnet18-photo-crops-eps{e}" for e in ("0", "0.25", "1")]
    assert [encoder.label for encoder in (plain, small, large)] == names
    assert [encoder.training.label for encoder in (plain, small, large)] == names
    assert [encoder.coords["epsilon"] for encoder in (plain, small, large)] == [0.0, 0.25, 1.0]
    assert {encoder.training.loss.steps for encoder in (plain, small, large)} == {3}
    assert {encoder.training.evolve(loss=recipe.loss).key for encoder in (plain, small, large)} == {recipe.key}
