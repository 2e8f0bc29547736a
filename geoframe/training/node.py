"""A run's node `training`: loss and accuracy of each trained encoder at its checkpoint, and what it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from geoframe.controls import with_controls
from geoframe.encoder import Encoder
from geoframe.merge import spec_coords
from geoframe.training.cache import TrainingCache
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.scores import tested_on
from geoframe.training.scoring import COUNTS, INITIAL, scored_log

NODE = "training"
KEY = "scores_key"
SCORES = {
    "train_accuracy": ("1", "share of correct classifications of training images, as they are"),
    "test_accuracy": ("1", "share of correct classifications of test images"),
    "train_loss": ("nats", "mean cross-entropy on training images, as they are"),
    "test_loss": ("nats", "mean cross-entropy on test images"),
    "test_images": ("1", "number of test images (older logs don't have it)"),
}
_COUNTS = {"units": "1", "long_name": "training images of the class (−1: not known)"}
Row = dict[str, Any]


def training_node(encoders: Sequence[Encoder], former: xr.Dataset | None = None) -> xr.Dataset | None:
    """Return loss and accuracy of the encoders that geoframe trained, or None where there are none.

    Parameters
    ----------
    encoders : sequence of Encoder
        Those of the study.
    former : xarray.Dataset, optional
        The node as it was published before: its values stay where the cache has lost a training since.

    Returns
    -------
    xarray.Dataset
        Dimension `encoder`: `train_accuracy`, `test_accuracy`, `train_loss`, `test_loss`, `test_images`; NaN for
        encoders that weren't trained here, for trainings that aren't done, and where a recipe has no test set.
        `class_counts` (encoder, class), where a training is done: how many training images each class has, −1 for other
        encoders.
    """
    if not any(isinstance(encoder, TrainedEncoder) for encoder in encoders):
        return None
    keys = [_key(encoder) for encoder in encoders]
    known = _known(former)
    rows = [_scores(encoder) or known.get(key) or {} for encoder, key in zip(encoders, keys, strict=True)]
    variables = {
        name: xr.Variable("encoder", _column(rows, name), {"units": units, "long_name": text})
        for name, (units, text) in SCORES.items()
    }
    about = {"long_name": "digest of the recipe, the checkpoint and the test set"}
    coords = {
        "encoder": np.array([encoder.label for encoder in encoders], dtype=object),
        KEY: xr.Variable("encoder", np.array(keys, dtype=object), about),
        **spec_coords(encoders, (), taken={"encoder", KEY, *variables, COUNTS, "class"}),
    }
    return with_controls(xr.Dataset({**variables, **_class_counts(rows)}, coords), encoders)


def _key(encoder: Encoder) -> str:
    if not isinstance(encoder, TrainedEncoder):
        return ""
    moment = "init" if encoder.moment is None else str(encoder.moment)
    return " ".join([encoder.training.key, moment, *(str(part) for part in tested_on(encoder.training) or ())])


def _scores(encoder: Encoder) -> Row | None:
    """Scores and class counts from the log of a finished training; nothing is trained for them."""
    if not isinstance(encoder, TrainedEncoder):
        return None
    cache = TrainingCache(encoder.training)
    if not cache.holds(encoder.training.moments):
        return None
    log = scored_log(encoder.training, cache)
    counts = {COUNTS: {int(label): n for label, n in log[COUNTS].items()}}
    if encoder.moment is None:
        return {**log[INITIAL], **counts}
    file = encoder.moment.file
    return next(({**row, **counts} for row in log["checkpoints"] if cache.file_of(row) == file), None)


def _known(former: xr.Dataset | None) -> dict[str, Row]:
    if former is None or KEY not in former.coords:
        return {}
    rows = {str(key): former.isel(encoder=place) for place, key in enumerate(former[KEY].values) if key}
    return {
        key: {name: float(row[name]) for name in SCORES if name in row} | _former_counts(row)
        for key, row in rows.items()
    }


def _former_counts(row: xr.Dataset) -> Row:
    if COUNTS not in row or (row[COUNTS] < 0).any():
        return {}
    return {COUNTS: {int(label): int(n) for label, n in zip(row["class"].values, row[COUNTS].values, strict=True) if n}}


def _class_counts(rows: Sequence[Row]) -> dict[str, xr.DataArray]:
    """Training images of each class of any training, if one is done."""
    known = [row.get(COUNTS) for row in rows]
    labels = sorted({label for counts in known if counts for label in counts})
    if not labels:
        return {}
    values = [[-1 if counts is None else counts.get(label, 0) for label in labels] for counts in known]
    table = np.array(values, dtype=np.int64)
    return {COUNTS: xr.DataArray(table, {"class": labels}, ("encoder", "class"), attrs=_COUNTS)}


def _column(rows: Sequence[Row], name: str) -> np.ndarray:
    values = [row.get(name) for row in rows]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
