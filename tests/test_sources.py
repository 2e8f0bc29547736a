"""Files behind specs that are nested anywhere in a cell: what was made of them is made again when they change."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
import torch
from PIL import Image

import geoframe as gf
from geoframe.cells import CellStore
from geoframe.engines.engine import Outdated
from geoframe.engines.serial import SerialEngine
from geoframe.errors import BadInput
from geoframe.explain import decide
from geoframe.plan import Plan
from geoframe.sources import Sources
from tests.doubles import Dots, Faded, Norm, TinyEncoder


def paint(folder, seed):
    """Two grey pictures of 4×4 in each of two classes."""
    draw = np.random.default_rng(seed)
    for name in ("a/0", "a/1", "b/0", "b/1"):
        path = folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (4, 4), dtype=np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path):
    paint(tmp_path / "ref", 0)
    return tmp_path / "ref"


@attrs.frozen(kw_only=True)
class Deep(Norm):
    """A probe with specs in containers, and one that changes no number."""

    pools: Any = ()
    table: Any = attrs.field(factory=dict)
    shown: Any = gf.unkeyed(default=None)


def test_every_nested_spec_is_asked(folder):
    reference = gf.ImageFolder(folder)
    probe = Deep(
        pools=(Dots(), Faded(of=reference)), table={"x": [reference]}, shown=reference, scales=(1.0,), name="deep"
    )
    sources = Sources().of({"encoder": TinyEncoder(), "probe": probe})
    assert set(sources) == {"probe.pools.1.of", "probe.table.x.0"}
    assert set(sources.values()) == {reference.source_digest()}
    assert Sources().changed({"probe": probe}, sources) == ""
    paint(folder, 1)
    assert Sources().changed({"probe": probe}, sources) == (
        "the files of probe set 'ref' (probe.pools.1.of) have changed"
    )


def test_what_an_encoder_was_trained_on_is_a_source(folder):
    reference = gf.ImageFolder(folder)

    class Trained(TinyEncoder):
        training_set = reference

    trained = attrs.frozen(kw_only=True)(Trained)()
    assert Sources().of({"encoder": trained}) == {"encoder.training_set": reference.source_digest()}


@pytest.mark.parametrize("error", [BadInput("gone"), PermissionError(13, "no")])
def test_files_that_cannot_be_read_are_no_evidence(monkeypatch, error):
    def unreadable(self):
        raise error

    monkeypatch.setattr(Dots, "source_digest", unreadable)
    assert Sources().of({"probeset": Dots()}) == {}
    assert Sources().changed({"probeset": Dots()}, {"probeset": "before"}) == ""


def test_a_spec_is_asked_once(monkeypatch):
    asked = []
    monkeypatch.setattr(Dots, "source_digest", lambda self: asked.append(self) or "d")
    sources = Sources()
    for _ in range(3):
        sources.of({"probeset": Dots(), "probe": Deep(pools=Dots())})
    assert len(asked) == 1


torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 4), torch.nn.ReLU())
ENCODER = gf.ModuleEncoder(NET, head=torch.nn.Linear(4, 2), input_shape=(1, 4, 4), name="net")


def study_of(folder):
    class Paths(gf.Study):
        encoders = (ENCODER,)
        probesets = (Dots(n=3),)
        probes = (gf.TrajectoryProbe(reference=gf.ImageFolder(folder), n_reference=1, points=3), Norm())

    return Paths


def logits(tree):
    return tree["trajectory"]["path_logits"].values


def test_a_changed_reference_set_is_measured_again(folder, tmp_path):
    study = study_of(folder)
    before = logits(gf.run(study, out=tmp_path / "run"))  # read now
    paint(folder, 1)
    decisions = decide(Plan.of(study.resolve()), CellStore(tmp_path / "run" / "cells"))
    assert [(d.action, d.reason) for d in decisions] == [
        ("run", "the files of probe set 'ref' (probe.reference) have changed"),
        ("skip", "finished before"),
    ]
    after, fresh = gf.run(study, out=tmp_path / "run"), gf.run(study, out=tmp_path / "fresh")
    assert not np.array_equal(logits(after), before, equal_nan=True)
    np.testing.assert_array_equal(logits(after), logits(fresh))


def test_measure_reads_a_changed_reference_set_again(folder):
    probe = gf.TrajectoryProbe(reference=gf.ImageFolder(folder), n_reference=1, points=3)
    before = gf.measure(probe, ENCODER, Dots(n=2))
    paint(folder, 1)
    assert not before["path_logits"].equals(gf.measure(probe, ENCODER, Dots(n=2))["path_logits"])


def test_a_half_finished_cell_is_not_mixed(folder):
    """The pictures change after the plan was made, before the cell's turn comes."""
    (cell, _) = Plan.of(study_of(folder).resolve()).cells
    job = decide(Plan.of(study_of(folder).resolve()), CellStore(folder / "none"))[0].job
    started = next(event for event in SerialEngine().run([job]) if hasattr(event, "record"))
    job.record = attrs.evolve(started.record, blocks=[(0, 2), (2, 3)])
    job.done = {0}
    paint(folder, 1)
    outdated, started, *rest = SerialEngine().run([job])
    assert isinstance(outdated, Outdated)
    assert outdated.reason == "the files of probe set 'ref' (probe.reference) have changed"
    assert started.record.sources == Sources().of(cell.parts)
    assert rest[0].start == 0


def test_of_a_factory_the_file_that_changed_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    factory, weights = tmp_path / "nets_f.py", tmp_path / "mlp.pth"
    factory.write_text("import helper_f\n")
    weights.write_text("1")
    parts = {"encoder": gf.FactoryEncoder(f"{factory}:f", kwargs={"weights": "mlp.pth"}, input_shape=(1, 4, 4))}
    before = Sources().of(parts)
    assert Sources().changed(parts, before) == ""
    (tmp_path / "helper_f.py").write_text("")
    assert Sources().changed(parts, before) == "file helper_f.py was not there before"
    before = Sources().of(parts)
    weights.write_text("22")
    assert Sources().changed(parts, before) == "file mlp.pth has changed"
    weights.unlink()
    assert Sources().changed(parts, before) == ""  # no evidence: finished results don't need it
    factory.write_text("import helper_f  # mine\n")
    assert Sources().changed(parts, before) == "file nets_f.py has changed"
