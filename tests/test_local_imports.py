from __future__ import annotations

import pytest

from geoframe.local_imports import local_files


@pytest.fixture
def write(tmp_path):
    def _write(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return _write


def names(tmp_path):
    return [path.relative_to(tmp_path.resolve()).as_posix() for path in local_files(tmp_path / "main.py")]


def test_what_a_file_imports_beside_it_is_found_through_one_another(tmp_path, write):
    write(
        main="import torch, one\ndef f():\n    from two import x",
        one="from deep import three",
        two="import main",
        deep__three="",
        other="raise SystemExit",
    )
    assert names(tmp_path) == ["main.py", "deep/three.py", "one.py", "two.py"]


def test_packages_and_relative_imports(tmp_path, write):
    write(main="import pack.a.b, pack.c", pack__a__b="from . import d\nfrom ..e import f", pack__a__d="", pack__e="")
    (tmp_path / "pack" / "__init__.py").write_text("raise SystemExit")
    (tmp_path / "pack" / "a" / "__init__.py").write_text("")
    assert names(tmp_path) == [
        "main.py",
        "pack/__init__.py",
        "pack/a/__init__.py",
        "pack/a/b.py",
        "pack/a/d.py",
        "pack/e.py",
    ]


def test_a_neighbour_that_is_not_python_counts_as_a_file(tmp_path, write):
    write(main="import broken", broken="def (")
    assert names(tmp_path) == ["main.py", "broken.py"]
