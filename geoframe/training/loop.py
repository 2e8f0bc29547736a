"""The training loop, and the lock that makes two runs which need the same training do it once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import filelock
import torch
from torch import nn

from geoframe.encoders.building import clean_build, seeded
from geoframe.errors import BadInput
from geoframe.files import remove, sweep, writing
from geoframe.geometry.directions import stream_key
from geoframe.numerics import plain_torch, threads
from geoframe.training import saved
from geoframe.training.cache import ELSEWHERE, TrainingCache
from geoframe.training.checks import check_trainable
from geoframe.training.course import Course, State
from geoframe.training.data import Labelled, labelled
from geoframe.training.progress import TrainingProgress

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

EVALUATED = 1000  # images a forward pass when accuracy is counted
SETTINGS = ("torch", "threads", "images", "sources")  # with which what is there can be completed with the same bits


def weights_after(
    training: Training, epoch: int, like: Mapping[str, torch.Tensor] | None = None
) -> dict[str, torch.Tensor]:
    """Return the weights after an epoch, from the cache, or else train; another run's training is waited for.

    What the cache holds counts only if it is what was trained, from the files behind the recipe as they are now, and
    fits the model's state `like`. Otherwise a line says why not, and it is trained again.

    Raises
    ------
    BadInput
        Where the epoch isn't kept, the data have no labels, the model can't be trained, or training diverges.
    """
    training.check_kept(epoch)
    cache = TrainingCache(training)
    found = saved.read_weights(cache, epoch, like)
    if isinstance(found, str):
        with _locked(cache, training.label):
            found = saved.read_weights(cache, epoch, like)  # another run may have trained it meanwhile
            if isinstance(found, str):
                if found:
                    TrainingProgress.say(f"training {training.label}: {found}; it is trained again")
                train(training, cache)
                found = saved.read_weights(cache, epoch, like)
    if isinstance(found, str):
        raise BadInput(f"training {training.label!r} doesn't give weights that can be used: {found or 'none at all'}")
    cache.tidy()
    return found


def train(training: Training, cache: TrainingCache) -> None:
    """Fill the cache: from where an interrupted training was, or from the beginning.

    The state is kept after each epoch, and what is done from it has the bits that an uninterrupted training has:
    weights, optimiser, order of the data, random streams and number of threads are as they were. Checkpoints are
    written in one step each, and named in the log afterwards.
    """
    with writing(cache.folder, ELSEWHERE):
        cache.folder.mkdir(parents=True, exist_ok=True)
    sweep(cache.folder)
    state, sources = _resumable(cache), cache.sources()
    with plain_torch(), torch.enable_grad(), threads(_threads(cache, state)):
        with clean_build(training.seed):
            model = training.seeded_model().build_model()
            module = model.module.float()
            data = labelled(training.data, model, training.label)
            test = None if training.test is None else labelled(training.test, model, training.label)
            check_trainable(training.label, module, data, training.batch)
        with seeded(stream_key("training", training.seed) & (2**63 - 1)):
            _Trainer(cache, Course(training, module, data), test, sources).run(state)


class _Trainer:
    """Trains, and keeps what is to be kept."""

    def __init__(self, cache: TrainingCache, course: Course, test: Labelled | None, sources: dict[str, str]) -> None:
        self.cache = cache
        self.course = course
        self.test = test
        self.log: dict[str, Any] = {
            "recipe": cache.training.identity(),
            "sources": {**cache.sources(), **sources},  # what changed while it was read has the digest before
            "torch": str(torch.__version__),  # plain text, as it is read again
            "threads": torch.get_num_threads(),
            "images": course.data.digest,
            "checkpoints": [],
        }

    def run(self, state: State | None) -> None:
        """Train until no checkpoint is missing."""
        training, course = self.cache.training, self.course
        self.log["checkpoints"] = self._sound_rows()
        if state is not None and self._continues(state):
            course.restore(state["course"])
            TrainingProgress.say(f"training {training.label}: goes on after epoch {course.done} of {training.epochs}")
        elif self.cache.resume.exists():
            TrainingProgress.say(f"training {training.label}: starts again, what was kept of it can't be continued")
        self.cache.write_log(self.log)
        progress = TrainingProgress(training.label, training.epochs, course.done)
        while self._missing():
            loss = course.epoch()
            if course.done in training.kept:
                self._keep(loss)
            if self._missing():
                saved.write(self.cache.resume, self._state(), sealed=True)
            progress.epoch(course.done, loss)
        remove(self.cache.resume)

    def _missing(self) -> set[int]:
        return {*self.cache.training.kept} - {row["epoch"] for row in self.log["checkpoints"]}

    def _sound_rows(self) -> list[dict[str, Any]]:
        """What an earlier training left, if this one gives the same bits: only what is missing is made again."""
        before = self.cache.log()
        if any(before.get(name) != self.log[name] for name in SETTINGS):
            return []
        return [row for row in before["checkpoints"] if not isinstance(self._read(row["epoch"]), str)]

    def _read(self, epoch: int) -> saved.Weights | str:
        return saved.read_weights(self.cache, epoch, self.course.module.state_dict())

    def _state(self) -> State:
        settings = {name: self.log[name] for name in SETTINGS}
        return {"training": self.cache.training.key, "settings": settings, "course": self.course.state()}

    def _continues(self, state: State) -> bool:
        """Whether a state is of the same files, settings and layers, and no checkpoint before it is missing."""
        same = state["settings"] == {name: self.log[name] for name in SETTINGS}
        same = same and saved.fits(state["course"]["model"], self.course.module.state_dict())
        return same and min(self._missing(), default=0) > state["course"]["epoch"]

    def _keep(self, loss: float) -> None:
        """Write a checkpoint, then its line of the log."""
        module, data, epoch = self.course.module.eval(), self.course.data, self.course.done
        weights = module.state_dict()
        saved.write(self.cache.file(epoch), weights)
        row = {
            "epoch": epoch,
            "loss": loss,
            "train_accuracy": accuracy(module, data),
            "test_accuracy": None if self.test is None else accuracy(module, self.test),
            "weights": saved.weights_digest(weights),
        }
        rows = [other for other in self.log["checkpoints"] if other["epoch"] != epoch]
        self.log["checkpoints"] = sorted([*rows, row], key=lambda each: each["epoch"])
        self.cache.write_log(self.log)


def accuracy(module: nn.Module, data: Labelled) -> float:
    """Share of images whose largest logit is their label's; the module has to be in eval mode."""
    parts = zip(torch.split(data.pixels, EVALUATED), torch.split(data.y, EVALUATED), strict=True)
    with torch.no_grad():
        right = sum(int((module(data.normalised(images)).argmax(1) == labels).sum()) for images, labels in parts)
    return right / len(data.y)


def _resumable(cache: TrainingCache) -> State | None:
    """State of an interrupted training of this recipe."""
    state = saved.read_sealed(cache.resume)
    return state if isinstance(state, dict) and state.get("training") == cache.training.key else None


def _threads(cache: TrainingCache, state: State | None) -> int:
    """The number that the training was started with, or, of a new one, torch's."""
    before = state["settings"] if state else cache.log()
    same = before.get("torch") == str(torch.__version__) and not cache.outdated()
    return int(before["threads"]) if same else torch.get_num_threads()


@contextmanager
def _locked(cache: TrainingCache, label: str) -> Iterator[None]:
    """Hold the training's lock; say so where another run holds it."""
    lock = filelock.FileLock(cache.lock)
    with writing(cache.lock, ELSEWHERE):
        cache.lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            TrainingProgress.say(f"training {label}: another run is at it; waiting for it")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
