"""The trainings of both papers, and small ones that a CPU does offline. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geoframe.encoders.factory import FactoryEncoder
from geoframe.errors import UnknownName, did_you_mean
from geoframe.models.published import CIFAR_MEAN, CIFAR_STD, cifar_model, digits_model, mnist_model
from geoframe.probeset import ProbeSet
from geoframe.probesets.cifar import cifar10
from geoframe.probesets.crops import PhotoCrops
from geoframe.probesets.digits import Digits
from geoframe.probesets.published import cifar_training_sets, treated
from geoframe.probesets.torchvision import TorchvisionSet
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.losses import AdversarialL2
from geoframe.training.recipe import Training

UNAUGMENTED = ("random-labels", "random-data")
_SGD: dict[str, Any] = {
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "schedule": "cosine",
    "batch": 128,
    "epochs": 100,
}


def mnist_training(architecture: str, dataset: str = "MNIST", *, epochs: int = 30, **changes: Any) -> Training:
    """A.3: 30 epochs of SGD at 1e-2 without momentum or decay, inputs to [-1, 1]; batches of 64 are ours.

    Parameters
    ----------
    architecture : str
        "mlp" (784–1024–512–10, A.2), "cnn" (ours) or "vit" (patches of 7×7, 64 dimensions, A.2; the rest is ours).
    dataset : str
        MNIST or FashionMNIST.
    epochs : int
    **changes
        Other fields of `Training`.
    """
    return Training(
        model=mnist_model(architecture),
        data=TorchvisionSet(dataset, split="train"),
        test=TorchvisionSet(dataset),
        epochs=epochs,
        **changes,
    )


def digits_training(architecture: str, *, epochs: int = 40, **changes: Any) -> Training:
    """Ours, for runs offline: 1197 digits of 8×8, smaller networks, batches of 32, learning rate 0.05."""
    return Training(
        model=digits_model(architecture),
        data=Digits(split="train"),
        test=Digits(),
        epochs=epochs,
        **{"lr": 0.05, "batch": 32, **changes},
    )


def cifar_training(
    architecture: str,
    treatment: str = "clean",
    *,
    width: float = 1,
    n: int | None = None,
    stand_in: bool = False,
    **changes: Any,
) -> Training:
    """*Beyond Local Linearity*, A.2: SGD with momentum 0.9, decay 5e-4, batches of 128, 0.1 with cosine, 100 epochs.

    With random crops and flips, but for random labels and random data. The normalisation (that of CIFAR-10) is ours.

    Parameters
    ----------
    architecture : str
        "resnet18", "vgg16", "wrn28_10" of that paper; others of `cifar_model`.
    treatment : str
        "clean", "random-labels", "random-data", "blur1" or "blur2": see `cifar_training_sets`.
    width : float
        Factor of the network's channels; 1 is the published one.
    n : int or None
        So many training images, drawn, the same ones for every treatment; None takes all.
    stand_in : bool
        Whether the JPEG copy may take the place of CIFAR-10: see `cifar10`.
    **changes
        Other fields of `Training`.
    """
    augment = None if treatment in UNAUGMENTED else "crop-flip"
    return Training(
        model=_narrowed(architecture, width),
        data=_chosen(cifar_training_sets(n=n, stand_in=stand_in), treatment),
        test=cifar10("test", stand_in=stand_in),
        **{**_SGD, "variant": _variant(treatment), "augment": augment, **changes},
    )


def photo_training(
    architecture: str,
    treatment: str = "clean",
    *,
    n: int = 900,
    width: float = 0.5,
    data: ProbeSet | None = None,
    **changes: Any,
) -> Training:
    """Ours, for runs offline: 32×32 crops of six embedded photographs, six classes, a narrow network, 10 epochs.

    Parameters
    ----------
    architecture : str
        One of `cifar_model`.
    treatment : str
        What is made of the crops: as of `cifar_training`, here all without augmentation.
    n : int
        How many crops to train on.
    width : float
        Factor of the network's channels.
    data : ProbeSet or None
        Instead of the crops: those with other labels, say; of up to ten classes.
    **changes
        Other fields of `Training`.
    """
    crops = PhotoCrops(split="train", n=n)
    return Training(
        model=_narrowed(architecture, width, **({} if data else {"classes": crops.classes()})),
        data=_chosen(treated(data or crops), treatment),
        test=PhotoCrops(n=300),
        **{**_SGD, "variant": _variant(treatment), "lr": 0.05, "batch": 32, "epochs": 10, **changes},
    )


def _chosen(sets: dict[str, ProbeSet], treatment: str) -> ProbeSet:
    if treatment not in sets:
        raise UnknownName(f"no treatment {treatment!r} of training images{did_you_mean(treatment, sets)}")
    return sets[treatment]


def _variant(treatment: str) -> str:
    return "" if treatment == "clean" else treatment


def _narrowed(architecture: str, width: float, **kwargs: Any) -> FactoryEncoder:
    narrower = {} if width == 1 else {"width": width}
    return cifar_model(architecture, mean=CIFAR_MEAN, std=CIFAR_STD, **narrower, **kwargs)


def trained_and_random(*trainings: Training) -> tuple[TrainedEncoder, ...]:
    """Return the network of each training, trained, and with its initial weights."""
    return tuple(TrainedEncoder(training, step=step) for training in trainings for step in ("final", "init"))


def through_training(training: Training, steps: Iterable[int]) -> tuple[TrainedEncoder, ...]:
    """Return a training's network with its initial weights, after some optimiser steps, and trained.

    The steps are kept as checkpoints; the last one of the training needn't be named.
    """
    steps = sorted({*steps} - {0, training.steps})
    recipe = training.evolve(checkpoint_steps=tuple(sorted({*training.checkpoint_steps, *steps})))
    within = (TrainedEncoder(recipe, at_step=step) for step in steps)
    return TrainedEncoder(recipe, step="init"), *within, TrainedEncoder(recipe)


def adversarial_family(training: Training, epsilons: Iterable[float], *, steps: int = 7) -> tuple[TrainedEncoder, ...]:
    """Return a recipe's network trained adversarially within each of some L2 balls: …-eps0.25; ε = 0 is plain training.

    Parameters
    ----------
    training : Training
        The recipe; its loss is replaced.
    epsilons : iterable of float
        Radii, in raw [0, 1] pixels.
    steps : int
        Of the attack, see `AdversarialL2`.
    """
    return tuple(
        TrainedEncoder(
            training.evolve(loss=AdversarialL2(epsilon, steps=steps), name=f"{training.label}-eps{epsilon:g}")
        )
        for epsilon in epsilons
    )
