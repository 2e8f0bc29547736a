"""What is kept of a training under way: checkpoints, their lines of the log, and the state to go on from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from geoframe.files import remove
from geoframe.training import saved
from geoframe.training.cache import TrainingCache
from geoframe.training.course import Course, State
from geoframe.training.data import Labelled
from geoframe.training.moments import Moment
from geoframe.training.place import Place, device_of
from geoframe.training.progress import TrainingProgress
from geoframe.training.scores import scores, tested_on

# with which what is there can be completed with the same bits
SETTINGS = ("torch", "threads", "device", "device_name", "images", "sources")


def settings_of(log: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a log."""
    kind, name = device_of(log)
    return {what: log.get(what) for what in SETTINGS} | {"device": kind, "device_name": name}


class Trainer:
    """Trains, and keeps what is to be kept."""

    def __init__(
        self, cache: TrainingCache, course: Course, test: Labelled | None, sources: dict[str, str], place: Place
    ) -> None:
        self.cache = cache
        self.course = course
        self.test = test
        self.tested = tested_on(cache.training)
        self.log: dict[str, Any] = {
            "recipe": cache.training.identity(),
            "sources": {**cache.sources(), **sources},  # what changed while it was read has the digest before
            "torch": str(torch.__version__),  # plain text, as it is read again
            **place.record(),
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
            TrainingProgress.say(f"training {training.label}: starts again{self._why_again(state)}")
        self.cache.write_log(self.log)
        to_keep = sum(moment.steps(course.per_epoch) > course.steps for moment in training.moments)
        progress = TrainingProgress(training.label, training.epochs, course.per_epoch, course.steps, to_keep)
        course.after_step = lambda loss: self._after_step(loss, progress)
        while self._missing():
            loss = course.epoch()
            if course.done in training.kept:
                self._keep(Moment(course.done), loss, progress)
            if self._missing():
                saved.write(self.cache.resume, self._state(), sealed=True)
            progress.epoch(course.done, loss)
        remove(self.cache.resume)

    def _after_step(self, loss: float, progress: TrainingProgress) -> None:
        moment = Moment(self.course.steps, "step")
        if moment.number in self.cache.training.checkpoint_steps:
            self.course.check_weights()
            self.course.check_buffers()
            self._keep(moment, loss, progress)
        progress.step(self.course.steps, loss)

    def _missing(self) -> list[Moment]:
        there = {self.cache.file_of(row) for row in self.log["checkpoints"]}
        return [moment for moment in self.cache.training.moments if moment.file not in there]

    def _sound_rows(self) -> list[dict[str, Any]]:
        """What an earlier training left, if this one gives the same bits: only what is missing is made again."""
        before = self.cache.log()
        if not before or settings_of(before) != settings_of(self.log):
            return []
        like = self.course.module.state_dict()
        return [row for row in before["checkpoints"] if not isinstance(saved.read_row(self.cache, row, like), str)]

    def _state(self) -> State:
        return {
            "training": self.cache.training.key,
            "settings": settings_of(self.log),
            "course": self.course.state(),
        }

    def _continues(self, state: State) -> bool:
        """Whether a state is of the same files, settings and layers, and no checkpoint before it is missing."""
        same = settings_of(state["settings"]) == settings_of(self.log)
        same = same and saved.fits(state["course"]["model"], self.course.module.state_dict())
        first = min((moment.steps(self.course.per_epoch) for moment in self._missing()), default=0)
        return same and first > state["course"]["epoch"] * self.course.per_epoch

    def _why_again(self, state: State | None) -> str:
        if state is not None and state["settings"].get("torch") == self.log["torch"]:
            kind, name = device_of(state["settings"])
            if (kind, name) != device_of(self.log):
                return f" on {self.log['device']}: it was begun on {kind} ({name}), which isn't here"
        return ", what was kept of it can't be continued"

    def _keep(self, moment: Moment, loss: float, progress: TrainingProgress) -> None:
        """Write a checkpoint, then its line of the log."""
        start = time.monotonic()
        module, per_epoch = self.course.module.eval(), self.course.per_epoch
        weights = module.state_dict()
        saved.write(self.cache.file(moment), weights)
        row = {
            "epoch": moment.epochs(per_epoch),
            "step": moment.steps(per_epoch),
            "file": moment.file,
            "loss": loss,
            **scores(self.tested, module, self.course.data, self.test),
            "weights": saved.weights_digest(weights),
        }
        rows = [other for other in self.log["checkpoints"] if self.cache.file_of(other) != moment.file]
        self.log["checkpoints"] = sorted([*rows, row], key=lambda each: (each["epoch"], self.cache.file_of(each)))
        self.cache.write_log(self.log)
        module.train()
        progress.kept(time.monotonic() - start)
