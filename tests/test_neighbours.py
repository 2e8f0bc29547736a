from __future__ import annotations

import sys

import pytest

from geoframe.neighbours import neighbours


@pytest.fixture
def folders(tmp_path):
    """Two folders with a `helper_of_test` each, that says where it is; afterwards nothing of it is left."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper_of_test.py").write_text(f"WHERE = {name!r}\n")
    yield tmp_path / "a", tmp_path / "b"
    sys.modules.pop("helper_of_test", None)


def helper(folder):
    with neighbours(folder):
        import helper_of_test

        return helper_of_test


def test_each_folder_gets_its_own(folders):
    a, b = folders
    path, first = [*sys.path], helper(a)
    assert [helper(folder).WHERE for folder in (b, a, b)] == ["b", "a", "b"]
    assert helper(a) is first
    assert sys.path == path
    assert sys.modules["helper_of_test"] is first  # as before the others came


def test_an_edited_neighbour_is_imported_anew(folders):
    a, b = folders
    assert (helper(a).WHERE, helper(b).WHERE) == ("a", "b")
    (a / "helper_of_test.py").write_text("WHERE = 'c'\n")
    (b / "helper_of_test.py").write_text("WHERE = 'd'\n")
    assert (helper(a).WHERE, helper(b).WHERE) == ("c", "d")


def test_a_module_from_elsewhere_is_put_aside_and_back(folders, monkeypatch):
    a, b = folders
    monkeypatch.syspath_prepend(b)
    import helper_of_test

    assert helper(a).WHERE == "a"
    assert sys.modules["helper_of_test"] is helper_of_test


def test_python_and_geoframe_cannot_be_replaced(folders):
    import json

    import geoframe

    for name in ("json", "geoframe"):
        (folders[0] / f"{name}.py").write_text("raise SystemExit\n")
    with neighbours(folders[0]):
        assert (sys.modules["json"], sys.modules["geoframe"]) == (json, geoframe)


def test_everything_is_restored_after_an_error(folders):
    path = [*sys.path]
    with pytest.raises(KeyError), neighbours(folders[0]):
        raise KeyError
    assert sys.path == path
