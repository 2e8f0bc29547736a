"""Many encoders of few trainings: every checkpoint, several seeds, several optimisers. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from geoframe.training.encoder import TrainedEncoder
from geoframe.training.recipe import Training


def all_checkpoints(*trainings: Training) -> tuple[TrainedEncoder, ...]:
    """Return the network of each training with its initial weights and at every kept epoch, in that order."""
    steps: dict[Training, tuple[int | str, ...]] = {one: ("init", *one.kept[:-1], "final") for one in trainings}
    return tuple(TrainedEncoder(training, step=step) for training, when in steps.items() for step in when)


def over_seeds(training: Training, seeds: Iterable[int]) -> tuple[Training, ...]:
    """Return one training a seed, each named by it: mlp-mnist-seed0 …"""
    return tuple(training.evolve(seed=seed, name=f"{training.label}-seed{seed}") for seed in seeds)


def over_optimisers(training: Training, *optimisers: str, lr: float | None = None) -> tuple[Training, ...]:
    """Return one training an optimiser, each named by it: mlp-mnist-adam …

    Parameters
    ----------
    training : Training
        The recipe; its optimiser is replaced.
    *optimisers : str
        "sgd", "adam", "rmsprop".
    lr : float or None
        Their learning rate; None keeps the recipe's.
    """
    rate = training.lr if lr is None else lr
    return tuple(training.evolve(optimiser=name, lr=rate, variant=name) for name in optimisers)
