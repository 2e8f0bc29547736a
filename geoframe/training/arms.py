"""The encoders of *Neural Expansion*'s two experiments on training: interventions (§5.2), random labels (I.1).

Imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geoframe.models.published import digits_model, mnist_model
from geoframe.probeset import ProbeSet
from geoframe.probesets.relabelled import RandomLabels
from geoframe.probesets.true_labels import TrueLabels
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.losses import CrossEntropy, LossSpec
from geoframe.training.margin_losses import Expand, Restrict
from geoframe.training.recipe import Training


def intervention_arms(
    training: Training,
    *,
    seeds: int = 3,
    epochs: Iterable[int] | None = None,
    weight: float = 0.25,
    margin: float = 1.0,
    epsilon: float = 1.0,
) -> tuple[TrainedEncoder, ...]:
    """Return the networks of H.2: three losses, so many seeds, at several epochs.

    Of one seed, the three start with the same weights and see the images in the same order.

    Parameters
    ----------
    training : Training
        The control's recipe.
    seeds : int
        How many; the paper's three. They are 0, 1, ….
    epochs : iterable of int, optional
        When they are measured; default: after each epoch, as in H.3.
    weight, margin, epsilon : float
        λ, τ and ε of the other two arms; ours, see `PerturbedMargin`.
    """
    logged = tuple(range(1, training.epochs + 1) if epochs is None else epochs)
    losses: dict[str, LossSpec] = {
        "control": CrossEntropy(),
        "expand": Expand(weight=weight, margin=margin, epsilon=epsilon),
        "restrict": Restrict(weight=weight, margin=margin, epsilon=epsilon),
    }
    return tuple(
        TrainedEncoder(_arm(training, arm, loss, seed, logged), step=epoch)
        for arm, loss in losses.items()
        for seed in range(seeds)
        for epoch in logged
    )


def _arm(training: Training, arm: str, loss: LossSpec, seed: int, logged: tuple[int, ...]) -> Training:
    name = f"{training.architecture}-{training.dataset.lower()}-{arm}-seed{seed}"
    return training.evolve(loss=loss, seed=seed, checkpoints=logged, variant=arm, name=name)


def labelled_arms(training: Training, data: ProbeSet, test: ProbeSet) -> tuple[TrainedEncoder, ...]:
    """Return the multi-layer perceptrons of I.1: true labels, RANDOM-10 and RANDOM-100.

    RANDOM-10 is tested on the true labels; RANDOM-100 has 100 logits, and labels drawn for the test images too.

    Parameters
    ----------
    training : Training
        The recipe of an "mlp" on digits or MNIST; its data and test set are replaced.
    data, test : ProbeSet
        Training and test images under their true labels.
    """
    model = digits_model if training.dataset == "digits" else mnist_model
    true = TrueLabels(test)
    arms: dict[str, dict[str, Any]] = {
        "true": {"data": data, "test": true},
        "random10": {"data": RandomLabels(data, 10), "test": true},
        "random100": {
            "data": RandomLabels(data, 100),
            "test": RandomLabels(test, 100),
            "model": model("mlp", classes=100),
        },
    }
    return tuple(TrainedEncoder(training.evolve(variant=variant, **changes)) for variant, changes in arms.items())
