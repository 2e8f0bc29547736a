"""Files behind a recipe: when they change, its weights are of something else."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import geoframe as gf
from geoframe.cells import CellStore
from geoframe.explain import decide
from geoframe.plan import Plan
from geoframe.training import loop
from geoframe.training.cache import TrainingCache
from tests.doubles import Norm
from tests.training.recipes import small, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


def paint(folder, seed):
    draw = np.random.default_rng(seed)
    for i in range(8):
        path = folder / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (8, 8), dtype=np.uint8)).save(path)


@pytest.fixture
def training(tmp_path):
    paint(tmp_path / "train", 0)
    return small(write_net(tmp_path), data=gf.ImageFolder(tmp_path / "train"), batch=4)


def study_of(training):
    class Both(gf.Study):
        encoders = (gf.TrainedEncoder(training), gf.TrainedEncoder(training, step="init"))
        probesets = (gf.Digits(n=2),)
        probes = (Norm(),)

    return Both


def norms(tree):
    return tree["norm"]["norm"].values


def reasons(study, out):
    return [decision.reason for decision in decide(Plan.of(study.resolve()), CellStore(out / "cells"))]


def other_net(folder):
    write_net(folder, "GELU")


def other_pictures(folder):
    paint(folder / "train", 1)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (other_net, "file mynet.py has changed"),
        (other_pictures, "the files of probe set 'train' (encoder.training.data) have changed"),
    ],
)
def test_a_changed_file_trains_again_and_says_so(training, tmp_path, elsewhere, capsys, change, what):
    study = study_of(training)
    before = norms(gf.run(study, out=tmp_path / "run"))
    assert reasons(study, tmp_path / "run") == ["finished before"] * 2
    change(tmp_path)
    assert reasons(study, tmp_path / "run") == [what, what]
    capsys.readouterr()
    after = norms(gf.run(study, out=tmp_path / "run"))
    said = capsys.readouterr().err
    assert said == f"training net-train: {what.replace('encoder.t', 't')}; it is trained again\n"
    fresh = norms(gf.run(study, out=tmp_path / "fresh"))  # the same cache, now right
    assert capsys.readouterr().err == ""
    elsewhere()
    np.testing.assert_array_equal(after, norms(gf.run(study, out=tmp_path / "other")))
    np.testing.assert_array_equal(after, fresh)
    assert (after[0] != before[0]).any()
    assert (after[1] != before[1]).any() == (change is other_net)  # initial weights are the same numbers


@pytest.mark.parametrize("change", [other_net, other_pictures])
def test_a_new_folder_takes_no_weights_of_before(training, tmp_path, elsewhere, change):
    weights(training)
    change(tmp_path)
    again = weights(training)
    elsewhere()
    assert torch.equal(weights(training), again)


@pytest.mark.parametrize("change", [other_net, other_pictures])
def test_an_interrupted_training_does_not_go_on_with_other_files(training, tmp_path, elsewhere, monkeypatch, change):
    from geoframe.training.course import Course

    real = Course.epoch

    def stop(self):
        if self.done == 2:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(Course, "epoch", stop)
    with pytest.raises(KeyboardInterrupt):
        weights(training)
    monkeypatch.setattr(Course, "epoch", real)
    change(tmp_path)
    found = weights(training)
    elsewhere()
    assert torch.equal(weights(training), found)


def test_the_source_of_initial_weights_is_the_models(training, tmp_path):
    initial, trained = gf.TrainedEncoder(training, step="init"), gf.TrainedEncoder(training)
    assert trained.source_digest() is None
    trained.build()
    before = initial.source_digest(), trained.source_digest()
    assert None not in before
    other_net(tmp_path)
    assert initial.source_digest() not in (None, before[0])
    assert trained.source_digest() is None  # not trained yet, as the files are now
    write_net(tmp_path)
    assert (initial.source_digest(), trained.source_digest()) == before


def test_pictures_that_are_gone_take_no_weights_away(training, tmp_path):
    import shutil

    first = weights(training)
    shutil.rmtree(tmp_path / "train")
    assert torch.equal(weights(training), first)


LOSS = """
import attrs
import geoframe as gf
import torch

FACTOR = {factor}

@attrs.frozen(kw_only=True, slots=False, eq=False)
class Mine(gf.LossSpec):
    def __call__(self, model, x, y, generator):
        return FACTOR * torch.nn.functional.cross_entropy(model(x), y)
"""


def own_loss(folder, factor, monkeypatch):
    path = folder / f"loss{factor}" / "myloss.py"
    path.parent.mkdir()
    path.write_text(LOSS.replace("{factor}", factor))
    spec = importlib.util.spec_from_file_location("myloss", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "myloss", module)
    spec.loader.exec_module(module)
    return module.Mine()


def test_a_loss_whose_code_has_changed_is_trained_with_again(tmp_path, monkeypatch, capsys):
    recipe = small(write_net(tmp_path), epochs=1)
    first, second = recipe.evolve(loss=own_loss(tmp_path, "1.0", monkeypatch)), None
    before = weights(first)
    second = recipe.evolve(loss=own_loss(tmp_path, "0.1", monkeypatch))
    assert first.key == second.key
    assert not torch.equal(before, weights(second))
    assert "file myloss.py: Mine has changed; it is trained again" in capsys.readouterr().err


def typed_loss(factor):
    known = {"__name__": "typed_for_a_test"}
    exec(compile(LOSS.replace("{factor}", factor), "<stdin>", "exec"), known)
    return known["Mine"]()


def test_a_loss_that_was_typed_is_trained_with_again_once_it_is_typed_otherwise(tmp_path, capsys):
    recipe = small(write_net(tmp_path), epochs=1)
    before = weights(recipe.evolve(loss=typed_loss("1.0")))
    assert torch.equal(weights(recipe.evolve(loss=typed_loss("1.0"))), before)
    assert not capsys.readouterr().err
    assert not torch.equal(weights(recipe.evolve(loss=typed_loss("-3.0"))), before)
    assert "file typed_for_a_test: Mine has changed; it is trained again" in capsys.readouterr().err


def test_a_network_of_a_typed_loss_that_was_trained_before_its_code_was_known_stays(tmp_path, monkeypatch):
    training = small(write_net(tmp_path), epochs=1, loss=typed_loss("1.0"))
    first = weights(training)
    place = TrainingCache(training)
    log = place.log()
    place.write_log({**log, "sources": {k: v for k, v in log["sources"].items() if "typed_for_a_test" not in k}})
    monkeypatch.setattr(loop, "train", None)
    assert torch.equal(weights(training), first)
