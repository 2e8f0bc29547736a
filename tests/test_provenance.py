from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoframe
from geoframe.provenance import git_commit, machine, readable, versions
from tests.doubles import Dots, Norm, TinyEncoder


@pytest.fixture
def repository(tmp_path):
    def git(*arguments):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "first")
    return tmp_path


def test_commit_and_changes(repository):
    commit = git_commit(repository)
    assert len(commit) == 40
    (repository / "untracked").write_text("")
    git_commit.cache_clear()
    assert git_commit(repository) == commit
    (repository / "file").write_text("2")
    git_commit.cache_clear()
    assert git_commit(repository) == commit + "+changes"


def test_results_have_the_commit_of_the_studys_folder_and_measure_that_of_the_current_one(
    repository, tmp_path_factory, monkeypatch
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    (repository / "study.py").write_text(
        "import geoframe as gf\nfrom tests.doubles import Dots, Norm, TinyEncoder\n"
        "class Small(gf.Study):\n    encoders, probesets, probes = (TinyEncoder(),), (Dots(n=1),), (Norm(),)\n"
    )
    git_commit.cache_clear()
    commit = git_commit(repository)
    results = geoframe.run(repository / "study.py", out=elsewhere / "out", device="cpu")
    run = json.loads((elsewhere / "out" / "run.json").read_text())
    assert results["norm"].attrs["git_commit"] == run["provenance"]["git_commit"] == commit != ""
    assert geoframe.measure(Norm(), TinyEncoder(), Dots(n=1), device="cpu").attrs["git_commit"] == ""


def test_no_repository_and_no_git_are_no_error(tmp_path, monkeypatch):
    assert git_commit(tmp_path / "outside") == ""
    monkeypatch.setenv("PATH", "")
    assert git_commit(tmp_path / "without git") == ""


def test_versions_and_machine():
    assert versions()["geoframe"] == geoframe.__version__
    assert {"python", "torch", "numpy", "xarray", "zarr"} <= set(versions())
    assert set(machine()) == {"system", "machine"}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimals_round_trip(number):
    shown = readable(json.loads(json.dumps({"a": [float(number).hex()]})))
    assert json.loads(json.dumps(shown))["a"][0] == number


def test_long_lists_are_told_apart_by_a_digest():
    one, other = readable(list(range(100))), readable([*range(99), 0])
    assert one["items"] == other["items"] == 100
    assert one["digest"] != other["digest"]
    assert readable(["0x12", "text", None, 3]) == ["0x12", "text", None, 3]
