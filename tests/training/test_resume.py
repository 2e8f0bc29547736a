"""A training that was stopped anywhere ends with the bits of one that wasn't."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.training import saved, trainer
from geoframe.training.cache import TrainingCache
from geoframe.training.course import Course
from tests.training.recipes import checkpoint_bytes, digests, small, stop_at, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

NOISY = """
import random
import numpy as np
import torch

class Noisy(torch.nn.Module):
    # random in all three ways, and with running statistics
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(64, 12), torch.nn.BatchNorm1d(12), torch.nn.Linear(12, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x.flatten(1))))
        if self.training:
            x = torch.nn.functional.dropout(x, 0.3) * (0.9 + 0.1 * random.random()) + 0.1 * float(np.random.normal())
        return self.last(x)
"""


@pytest.fixture
def noisy(tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY)
    model = gf.FactoryEncoder(f"{tmp_path / 'noisy.py'}:Noisy", input_shape=(1, 8, 8), mean=0.5, std=0.5)
    return small(model, epochs=5, checkpoints=(2,), weight_decay=0.01)


def epochs_trained(monkeypatch) -> list[int]:
    trained, real = [], Course.epoch

    def epoch(self):
        trained.append(self.done + 1)
        return real(self)

    monkeypatch.setattr(Course, "epoch", epoch)
    return trained


@pytest.mark.parametrize("epoch", [1, 2, 3, 5])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), RuntimeError("out of luck")])
def test_a_stopped_training_goes_on_to_the_same_bits(noisy, elsewhere, monkeypatch, capsys, epoch, error):
    weights(noisy)
    whole, named = checkpoint_bytes(noisy), digests(noisy)
    elsewhere()
    stop_at(monkeypatch, epoch, 3, error)
    with pytest.raises(type(error)):
        weights(noisy)
    random.seed(5)  # the caller's generators play no role
    np.random.seed(6)  # noqa: NPY002
    torch.manual_seed(7)
    trained = epochs_trained(monkeypatch)
    capsys.readouterr()
    weights(noisy)
    assert trained == list(range(epoch, 6))
    said = capsys.readouterr().err
    assert said == ("" if epoch == 1 else f"training Noisy-digits: goes on after epoch {epoch - 1} of 5\n")
    assert checkpoint_bytes(noisy) == whole  # and so resume.pt is gone
    assert digests(noisy) == named
    assert {path.suffix for path in TrainingCache(noisy).folder.iterdir()} == {".pt", ".json"}


def test_random_models_are_reproducible_and_leave_the_callers_generators_alone(noisy, elsewhere):
    def generators():
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002

    before = generators()
    first = weights(noisy)
    assert generators() == before
    elsewhere()
    torch.manual_seed(99)
    assert torch.equal(weights(noisy), first)
    assert not torch.equal(weights(noisy.evolve(seed=1)), first)


def test_threads_are_recorded_and_used_again(noisy, monkeypatch):
    used = []
    real = Course.epoch
    monkeypatch.setattr(Course, "epoch", lambda self: used.append(torch.get_num_threads()) or real(self))
    stop_at(monkeypatch, 3, 1, KeyboardInterrupt())
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(KeyboardInterrupt):
            weights(noisy)
        torch.set_num_threads(1)
        weights(noisy)
        assert torch.get_num_threads() == 1
        assert used == [2] * 6
        assert TrainingCache(noisy).log()["threads"] == 2
        TrainingCache(noisy).file(5).unlink()
        weights(noisy)  # what was lost is made again as it was made
        assert used == [2] * 11
    finally:
        torch.set_num_threads(before)


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def other_torch(path):
    state = saved.read_sealed(path)
    state["settings"]["torch"] = "1.0"
    saved.write(path, state, sealed=True)


def other_layers(path):
    state = saved.read_sealed(path)
    state["course"]["model"]["extra"] = torch.zeros(1)
    saved.write(path, state, sealed=True)


@pytest.mark.parametrize(
    "change",
    [damage, other_torch, other_layers, lambda path: path.write_bytes(b""), lambda path: path.write_text("x" * 99)],
)
def test_a_state_that_cannot_be_used_costs_the_epochs_and_no_more(noisy, elsewhere, monkeypatch, capsys, change):
    first = weights(noisy)
    elsewhere()
    stop_at(monkeypatch, 4, 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        weights(noisy)
    change(TrainingCache(noisy).resume)
    trained = epochs_trained(monkeypatch)
    assert torch.equal(weights(noisy), first)
    assert trained == [1, 2, 3, 4, 5]
    assert "starts again, what was kept of it can't be continued" in capsys.readouterr().err


def test_a_state_of_another_training_is_not_taken(noisy, elsewhere, monkeypatch):
    other = noisy.evolve(lr=0.01)
    first = weights(other)
    elsewhere()
    stop_at(monkeypatch, 4, 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        weights(noisy)
    place = TrainingCache(other)
    place.folder.mkdir()
    place.resume.write_bytes(TrainingCache(noisy).resume.read_bytes())
    assert torch.equal(weights(other), first)


def test_a_checkpoint_lost_before_the_state_is_made_again(noisy, elsewhere, monkeypatch):
    weights(noisy)
    whole = checkpoint_bytes(noisy)
    elsewhere()
    stop_at(monkeypatch, 4, 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        weights(noisy)
    TrainingCache(noisy).file(2).unlink()
    weights(noisy)
    assert checkpoint_bytes(noisy) == whole


def test_a_kill_after_the_last_checkpoint_leaves_nothing_for_long(noisy, monkeypatch):
    monkeypatch.setattr(trainer, "remove", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        weights(noisy)
    assert TrainingCache(noisy).resume.exists()
    weights(noisy)
    assert not TrainingCache(noisy).resume.exists()


def test_a_full_disk_leaves_the_state_before_it(noisy, elsewhere, monkeypatch):
    first = weights(noisy)
    elsewhere()
    real = os.fsync
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 8:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(gf.BadInput, match=r"can't write .*No space left on device; free some space"):
        weights(noisy)
    trained = epochs_trained(monkeypatch)
    assert torch.equal(weights(noisy), first)
    assert trained[0] > 1


ROOT = Path(__file__).parents[2]
KILLED = """
import sys, pathlib
import geoframe as gf
from tests.training.recipes import small, weights, write_net
weights(small(write_net(pathlib.Path(sys.argv[1])).evolve(kwargs={"dropout": 0.3}), epochs=60, checkpoints=(20,)))
"""


@pytest.mark.slow
def test_killed_trainings_end_with_the_same_bits(tmp_path, elsewhere):
    def start(cache: str):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GEOFRAME_CACHE": cache}
        return subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, cwd=ROOT)

    def finish(cache: str) -> None:
        assert start(cache).wait(timeout=300) == 0

    training = small(write_net(tmp_path).evolve(kwargs={"dropout": 0.3}), epochs=60, checkpoints=(20,))
    finish(str(tmp_path / "whole"))
    elsewhere("whole")
    whole = checkpoint_bytes(training)
    elsewhere("killed")
    draw, place = random.Random(0), TrainingCache(training)
    kills = 0
    for _ in range(40):
        run = start(str(tmp_path / "killed"))
        seen = place.resume.stat().st_mtime_ns if place.resume.exists() else 0
        deadline = time.monotonic() + 60
        while run.poll() is None and time.monotonic() < deadline:
            if place.resume.exists() and place.resume.stat().st_mtime_ns != seen:
                break
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.05))
        if run.poll() is not None:
            break
        run.send_signal(signal.SIGKILL)
        run.wait()
        kills += 1
        assert saved.read_sealed(place.resume) is not None or digests(training).keys() == {20, 60}
    finish(str(tmp_path / "killed"))
    assert kills >= 3
    assert checkpoint_bytes(training) == whole
