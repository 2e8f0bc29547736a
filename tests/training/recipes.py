"""Small trainings that the tests share."""

from __future__ import annotations

import torch

import geoframe as gf
from geoframe.training import loop
from geoframe.training.cache import TrainingCache
from geoframe.training.course import Course

NET = """
import torch

def net(dropout=0.0):
    return torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(64, 12),
        torch.nn.{act}(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(12, 10),
    )
"""


def write_net(folder, act="ReLU"):
    """Write mynet.py, and return an encoder of it."""
    path = folder / "mynet.py"
    path.write_text(NET.replace("{act}", act))
    return gf.FactoryEncoder(f"{path}:net", input_shape=(1, 8, 8), mean=0.5, std=0.5)


def small(model, **changes) -> gf.Training:
    fields = {"data": gf.Digits(split="train", n=101), "lr": 0.1, "batch": 20, "epochs": 4, "momentum": 0.9} | changes
    return gf.Training(model=model, **fields)


def weights(training: gf.Training, epoch: int | None = None) -> torch.Tensor:
    found = loop.weights_after(training, epoch or training.epochs)
    return torch.cat([v.flatten().double() for v in found.values()])


def checkpoint_bytes(training: gf.Training) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in TrainingCache(training).folder.glob("*.pt")}


def digests(training: gf.Training) -> dict[int, str]:
    return {row["epoch"]: row["weights"] for row in TrainingCache(training).log()["checkpoints"]}


def stop_at(monkeypatch, epoch: int, step: int, error: BaseException) -> None:
    """Raise in the middle of an epoch, once."""
    real, stopped = Course._step, []

    def _step(self, rows, number):
        if (self.done + 1, number) == (epoch, step) and not stopped:
            stopped.append(True)
            raise error
        return real(self, rows, number)

    monkeypatch.setattr(Course, "_step", _step)
