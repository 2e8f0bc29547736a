from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
import xarray as xr

from geoframe.cells import CellStore, Failure, Record
from geoframe.errors import BadInput
from geoframe.files import CannotWrite


def record(**changes):
    base = Record(
        key="k",
        names={"encoder": "e", "probeset": "s", "probe": "p"},
        identity={},
        settings={"device": "cpu"},
        blocks=[(0, 2), (2, 3)],
        encoder_digest="w",
        images_digest="i",
    )
    return attrs.evolve(base, **changes)


def block(start, stop):
    rows = np.arange(start, stop)
    return xr.Dataset(
        {"x": ("image", np.full(len(rows), np.nan)), "ok": ("image", rows < 0), "word": ("image", rows.astype(str))},
        coords={"image": rows},
    )


@pytest.fixture
def cells(tmp_path):
    return CellStore(tmp_path)


def test_blocks_become_a_cell(cells, tmp_path):
    cells.start(record())
    cells.write("k", 0, block(0, 2))
    assert not cells.is_finished("k")
    assert record().missing(cells.done(record())) == [(2, 3)]
    cells.write("k", 2, block(2, 3))
    assert cells.is_finished("k")
    before = cells.read("k")
    cells.pack("k")
    cells.pack("k")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.settings.json", "k.zarr"]
    assert cells.is_finished("k")
    xr.testing.assert_identical(cells.read("k"), before)
    assert before["word"].values.tolist() == ["0", "1", "2"]
    assert np.isnan(before["x"]).all()


def test_half_written_blocks_do_not_count(cells, tmp_path):
    cells.start(record())
    (tmp_path / "k-00000000.partial").mkdir()
    assert cells.done(record()) == set()


def test_settings_are_kept_on_resume_and_blocks_with_them(cells):
    cells.start(record())
    cells.write("k", 0, block(0, 2))
    cells.start(record(names={"encoder": "renamed", "probeset": "s", "probe": "p"}, sources={"encoder": "later"}))
    assert cells.done(record()) == {0}
    assert cells.record("k").names["encoder"] == "renamed"


@pytest.mark.parametrize("change", [{"encoder_digest": "other"}, {"images_digest": "o"}, {"settings": {"device": "x"}}])
def test_another_start_removes_the_blocks_of_the_first(cells, change):
    cells.start(record())
    cells.write("k", 0, block(0, 2))
    cells.start(record(**change))
    assert cells.done(record()) == set()


def test_a_damaged_record_is_as_good_as_none(cells, tmp_path):
    (tmp_path / "k.settings.json").write_text('{"key": "k"}')
    (tmp_path / "l.settings.json").write_text("{")
    for name, change in (("m", {"blocks": [[0]]}), ("n", {"settings": 3}), ("o", {"sources": None}), ("p", {"x": 1})):
        (tmp_path / f"{name}.settings.json").write_text(json.dumps({**attrs.asdict(record()), **change}))
    assert [cells.record(name) for name in "klmnop"] == [None] * 6
    assert list(cells.records()) == []


def lose(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [lose, empty, flip])
@pytest.mark.parametrize("file", ["zarr.json", "x/zarr.json", "image/c/0"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_group_is_not_done_and_is_written_again(cells, tmp_path, damage, file, packed):
    cells.start(record())
    for start, stop in record().blocks:
        cells.write("k", start, block(start, stop))
    before = cells.read("k")
    if packed:
        cells.pack("k")
    assert not cells.damaged("k")
    damage(tmp_path / ("k.zarr" if packed else "k-00000000.zarr") / file)
    assert cells.damaged("k")
    assert not cells.is_finished("k")
    for start, stop in record().missing(cells.done(record())):
        cells.write("k", start, block(start, stop))
    cells.pack("k")
    assert cells.is_finished("k")
    assert not cells.damaged("k")
    xr.testing.assert_identical(cells.read("k"), before)


def test_a_failure_written_by_another_version_is_none(cells, tmp_path):
    (tmp_path / "k.failed.json").write_text('{"why": "?"}')
    assert cells.failure("k") is None


def test_a_cause_of_unknown_encoding_is_kept_readable(cells):
    cells.fail("k", Failure.of(ValueError("no file caf\udce9.png")))
    assert cells.failure("k").cause == "ValueError: no file caf\\udce9.png"


def test_failures_are_kept_until_forgiven(cells):
    try:
        raise RuntimeError("it\nbroke")
    except RuntimeError as error:
        cells.fail("k", Failure.of(error))
    failure = cells.failure("k")
    assert failure.cause == "RuntimeError: it broke"
    assert not failure.bad_input
    assert "Traceback" in failure.traceback
    assert Failure.of(BadInput("no")).bad_input
    cells.forgive("k")
    assert cells.failure("k") is None


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    cells = CellStore(tmp_path / "file")
    with pytest.raises(CannotWrite, match=r"can't write .*choose another folder with --out"):
        cells.start(record())
