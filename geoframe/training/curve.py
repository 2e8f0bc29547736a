"""`training_curve`: how well a training's network does, checkpoint by checkpoint. Imports no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoframe.errors import BadInput
from geoframe.provenance import git_commit, readable, versions
from geoframe.training.cache import TrainingCache
from geoframe.training.recipe import Training

if TYPE_CHECKING:
    import xarray as xr

_IMAGES = {"train": "training images, as they are (no augmentation)", "test": "test images"}
_SCORES = {"loss": ("mean cross-entropy on", "nats"), "accuracy": ("share of correct classifications of", "1")}


def training_curve(training: Training, *, train: bool = True, device: str = "cpu") -> xr.Dataset:
    """Return loss and accuracy at each checkpoint, the initial weights first.

    Parameters
    ----------
    training : Training
        The recipe; its `test` may be another set than when it was trained.
    train : bool
        Train what isn't in the cache yet. False refuses instead.
    device : str
        A torch device for that; "auto" takes a GPU where there is one. What is in the cache counts wherever it was
        trained.

    Returns
    -------
    xarray.Dataset
        Dimension `checkpoint`, with the coordinates `step` (optimiser steps done) and `epoch` (a fraction within one).
        `train_loss` and `train_accuracy`, and, where the recipe has a test set, `test_loss` and `test_accuracy`. The
        loss is the mean cross-entropy, whatever the training minimised, in eval mode, of images as they are.

    Raises
    ------
    BadInput
        Where checkpoints are missing and `train` is False, or the training can't be done.
    """
    cache = TrainingCache(training)
    missing = [moment for moment in training.moments if cache.checkpoint(moment) is None]
    if missing and not train:
        raise BadInput(f"training {training.label!r} isn't complete: {missing[0]} isn't in the cache; leave train=True")
    from geoframe.settings import resolve_device
    from geoframe.training.place import training_on
    from geoframe.training.scoring import INITIAL, scored_log

    with training_on(resolve_device(device)):
        log = scored_log(training, cache)
    rows = {row["step"]: row for row in ({"step": 0, "epoch": 0, **log[INITIAL]}, *log["checkpoints"])}
    return _labelled(training, [rows[step] for step in sorted(rows)]).assign_attrs(_provenance(training, log))


def _labelled(training: Training, rows: list[dict[str, Any]]) -> xr.Dataset:
    import numpy as np
    import xarray as xr

    def column(name: str, kind: Any, **attrs: str) -> xr.Variable:
        return xr.Variable("checkpoint", np.array([row[name] for row in rows], dtype=kind), attrs)

    variables = {
        f"{split}_{score}": column(f"{split}_{score}", np.float64, long_name=f"{what} {images}", units=units)
        for split, images in _IMAGES.items()
        for score, (what, units) in _SCORES.items()
        if split == "train" or training.test is not None
    }
    coords = {
        "step": column("step", np.int64, long_name="optimiser steps done", units="1"),
        "epoch": column("epoch", np.float64, long_name="epochs done", units="1"),
    }
    return xr.Dataset(variables, coords)


def _provenance(training: Training, log: dict[str, Any]) -> dict[str, str]:
    from geoframe.training.place import device_of

    device, name = device_of(log)
    settings = {"device": device, "device_name": name, "threads": log["threads"], "torch": log["torch"]}
    return {
        "training": json.dumps(readable(training.identity()), sort_keys=True, ensure_ascii=False),
        "key": training.key,
        "test": "" if training.test is None else training.test.label,
        "images": log["images"],
        "settings": json.dumps({"dtype": "float32", **settings}, sort_keys=True),
        "versions": json.dumps(versions(), sort_keys=True),
        "git_commit": git_commit(Path.cwd()),
    }
