"""Weights of a training: from the cache, or trained now, once for all runs that need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from geoframe.encoders.building import clean_build, seeded
from geoframe.errors import BadInput
from geoframe.files import sweep, writing
from geoframe.geometry.directions import stream_key
from geoframe.numerics import threads, training_numerics
from geoframe.training import saved
from geoframe.training.cache import ELSEWHERE, TrainingCache
from geoframe.training.checks import check_trainable
from geoframe.training.course import Course, State
from geoframe.training.data import labelled
from geoframe.training.lock import locked
from geoframe.training.moments import Moment
from geoframe.training.place import Place, seeded_on
from geoframe.training.progress import TrainingProgress
from geoframe.training.trainer import Trainer

if TYPE_CHECKING:
    from geoframe.training.recipe import Training


def weights_after(
    training: Training, when: int | Moment, like: Mapping[str, torch.Tensor] | None = None
) -> dict[str, torch.Tensor]:
    """Return weights that a training keeps, from the cache, or else train; another run's training is waited for.

    A plain number is an epoch. What the cache holds counts only if it is what was trained, from the files behind the
    recipe as they are now, and fits the model's state `like`. Otherwise a line says why not, and it is trained again.

    Raises
    ------
    BadInput
        Where they aren't kept, the data have no labels, the model can't be trained, or training diverges.
    """
    training.check_kept(when)
    cache = TrainingCache(training)
    found = saved.read_weights(cache, when, like)
    if isinstance(found, str):
        with locked(cache):
            found = saved.read_weights(cache, when, like)  # another run may have trained it meanwhile
            if isinstance(found, str):
                if found:
                    TrainingProgress.say(f"training {training.label}: {found}; it is trained again")
                train(training, cache)
                found = saved.read_weights(cache, when, like)
    if isinstance(found, str):
        raise BadInput(f"training {training.label!r} doesn't give weights that can be used: {found or 'none at all'}")
    cache.tidy()
    return found


def train(training: Training, cache: TrainingCache) -> None:
    """Fill the cache: from where an interrupted training was, or from the beginning.

    The state is kept after each epoch, and what is done from it has the bits that an uninterrupted training has:
    weights, optimiser, order of the data, random streams, device and number of threads are as they were. Where there is
    no such device here, it starts again. Checkpoints are written in one step each, and named in the log afterwards.
    """
    with writing(cache.folder, ELSEWHERE):
        cache.folder.mkdir(parents=True, exist_ok=True)
    sweep(cache.folder)
    state, sources = _resumable(cache), cache.sources()
    place = _place(cache, state)
    with training_numerics(place.torch), threads(place.threads):
        with clean_build(training.seed):
            model = training.seeded_model().build_model()
            module = model.module.float().to(place.torch)
            data = labelled(training.data, model, training.label, place.torch)
            test = None if training.test is None else labelled(training.test, model, training.label, place.torch)
            check_trainable(training.label, module, data, test, training.batch)
            course = Course(training, module, data)
            training.check_steps(course.total)
        seed = stream_key("training", training.seed) & (2**63 - 1)
        with seeded(seed), seeded_on(place.torch, seed):
            Trainer(cache, course, test, sources, place).run(state)


def _resumable(cache: TrainingCache) -> State | None:
    """State of an interrupted training of this recipe."""
    state = saved.read_sealed(cache.resume)
    return state if isinstance(state, dict) and state.get("training") == cache.training.key else None


def _place(cache: TrainingCache, state: State | None) -> Place:
    """Where the training was begun, or, of a new one and where there is no such place, here."""
    before = state["settings"] if state else cache.log()
    same = before.get("torch") == str(torch.__version__) and not cache.outdated()
    return (Place.again(before) if same else None) or Place.here()
