"""The training loop, and the lock that makes two runs which need the same training do it once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import torch
from torch import nn

from geoframe.encoder import Shape
from geoframe.encoders.model import Model
from geoframe.errors import BadInput
from geoframe.files import PARTIAL, writing
from geoframe.loaded import state_digest
from geoframe.numerics import plain_torch
from geoframe.training.cache import ELSEWHERE, TrainingCache
from geoframe.training.progress import TrainingProgress

if TYPE_CHECKING:
    from geoframe.probeset import Images, ProbeSet
    from geoframe.training.recipe import Training

EVALUATED = 1000  # images a forward pass when accuracy is counted


def weights_after(training: Training, epoch: int) -> dict[str, torch.Tensor]:
    """Return the weights after an epoch, from the cache, or else train; another run's training is waited for.

    Raises
    ------
    BadInput
        Where the epoch isn't kept, the data have no labels, or training diverges.
    """
    if epoch not in training.kept:
        kept = ", ".join(map(str, training.kept))
        raise BadInput(f"training {training.label!r} keeps no epoch {epoch} (it keeps {kept}): add it to checkpoints")
    cache = TrainingCache(training)
    if cache.checkpoint(epoch) is None:
        with _locked(cache, training.label):
            if cache.checkpoint(epoch) is None:
                train(training, cache)
    state: dict[str, torch.Tensor] = torch.load(cache.file(epoch), map_location="cpu", weights_only=True)
    return state


def train(training: Training, cache: TrainingCache) -> None:
    """Train from the beginning and fill the cache.

    An interrupted training starts again from its initial weights: a checkpoint that is already there has the same bits
    as the one that replaces it. Checkpoints are written in one step each, and named in the log afterwards.
    """
    with writing(cache.folder, ELSEWHERE):
        cache.folder.mkdir(parents=True, exist_ok=True)
    with plain_torch(), torch.enable_grad():
        model = training.seeded_model().build_model()
        data = _labelled(training.data, model)
        test = None if training.test is None else _labelled(training.test, model)
        log: dict[str, Any] = {
            "recipe": training.identity(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "images": data[2],
            "checkpoints": [],
        }
        for epoch, loss in _epochs(training, model, *data[:2]):
            if epoch in training.kept:
                log["checkpoints"].append(_keep(cache, model.module, epoch, loss, data, test))
                cache.write_log(log)


def _epochs(training: Training, model: Model, x: torch.Tensor, y: torch.Tensor) -> Iterator[tuple[int, float]]:
    """Train epoch by epoch; yield each one's number and mean loss, with the model in training mode again after."""
    order = torch.Generator().manual_seed(training.seed)
    optimiser = torch.optim.SGD(
        model.module.parameters(), lr=training.lr, momentum=training.momentum, weight_decay=training.weight_decay
    )
    criterion = nn.CrossEntropyLoss()
    progress = TrainingProgress(training.label, training.epochs)
    for epoch in range(1, training.epochs + 1):
        model.module.train()
        total = 0.0
        for batch in torch.split(torch.randperm(len(x), generator=order), training.batch):
            if len(batch) == 1 and len(x) > 1:
                continue  # batch normalisation has no variance of one image
            optimiser.zero_grad(set_to_none=True)
            loss = criterion(model.module(x[batch]), y[batch])
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        if not total < float("inf"):
            raise BadInput(f"training {training.label!r} diverged in epoch {epoch} (loss {total / len(x):g}): lower lr")
        progress.epoch(epoch, total / len(x))
        yield epoch, total / len(x)


def _keep(
    cache: TrainingCache, module: nn.Module, epoch: int, loss: float, data: tuple[Any, ...], test: Any
) -> dict[str, Any]:
    """Write a checkpoint and return its line of the log."""
    module.eval()
    target = cache.file(epoch)
    partial = target.with_name(target.name + PARTIAL)
    with writing(target, ELSEWHERE):
        with partial.open("wb") as file:
            torch.save(module.state_dict(), file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    return {
        "epoch": epoch,
        "loss": loss,
        "train_accuracy": accuracy(module, *data[:2]),
        "test_accuracy": None if test is None else accuracy(module, *test[:2]),
        "weights": state_digest(module),
    }


def accuracy(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """Share of images whose largest logit is their label's; the module has to be in eval mode."""
    parts = zip(torch.split(x, EVALUATED), torch.split(y, EVALUATED), strict=True)
    with torch.no_grad():
        right = sum(int((module(images).argmax(1) == labels).sum()) for images, labels in parts)
    return right / len(x)


@lru_cache(maxsize=1)
def _images(probeset: ProbeSet, shape: Shape) -> Images:
    return probeset.load(shape)


def _labelled(probeset: ProbeSet, model: Model) -> tuple[torch.Tensor, torch.Tensor, str]:
    """Normalised images, labels, and the digest of the raw pixels."""
    images = _images(probeset, model.input_shape)
    labels = torch.tensor(images.labels, dtype=torch.int64)
    if (labels < 0).any():
        raise BadInput(f"training needs labels, and probe set {probeset.label!r} has images without: use another set")
    mean, std = (torch.as_tensor(v, dtype=torch.float32).reshape(-1, 1, 1) for v in (model.mean, model.std))
    return (images.pixels - mean) / std, labels, images.digest


@contextmanager
def _locked(cache: TrainingCache, label: str) -> Iterator[None]:
    """Hold the training's lock; say so where another run holds it."""
    with writing(cache.lock, ELSEWHERE):
        cache.lock.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(cache.lock)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        TrainingProgress.say(f"training {label}: another run is at it; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def cache_folder(training: Training) -> Path:
    """Return where a training's checkpoints lie."""
    return TrainingCache(training).folder
