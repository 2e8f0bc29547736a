from __future__ import annotations

import numpy as np
import xarray as xr

from geoframe.cells import CellStore, Failure, Record
from geoframe.explain import decide, differences
from geoframe.plan import Plan
from geoframe.study import Study
from tests.doubles import Dots, Norm, TinyEncoder


class Small(Study):
    encoders = (TinyEncoder(name="a", seed=1),)
    probesets = (Dots(n=3),)
    probes = (Norm(scales=(0.5,)),)


def decision_of(cells, study=Small):
    (decision,) = decide(Plan.of(study.resolve()), cells)
    return decision


def block(start, stop):
    return xr.Dataset({"x": ("image", np.arange(start, stop))})


def start(cells, study=Small, **changes):
    cell = Plan.of(study.resolve()).cells[0]
    fields = {
        "key": cell.key,
        "names": cell.names,
        "identity": cell.identity(),
        "settings": {},
        "blocks": [(0, 2), (2, 3)],
        "encoder_digest": "w",
        "images_digest": "i",
    }
    cells.start(Record(**{**fields, **changes}))
    return cell.key


def test_new(tmp_path):
    decision = decision_of(CellStore(tmp_path))
    assert (decision.action, decision.reason, decision.passes_left()) == ("run", "new", 3)


def test_nothing_is_needed_of_the_folder(tmp_path):
    assert decision_of(CellStore(tmp_path / "absent" / "cells")).reason == "new"


def test_half_finished(tmp_path):
    cells = CellStore(tmp_path)
    key = start(cells)
    cells.write(key, 0, block(0, 2))
    decision = decision_of(cells)
    assert (decision.action, decision.reason) == ("resume", "not finished: 1 of 2 blocks are done")
    assert decision.passes_left() == 1


def test_finished(tmp_path):
    cells = CellStore(tmp_path)
    key = start(cells)
    cells.write(key, 0, block(0, 2))
    cells.write(key, 2, block(2, 3))
    cells.pack(key)
    decision = decision_of(cells)
    assert (decision.action, decision.reason, decision.passes_left()) == ("skip", "finished before", 0)


def test_damaged(tmp_path):
    cells = CellStore(tmp_path)
    key = start(cells)
    cells.write(key, 0, block(0, 2))
    (tmp_path / f"{key}-00000000.zarr" / "x" / "zarr.json").unlink()
    decision = decision_of(cells)
    assert decision.damaged
    assert decision.reason == f"files in {tmp_path} were changed or lost: 0 of 2 blocks are done"


def test_failed_before(tmp_path):
    cells = CellStore(tmp_path)
    key = Plan.of(Small.resolve()).cells[0].key
    cells.fail(key, Failure("no luck", False, ""))
    assert decision_of(cells).reason == "failed before: no luck"
    start(cells)
    assert decision_of(cells).reason == "failed before: no luck; 0 of 2 blocks are done"


def test_changed_weights(tmp_path, monkeypatch):
    cells = CellStore(tmp_path)
    start(cells, sources={"encoder": "old"})
    monkeypatch.setattr(TinyEncoder, "source_digest", lambda self: "new")
    decision = decision_of(cells)
    assert decision.stale
    assert decision.reason == "the weights of encoder 'a' have changed"


def test_weights_that_cannot_be_read_now_do_not_undo_a_finished_cell(tmp_path, monkeypatch):
    def gone(self):
        raise FileNotFoundError

    cells = CellStore(tmp_path)
    key = start(cells, sources={"encoder": "old"})
    cells.write(key, 0, block(0, 2))
    cells.write(key, 2, block(2, 3))
    cells.pack(key)
    monkeypatch.setattr(TinyEncoder, "source_digest", gone)
    assert decision_of(cells).action == "skip"


def test_a_changed_field_is_named(tmp_path):
    class Changed(Small):
        name = "small"
        encoders = (TinyEncoder(name="a", seed=2),)
        probes = (Norm(scales=(0.25, 1.0)),)

    cells = CellStore(tmp_path)
    start(cells)
    assert decision_of(cells, Changed).reason == (
        "key changed: encoder a: seed 1 → 2; probe norm: scales (0.5) → (0.25, 1.0)"
    )


def test_differences_of_nested_specs():
    before = {"type": "A", "version": "1", "fields": {"of": {"type": "B", "fields": {"n": 1}}, "x": None}}
    after = {"type": "A", "version": "2", "fields": {"of": {"type": "B", "fields": {"n": 2}}, "x": (0.5).hex()}}
    assert list(differences(before, after)) == ["of.n 1 → 2", "x None → 0.5", "version '1' → '2'"]
    assert list(differences(before, before)) == []
