"""One published table never holds cells of two sets of weights of one encoder, or of two versions of one image."""

from __future__ import annotations

import attrs
import pytest

import geoframe as gf
from geoframe.agreement import outdated
from geoframe.cells import CellStore, Record
from geoframe.explain import decide
from geoframe.plan import Plan
from tests.doubles import Dots, Faded, Norm, TinyEncoder
from tests.test_runner import Log


class Small(gf.Study):
    encoders = (TinyEncoder(name="a"),)
    probesets = (Dots(n=3),)
    probes = (Norm(name="one"), Norm(scales=(3.0,), name="other"))


def rerun(out, study=Small, **options):
    log = Log()
    gf.run(study, out=out, progress=log, device="cpu", **options)
    return log


def again(log):
    return [line for line in log.lines if "computed again" in line]


def negated(self):
    network = TinyEncoder.first_build(self)
    for parameter in network.features.parameters():
        parameter.data.neg_()
    return network


@pytest.fixture
def replace_weights(monkeypatch):
    monkeypatch.setattr(TinyEncoder, "first_build", TinyEncoder.build, raising=False)
    return lambda: monkeypatch.setattr(TinyEncoder, "build", negated)


def digests(out):
    keys = {cell.key for cell in Plan.of(Small.resolve()).cells}
    return {record.encoder_digest for record in CellStore(out / "cells").records() if record.key in keys}


def test_weights_that_change_without_a_trace_are_noticed_by_later_cells(tmp_path, replace_weights):
    rerun(tmp_path)
    replace_weights()
    assert rerun(tmp_path).cells == []  # nothing tells, and the table is of one set of weights
    log = rerun(tmp_path, set=["probes.one.repeats=2"])
    assert log.cells == ["a × dots × one", "a × dots × other"]
    reason = "cells of encoder 'a' were measured with different weights"
    decisions = decide(Plan.of(Small.resolve()), CellStore(tmp_path / "cells"))
    assert [(d.action, d.reason) for d in decisions] == [("run", reason), ("skip", "finished before")]
    log = rerun(tmp_path)
    assert log.cells == ["a × dots × one"]
    assert again(log) == [f"a × dots × one: computed again, {reason}"]
    assert len(digests(tmp_path)) == 1
    assert rerun(tmp_path).cells == []


def test_going_back_to_the_former_weights_is_no_mixture_either(tmp_path, replace_weights, monkeypatch):
    rerun(tmp_path)
    replace_weights()
    rerun(tmp_path, set=["probes.one.repeats=2"])
    monkeypatch.setattr(TinyEncoder, "build", TinyEncoder.first_build)
    log = rerun(tmp_path)
    assert sorted(log.cells) == ["a × dots × one", "a × dots × other"]
    assert len(digests(tmp_path)) == 1
    assert log.planned == log.passes == 6


def test_images_that_change_between_two_encoders_are_noticed_before_publishing(tmp_path, monkeypatch):
    class Dark(Small):
        probesets = (Faded(of=Dots(n=2), name="dark"),)

    class Both(Dark):
        name = "dark"
        encoders = (TinyEncoder(name="a"), TinyEncoder(name="b", seed=1))

    def records(self):
        for record in Dots.records(self.of):
            yield attrs.evolve(record, image=record.image * 0.9)

    rerun(tmp_path, Dark)
    monkeypatch.setattr(Faded, "records", records)
    log = rerun(tmp_path, Both)
    assert sorted(log.cells) == [f"{e} × dark × {p}" for e in "ab" for p in ("one", "other")]
    assert again(log) == [
        f"a × dark × {probe}: computed again, cells of probe set 'dark' were measured with different images"
        for probe in ("one", "other")
    ]
    assert rerun(tmp_path, Both).cells == []


def record(key, weights="w", images="i", encoder="a", **changes):
    return Record(
        key=key,
        names={"encoder": encoder, "probeset": "s", "probe": "p"},
        identity={"encoder": {"type": encoder}, "probeset": {"type": "s"}},
        settings={},
        blocks=[(0, 1)],
        encoder_digest=weights,
        images_digest=images,
        **changes,
    )


def test_images_at_another_shape_differ_rightly():
    small, large = record("1", input_shape=(1, 4, 4)), record("2", images="j", encoder="b", input_shape=(1, 8, 8))
    assert outdated([small, large]) == {}
    assert set(outdated([small, attrs.evolve(large, input_shape=(1, 4, 4))])) == {"2"}


def test_records_without_a_shape_are_compared_within_an_encoder():
    assert outdated([record("1"), record("2", images="j", encoder="b")]) == {}
    assert set(outdated([record("1"), record("2", images="j")])) == {"2"}


def test_the_latest_stands():
    assert set(outdated([record("1"), record("2", weights="old"), record("3"), record("4", weights="older")])) == {
        "2",
        "4",
    }


def test_a_stopped_run_publishes_no_mixture(tmp_path, replace_weights, monkeypatch):
    rerun(tmp_path)
    replace_weights()
    rerun(tmp_path, set=["probes.one.repeats=2"])  # `other` is of the new weights now

    def stop(self, record):
        raise KeyboardInterrupt

    monkeypatch.setattr(CellStore, "start", stop)
    with pytest.raises(KeyboardInterrupt):
        rerun(tmp_path)
    assert set(gf.open(tmp_path).children) == {"other"}


def test_images_of_a_stopped_run_are_no_mixture(tmp_path, monkeypatch):
    class Dark(Small):
        probesets = (Faded(of=Dots(n=2), name="dark"),)
        probes = (Norm(),)

    class Both(Dark):
        name = "dark"
        encoders = (TinyEncoder(name="a"), TinyEncoder(name="b", seed=1))

    def records(self):
        for record in Dots.records(self.of):
            yield attrs.evolve(record, image=record.image * 0.9)

    rerun(tmp_path, Dark)
    monkeypatch.setattr(Faded, "records", records)
    pack = CellStore.pack

    def stopping(self, key):
        pack(self, key)
        if self.record(key).names["encoder"] == "b":
            raise KeyboardInterrupt

    monkeypatch.setattr(CellStore, "pack", stopping)
    with pytest.raises(KeyboardInterrupt):
        rerun(tmp_path, Both)
    norm = gf.open(tmp_path)["norm"]["norm"]
    assert norm.sel(encoder="b").notnull().all()
    assert norm.sel(encoder="a").isnull().all()
