from __future__ import annotations

import errno

import pytest

from geoframe.files import CannotWrite, read_json, remove, sweep, write_json, writing


def test_json_is_written_in_one_step(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"η": 1})
    assert read_json(path) == {"η": 1}
    with pytest.raises(TypeError):
        write_json(path, {"x": object()})
    assert read_json(path) == {"η": 1}
    sweep(tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["x.json"]


def test_what_is_no_json_is_as_good_as_absent(tmp_path):
    (tmp_path / "x.json").write_text('{"half":')
    assert read_json(tmp_path / "x.json") is None
    assert read_json(tmp_path / "y.json") is None


def test_sweeping_takes_half_written_files_and_folders_only(tmp_path):
    (tmp_path / "a.partial").mkdir()
    (tmp_path / "a.partial" / "b").write_text("")
    (tmp_path / ".c.partial").write_text("")
    (tmp_path / "d").write_text("")
    sweep(tmp_path)
    assert [found.name for found in tmp_path.iterdir()] == ["d"]
    remove(tmp_path / "absent")


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "free some space"), (errno.EACCES, "choose another folder with --out")]
)
def test_errors_are_one_line_with_advice(tmp_path, number, advice):
    with pytest.raises(CannotWrite, match=advice) as error, writing(tmp_path):
        raise OSError(number, "some\nreason")
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
