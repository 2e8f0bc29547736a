"""The scores of a training's checkpoints, those that its log lacks computed from the weights."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from geoframe.encoders.building import clean_build
from geoframe.errors import BadInput
from geoframe.numerics import threads, training_numerics
from geoframe.training import saved
from geoframe.training.cache import TrainingCache
from geoframe.training.checks import check_classes
from geoframe.training.data import labelled
from geoframe.training.lock import locked
from geoframe.training.loop import weights_after
from geoframe.training.moments import Moment
from geoframe.training.place import Place
from geoframe.training.schedules import steps_per_epoch
from geoframe.training.scores import Tested, has_scores, scores, tested_on

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

INITIAL = "initial"  # the log's entry of the initial weights
COUNTS = "class_counts"  # that of the training images of each class


def scored_log(training: Training, cache: TrainingCache) -> dict[str, Any]:
    """Return a log that has all checkpoints, and the scores of each and of the initial weights; train if need be.

    Older logs have no losses, none has scores on another test set, and those of the initial weights, as well as how
    many training images each class has, are told here only. What is added is written to the log.
    """
    for moment in training.moments:
        if cache.checkpoint(moment) is None:
            weights_after(training, moment)
    tested = tested_on(training)
    if not _is_whole(cache.log(), tested):
        with locked(cache):
            log = cache.log()
            if not _is_whole(log, tested):
                cache.write_log(_completed(training, cache, log, tested))
    return cache.log()


def _is_whole(log: dict[str, Any], tested: Tested) -> bool:
    rows = log.get("checkpoints", ())
    known = COUNTS in log and has_scores(log.get(INITIAL), tested)
    return known and all("step" in row and has_scores(row, tested) for row in rows)


def _completed(training: Training, cache: TrainingCache, log: dict[str, Any], tested: Tested) -> dict[str, Any]:
    place = Place.again(log) or Place.here()
    with training_numerics(place.torch), threads(log["threads"]), clean_build(training.seed):
        model = training.seeded_model().build_model()
        module = model.module.float().eval().to(place.torch)
        data = labelled(training.data, model, training.label, place.torch)
        test = None if training.test is None else labelled(training.test, model, training.label, place.torch)
        if test is not None:
            with torch.no_grad():
                check_classes(training.label, test, module(test.normalised(test.pixels[:1])).shape[1])
        log[COUNTS] = {str(label): n for label, n in sorted(Counter(data.y.tolist()).items())}
        if not has_scores(log.get(INITIAL), tested):
            log[INITIAL] = scores(tested, module, data, test)
        per_epoch = steps_per_epoch(len(data.y), training.batch)
        for row in log["checkpoints"]:
            row.setdefault("step", Moment(row["epoch"]).steps(per_epoch))
            if not has_scores(row, tested):
                weights = saved.read_row(cache, row, module.state_dict())
                if isinstance(weights, str):
                    raise BadInput(f"training {training.label!r}: {weights}; build an encoder of it to train it again")
                module.load_state_dict(weights)
                row |= scores(tested, module, data, test)
    return log
