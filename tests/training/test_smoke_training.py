"""What preset smoke trains: two steps on noise, offline, with all else of the recipe."""

from __future__ import annotations

import pytest
import torch

import geoframe as gf
from geoframe.models.published import cifar_model, digits_model, mnist_model
from geoframe.probesets.labelled_noise import LabelledNoise
from geoframe.training import loop
from geoframe.training.cache import TrainingCache
from geoframe.training.course import Course
from geoframe.training.published import cifar_training

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """No data, no weights, and no way to others."""
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("geoframe.encoders.weights.download", None)


def pretrained(**fields) -> gf.Training:
    model = gf.TorchvisionEncoder("shufflenet_v2_x0_5", model_kwargs={"num_classes": 10})
    data = gf.TorchvisionSet("Imagenette", split="train", download=True)
    return gf.Training(model=model, data=data, test=gf.TorchvisionSet("Imagenette"), **fields)


def test_two_steps_with_the_recipe_s_own_loss_optimiser_and_schedule(monkeypatch):
    training = cifar_training(
        "resnet20", "blur1", loss=gf.AdversarialL2(0.5, steps=2), checkpoint_steps=(1, 10), seed=3
    )
    rates, real = [], Course._set_rate
    monkeypatch.setattr(Course, "_set_rate", lambda self, step: rates.append(step) or real(self, step))
    encoder = gf.TrainedEncoder(training, at_step=10).smoke()
    network = encoder.build()
    assert rates == [0, 1]
    (row,) = TrainingCache(encoder.training).log()["checkpoints"]
    assert (row["step"], row["epoch"]) == (2, 1)
    assert row["test_loss"] is not None
    for field in ("loss", "optimiser", "lr", "momentum", "weight_decay", "schedule", "augment", "seed", "variant"):
        assert getattr(encoder.training, field) == getattr(training, field)
    initial = encoder.randomised().build()
    assert not torch.equal(network.head.weight, initial.head.weight)


def test_names_and_coordinates_stay():
    training = pretrained(epochs=5, checkpoints=(1,), variant="mine")
    for step in ("init", 1, "final"):
        encoder = gf.TrainedEncoder(training, step=step)
        smoke = encoder.smoke()
        assert smoke.label == encoder.label
        changed = {name for name, value in encoder.coords.items() if smoke.coords[name] != value}
        want = {"init": {"training"}, 1: {"step"}, "final": {"epoch", "step"}}[step]
        assert changed == want
        assert smoke.coords["dataset"] == "Imagenette"


def test_initial_weights_stay_initial_and_all_other_moments_are_the_end(monkeypatch):
    training = pretrained(epochs=5, checkpoints=(1,))
    initial, first, last = (gf.TrainedEncoder(training, step=step).smoke() for step in ("init", 1, "final"))
    assert [each.moment is None for each in (initial, first, last)] == [True, False, False]
    assert first.key == last.key
    assert last.randomised().key == initial.key, "the control of what is trained"
    monkeypatch.setattr(loop, "train", None)
    initial.build()


def test_it_trains_a_pretrained_model_without_its_weights():
    encoder = gf.TrainedEncoder(pretrained(augment="crop-flip-jitter")).smoke()
    assert encoder.build().head.weight.shape == (10, 1024)
    assert encoder.training.model.weights is None


def test_a_random_copy_of_a_pretrained_model_needs_no_weights():
    training = pretrained()
    encoder = gf.TrainedEncoder(training)
    copy = encoder.randomised()
    assert copy.label == encoder.label == "shufflenet_v2_x0_5-imagenette"
    assert copy.coords["training"] == "random"
    copy.build()
    initial = gf.TrainedEncoder(training, step="init")
    assert initial.label == "shufflenet_v2_x0_5-imagenette-init"
    assert initial.coords["training"] == "imagenet"
    assert initial.key != copy.key
    assert initial.randomised().key == copy.key


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("training", ["random", None, "synthetic images"])
def test_the_random_copy_of_other_models_is_their_initial_weights(training, seed):
    model = mnist_model("mlp").evolve(training=training)
    encoder = gf.TrainedEncoder(gf.Training(model=model, data=gf.TorchvisionSet("MNIST", split="train"), seed=seed))
    initial = encoder.evolve(step="init")
    assert encoder.randomised().key == initial.key
    assert initial.coords["training"] == (training or "random")
    assert initial.label.endswith("-init" if training == "synthetic images" else "-random")


def test_noise_in_place_of_a_set():
    crops = gf.PhotoCrops(split="train", n=900)
    noise = LabelledNoise.in_place_of(crops)
    assert (noise.label, noise.coords, noise.classes()) == (crops.label, crops.coords, 6)
    images = noise.load((2, 5, 7))
    assert images.pixels.shape == (4, 2, 5, 7)
    assert images.labels == (0, 1, 2, 3)
    assert images.pixels[0].std() > 0.2
    assert not torch.equal(images.pixels, LabelledNoise.in_place_of(crops, seed=1).load((2, 5, 7)).pixels)
    assert len(noise.smoke().load((1, 2, 2))) == 1
    unknown = gf.Digits(split="train", n=100)
    assert LabelledNoise.in_place_of(unknown).load((1, 4, 4)).labels == (0, 1, 0, 1)


MODELS = {
    "8×8": digits_model("mlp"),
    "28×28": mnist_model("cnn"),
    "32×32 in colour": cifar_model("resnet20", width=0.5),
    "32×32 in colour, 100 classes": cifar_model("cnn", classes=100),
    "other than square": gf.FactoryEncoder(
        "geoframe.models.small:mlp", kwargs={"inputs": 60, "widths": (8,)}, input_shape=(1, 6, 10)
    ),
    "224×224 in colour, 1000 classes": gf.TorchvisionEncoder("shufflenet_v2_x0_5"),
}
QUICK = ("8×8", "28×28", "other than square")  # to find all singular values
PROBES = (
    gf.RayCoverageProbe(), gf.RayCoverageProbe(classes="different"), gf.TubeProbe(), gf.TrajectoryProbe(),
    gf.AlignmentProbe(vectors="difference"),
)  # fmt: skip


@pytest.mark.parametrize("step", ["final", "init"])
@pytest.mark.parametrize("name", MODELS)
def test_probes_with_a_reference_take_digits_whatever_the_models_shape(name, step):
    training = gf.Training(model=MODELS[name], data=gf.TorchvisionSet("MNIST", split="train"))
    encoder = gf.TrainedEncoder(training, step=step).smoke()
    for probe in PROBES[: None if name in QUICK else -1]:
        ds = gf.measure(probe.smoke(), encoder, gf.TorchvisionSet("MNIST", n=100).smoke(), device="cpu")
        assert ds.sizes["image"] == 1


def test_labels_that_are_no_classes_of_the_model_are_refused_as_they_are_without_smoke():
    training = gf.Training(model=mnist_model("mlp", classes=2), data=gf.TorchvisionSet("MNIST", split="train"))
    with pytest.raises(gf.BadInput, match="'mnist-train' has labels up to 3, so the model needs 4 classes"):
        gf.TrainedEncoder(training).smoke().build()
