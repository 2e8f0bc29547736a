from __future__ import annotations

import json

import pytest
import xarray as xr

import geoframe as gf
from geoframe.errors import BadInput, MissingFile, StoreConflict
from geoframe.store import FORMAT, RunFolder


def claim(path, study="s"):
    folder = RunFolder(path)
    with folder.claimed(study):
        described = dict.fromkeys(("title", "reference", "preset"), "") | {"name": study, "set": []}
        folder.run_json.write_text(json.dumps({"format": FORMAT, "study": described, "plan": [], "log": []}))
    return folder


def test_a_folder_of_the_same_study_is_taken_again(tmp_path):
    claim(tmp_path / "run")
    claim(tmp_path / "run")


def test_a_folder_of_another_study_is_refused_and_not_touched(tmp_path):
    folder = claim(tmp_path / "run")
    (folder.cells / "x.partial").write_text("")
    with pytest.raises(StoreConflict, match="holds a run of study 's', not 't': choose another --out"):
        claim(tmp_path / "run", "t")
    assert (folder.cells / "x.partial").exists()


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StoreConflict, match="not a run of geoframe"):
        claim(tmp_path)


def test_a_run_killed_before_run_json_can_be_repeated(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / ".lock").write_text("")
    (tmp_path / "run.json.partial").write_text("{")
    claim(tmp_path)
    assert not (tmp_path / "run.json.partial").exists()


def test_two_runs_cannot_write_one_folder(tmp_path):
    with RunFolder(tmp_path / "run").claimed("s"), pytest.raises(StoreConflict, match="written by another run"):
        claim(tmp_path / "run")


def test_a_path_that_is_a_file_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(BadInput) as error:
            claim(path)
        assert "\n" not in str(error.value)


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path):
    folder = claim(tmp_path)
    xr.Dataset(attrs={"n": 1}).to_zarr(folder.results, consolidated=False)
    folder.results.rename(tmp_path / "results.zarr.previous")
    claim(tmp_path)
    assert gf.open(tmp_path).attrs["n"] == 1
    assert not (tmp_path / "results.zarr.previous").exists()


def test_swapping_replaces_the_former_results(tmp_path):
    folder = claim(tmp_path)
    for n in (1, 2):
        xr.Dataset(attrs={"n": n}).to_zarr(tmp_path / "new", consolidated=False)
        folder.swap_results(tmp_path / "new")
    assert gf.open(tmp_path / "results.zarr").attrs["n"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells", "results.zarr", "run.json"]


def test_open_says_what_is_missing(tmp_path):
    with pytest.raises(MissingFile, match="holds no results of a run"):
        gf.open(tmp_path)
    claim(tmp_path)
    with pytest.raises(MissingFile, match=r"holds run\.json but no results yet"):
        gf.open(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "3", '{"format": 1}', '{"format": 1, "study": 3, "plan": [], "log": []}', '{"format": 1, "log": {}}'],
)
def test_a_damaged_run_json_is_refused(tmp_path, text):
    folder = claim(tmp_path / "run")
    folder.run_json.write_text(text)
    assert folder.read() is None
    with pytest.raises(StoreConflict, match=r"holds run.json that can't be read: choose another --out"):
        claim(tmp_path / "run")
