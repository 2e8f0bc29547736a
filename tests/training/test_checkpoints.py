"""A checkpoint counts only if it is what was trained; else a line says why, and it is made again."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import torch

import geoframe as gf
from geoframe.cells import CellStore
from geoframe.explain import decide
from geoframe.plan import Plan
from geoframe.training import loop, saved
from geoframe.training.cache import LOG, TrainingCache
from tests.doubles import Norm
from tests.training.recipes import checkpoint_bytes, small, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


@pytest.fixture
def training(tmp_path):
    trained = small(write_net(tmp_path), checkpoints=(2,))
    weights(trained)
    return trained


def file(training, epoch=4):
    return TrainingCache(training).file(epoch)


def from_another(training):
    other = training.evolve(seed=1)
    weights(other)
    shutil.copy(file(other), file(training))


def from_another_epoch(training):
    shutil.copy(file(training, 2), file(training))


def flip_a_bit(training):
    """In a weight, where nothing but the value tells."""
    state = torch.load(file(training), weights_only=True)
    state["1.weight"].view(torch.int32)[3, 5] ^= 1
    torch.save(state, file(training))


def flip_a_byte(training):
    content = bytearray(file(training).read_bytes())
    content[len(content) // 2] ^= 1
    file(training).write_bytes(content)


def cut(training):
    file(training).write_bytes(file(training).read_bytes()[:1000])


def save(value):
    return lambda training: torch.save(value, file(training))


OTHER, UNREADABLE = "holds other weights than those that were trained", "can't be read"
DAMAGES = {
    "another": (from_another, OTHER),
    "epoch": (from_another_epoch, OTHER),
    "bit": (flip_a_bit, OTHER),
    "byte": (flip_a_byte, f"{OTHER}|{UNREADABLE}"),
    "cut": (cut, UNREADABLE),
    "empty": (lambda training: file(training).write_bytes(b""), UNREADABLE),
    "garbage": (lambda training: file(training).write_bytes(b"garbage" * 99), UNREADABLE),
    "folder": (lambda training: (file(training).unlink(), file(training).mkdir()), UNREADABLE),
    "list": (save([1, 2]), UNREADABLE),
    "text": (save({"1.weight": "x"}), OTHER),
    "lost": (lambda training: file(training).unlink(), "is missing"),
}


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "folder"])
def test_a_damaged_checkpoint_is_made_again(training, capsys, damage):
    before, (change, said) = checkpoint_bytes(training), DAMAGES[damage]
    change(training)
    capsys.readouterr()
    weights(training)
    assert checkpoint_bytes(training) == before
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"training net-digits: .*epoch-00004.pt ({said}); it is trained again", line)
    weights(training)
    assert capsys.readouterr().err == ""


def test_what_cannot_be_replaced_is_one_line(training):
    DAMAGES["folder"][0](training)
    with pytest.raises(gf.BadInput, match=r"can't write .*epoch-00004.pt: Is a directory; set GEOFRAME_CACHE"):
        weights(training)


def test_only_what_is_missing_is_made_again(training, monkeypatch):
    kept = []
    real = saved.write
    monkeypatch.setattr(saved, "write", lambda path, *a, **k: kept.append(path.name) or real(path, *a, **k))
    file(training, 2).unlink()
    weights(training, 2)
    assert kept == ["resume.pt", "epoch-00002.pt"]
    assert {path.name for path in file(training).parent.iterdir()} == {"epoch-00002.pt", "epoch-00004.pt", LOG}


LOGS = [
    "{", "[]", "3", "{}", '{"checkpoints": 3}', '{"checkpoints": [3]}', '{"checkpoints": [{"epoch": 4}]}',
    '{"checkpoints": [], "sources": [], "threads": 1}', '{"checkpoints": [], "sources": {}, "threads": "x"}',
]  # fmt: skip


@pytest.mark.parametrize("text", LOGS)
def test_a_damaged_log_is_no_log(training, capsys, text):
    before = checkpoint_bytes(training)
    (TrainingCache(training).folder / LOG).write_text(text)
    encoder = gf.TrainedEncoder(training)
    assert encoder.source_digest() is None
    capsys.readouterr()
    encoder.build()
    assert checkpoint_bytes(training) == before
    assert encoder.source_digest()
    line = capsys.readouterr().err
    assert line.endswith("is damaged; it is trained again\n")
    assert line.count("\n") == 1


@pytest.mark.parametrize("text", LOGS)
def test_a_plan_minds_no_damaged_log(training, tmp_path, text):
    class Small(gf.Study):
        encoders = (gf.TrainedEncoder(training),)
        probesets = (gf.Digits(n=2),)
        probes = (Norm(),)

    gf.run(Small, out=tmp_path / "run")
    (TrainingCache(training).folder / LOG).write_text(text)
    (decision,) = decide(Plan.of(Small.resolve()), CellStore(tmp_path / "run" / "cells"))
    assert decision.reason == "finished before"


def test_a_model_that_has_other_layers_now_is_trained_again(training, capsys):
    rows = TrainingCache(training).log()
    path = TrainingCache(training).file(4)
    other = {"elsewhere": torch.zeros(2)}
    torch.save(other, path)
    rows["checkpoints"][1]["weights"] = saved.weights_digest(other)
    TrainingCache(training).write_log(rows)
    capsys.readouterr()
    gf.TrainedEncoder(training).build()
    assert "are of a model with other layers; it is trained again" in capsys.readouterr().err


def test_weights_that_never_fit_are_one_line(training):
    with pytest.raises(gf.BadInput, match=r"doesn't give weights that can be used: the weights in .* other layers"):
        loop.weights_after(training, 4, {"x": torch.zeros(1)})


def test_other_images_under_the_same_name_are_trained_on_again(tmp_path, monkeypatch):
    """A set without files to compare is compared by its pixels, when it is loaded."""
    training = small(write_net(tmp_path))
    first = weights(training)
    TrainingCache(training).file(4).unlink()
    monkeypatch.setattr(gf.Digits, "chosen", lambda self: list(range(101)))
    monkeypatch.setattr("geoframe.training.data._LOADED", {})
    assert not torch.equal(weights(training), first)


def test_a_cache_that_cannot_be_read_is_one_line(training, monkeypatch):
    """As if the folder's permissions had been taken away (a test that runs as root can't)."""

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    encoder = gf.TrainedEncoder(training)
    for method in ("read_text", "stat", "exists", "is_file", "mkdir"):
        monkeypatch.setattr(f"pathlib.Path.{method}", refuse)
    monkeypatch.setattr(gf.FactoryEncoder, "source_digest", lambda self: None)
    assert encoder.source_digest() is None
    with pytest.raises(gf.BadInput, match=r"can't write .*: Permission denied; set GEOFRAME_CACHE to another folder"):
        weights(training)


def test_the_log_tells_how_it_was_trained(training):
    log = json.loads((TrainingCache(training).folder / LOG).read_text())
    how = {"torch", "threads", "device", "device_name"}
    assert {"recipe", "sources", "images", "checkpoints", *how} == set(log)
    assert list(log["sources"]) == ["training.model", "training.model:mynet.py"]
    assert [row["epoch"] for row in log["checkpoints"]] == [2, 4]
