"""The trainings of Neural Expansion (A.2, A.3), and small ones that a CPU does offline. Imports no torch."""

from __future__ import annotations

from typing import Any

from geoframe.models.published import digits_model, mnist_model
from geoframe.probesets.digits import Digits
from geoframe.probesets.torchvision import TorchvisionSet
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.recipe import Training


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


def trained_and_random(*trainings: Training) -> tuple[TrainedEncoder, ...]:
    """Return the network of each training, trained, and with its initial weights."""
    return tuple(TrainedEncoder(training, step=step) for training in trainings for step in ("final", "init"))
