"""Whatever the recipe, a training interrupted in any epoch ends with the bits of one that wasn't."""

from __future__ import annotations

import pytest
import torch

import geoframe as gf
from geoframe.training.losses import AdversarialL2
from tests.training.recipes import checkpoint_bytes, digests, small, stop_at, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

RECIPES = {
    "sgd": {"weight_decay": 0.01},
    "adam": {"optimiser": "adam", "momentum": 0.0, "lr": 0.01},
    "rmsprop": {"optimiser": "rmsprop", "lr": 0.001},
    "cosine": {"schedule": "cosine"},
    "crop-flip": {"augment": "crop-flip"},
    "crop-flip-jitter": {"augment": "crop-flip-jitter"},
    "steps": {"checkpoint_steps": (1, 4, 5, 9, 12), "batch": 10},
    "adversarial": {"loss": AdversarialL2(0.5, steps=2)},
    "everything": {
        "optimiser": "adam",
        "momentum": 0.0,
        "lr": 0.01,
        "schedule": "cosine",
        "augment": "crop-flip",
        "loss": AdversarialL2(0.5, steps=2),
        "checkpoint_steps": (2, 5, 12),
    },
}


@pytest.fixture
def model(tmp_path):
    return write_net(tmp_path).evolve(kwargs={"dropout": 0.3})


def recipe(model, name: str) -> gf.Training:
    return small(model, checkpoints=(2,), data=gf.Digits(split="train", n=50), **RECIPES[name])


@pytest.mark.parametrize("name", RECIPES)
def test_an_interrupted_training_goes_on_to_the_same_bits(model, name, elsewhere, monkeypatch):
    training = recipe(model, name)
    weights(training)
    whole, named = checkpoint_bytes(training), digests(training)
    for epoch in (1, 2, 3, 4):
        elsewhere()
        with monkeypatch.context() as patch:
            stop_at(patch, epoch, 2, KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt):
                weights(training)
        torch.manual_seed(epoch)
        weights(training)
        assert checkpoint_bytes(training) == whole
        assert digests(training) == named


def test_every_recipe_gives_other_weights(model):
    found = [weights(recipe(model, name)) for name in RECIPES]
    assert all(not torch.equal(a, b) for i, a in enumerate(found) for b in found[:i])


def test_a_recipe_that_says_nothing_new_has_the_key_it_always_had(model):
    fields = set(recipe(model, "sgd").identity()["fields"])
    assert fields == {
        "model", "data", "optimiser", "lr", "momentum", "weight_decay", "batch", "epochs", "seed", "checkpoints",
    }  # fmt: skip
    assert len({recipe(model, name).key for name in RECIPES}) == len(RECIPES)
    assert recipe(model, "sgd").evolve(variant="mine").key == recipe(model, "sgd").key


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "70919943a5f76cb8cc5422455a9a76de"),
        ({"checkpoints": (1, 2)}, "6745b645aa7e1065f12ef0141a6f742e"),
        ({"checkpoints": (2, 4)}, "193fa9bb24468e88853bffc560f5b8d5"),  # the last epoch: named in many caches
        ({"checkpoint_steps": (1, 7)}, "9238c3eac3a7bfe8397a830c3570290e"),
    ],
)
def test_keys_that_caches_have_stay(changes, key):
    model = gf.FactoryEncoder("geoframe.models.small:mlp", kwargs={"inputs": 64}, input_shape=(1, 8, 8))
    assert small(model, **changes).key == key


def test_what_changes_no_weights_is_not_in_the_key(model):
    training = small(model, checkpoints=(1, 2), checkpoint_steps=(1, 7))
    for same in ({"checkpoints": (2, 1)}, {"checkpoints": (1, 2, 1)}, {"checkpoint_steps": (7, 1, 7)}):
        assert training.evolve(**same).key == training.key
    other = training.evolve(model=model.evolve(seed=5))
    assert other.key == training.key
    assert gf.TrainedEncoder(other).key == gf.TrainedEncoder(training).key
    assert len({training.key, training.evolve(seed=5).key, training.evolve(checkpoints=(1,)).key}) == 3


def test_a_model_s_own_seed_changes_no_weights(model, elsewhere):
    first = weights(small(model))
    elsewhere()
    assert torch.equal(weights(small(model.evolve(seed=5))), first)


def test_the_order_of_the_data_is_the_same_with_and_without_augmentation(model, monkeypatch):
    from geoframe.training.course import Course

    orders, real = [], Course._images
    monkeypatch.setattr(Course, "_images", lambda self, rows: orders.append(rows.tolist()) or real(self, rows))
    weights(recipe(model, "sgd"))
    weights(recipe(model, "everything"))
    assert orders[: len(orders) // 2] == orders[len(orders) // 2 :]


def test_a_state_of_before_there_were_augmentations_is_taken(model, elsewhere, monkeypatch):
    from geoframe.training import saved
    from geoframe.training.cache import TrainingCache

    training = recipe(model, "sgd")
    first = weights(training)
    elsewhere()
    stop_at(monkeypatch, 3, 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        weights(training)
    place = TrainingCache(training).resume
    state = saved.read_sealed(place)
    del state["course"]["augment"], state["course"]["loss"]
    saved.write(place, state, sealed=True)
    assert torch.equal(weights(training), first)
    assert not place.exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimiser": "adm"}, "no optimiser 'adm'; did you mean 'adam'"),
        ({"optimiser": "adam"}, "Adam has no momentum, but momentum=0.9"),
        ({"schedule": "cosin"}, "no schedule 'cosin'; did you mean 'cosine'"),
        ({"schedule": None}, "no schedule None"),
        ({"augment": "crop"}, "no augment 'crop'; did you mean 'crop-flip'"),
        ({"augment": True}, "no augment True"),
        ({"variant": 3}, "variant=3 should be text"),
    ],
)
def test_bad_fields(model, changes, said):
    with pytest.raises(gf.BadInput, match=said) as error:
        small(model, **changes)
    assert "\n" not in str(error.value)
