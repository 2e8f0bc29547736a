"""How long trainings take: their steps, times the seconds of one, timed on noise: without data and download."""

from __future__ import annotations

import time

import torch

from geoframe.encoders.building import clean_build
from geoframe.numerics import training_numerics
from geoframe.probesets.labelled_noise import LabelledNoise
from geoframe.training.course import Course
from geoframe.training.data import labelled
from geoframe.training.recipe import Training

FEW = 8  # images of the first step that is timed
LONG = 1.0  # seconds of it from which on a whole batch isn't tried


def seconds_per_step(training: Training, device: str) -> float:
    """Time an optimiser step with all that belongs to it: augmentation, loss (an attack, say), forward, backward."""
    few = min(FEW, training.batch)
    took = _timed(training, few, torch.device(device))
    if few == training.batch or took > LONG:
        return took * training.batch / few
    return _timed(training, training.batch, torch.device(device))


def alike(training: Training) -> str:
    """Return what is the same for trainings whose steps take the same time."""
    return _on_noise(training, training.batch).evolve(seed=0, lr=1.0, weight_decay=0.0).key


def _on_noise(training: Training, n: int) -> Training:
    data = LabelledNoise.in_place_of(training.data).evolve(n=n)
    return training.randomised().evolve(data=data, batch=n, epochs=1, checkpoints=(), checkpoint_steps=())


def _timed(training: Training, n: int, device: torch.device) -> float:
    """Time a step on n images, the second one unless the first took long."""
    recipe = _on_noise(training, n)
    with training_numerics(device), clean_build(recipe.seed):
        model = recipe.seeded_model().build_model()
        module = model.module.float().to(device)
        course = Course(recipe, module, labelled(recipe.data, model, recipe.label, device))
        for _ in range(2):
            since = time.perf_counter()
            course.epoch()
            took = time.perf_counter() - since
            if took > LONG:
                break
    return took
