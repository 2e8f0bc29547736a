"""The states of networks over training, for several recipes and seeds. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from geoframe.training.encoder import TrainedEncoder
from geoframe.training.recipe import Training


def network_states(*trainings: Training, seeds: Iterable[int], early: int) -> tuple[TrainedEncoder, ...]:
    """Return each recipe's network after an early epoch and trained, for each seed; initial weights once a seed.

    Recipes of one model have the same initial weights, whatever they are trained on: those of the first one stand for
    all. Names are like resnet18-cifar10-seed0-early.

    Parameters
    ----------
    *trainings : Training
        Recipes of one model: true labels and random ones, say. Their seed is replaced.
    seeds : iterable of int
    early : int
        Epoch that is kept, beside the last.
    """
    found = []
    for seed in seeds:
        for place, training in enumerate(trainings):
            recipe = training.evolve(seed=seed, checkpoints=(early,), name=f"{training.label}-seed{seed}")
            steps: dict[str, str | int] = {"init": "init", "early": early, "late": "final"}
            found += [
                TrainedEncoder(recipe, step=step, name=f"{recipe.label}-{state}")
                for state, step in steps.items()
                if state != "init" or not place
            ]
    return tuple(found)
