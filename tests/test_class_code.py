"""Digests of the code behind a class: what it refers to counts, and nothing else."""

from __future__ import annotations

import importlib.util

import pytest

import geoframe as gf
from geoframe.class_code import code_of

LOSS = """
import helpers
from other import thing

FACTOR = 1.0
TITLE = "a study"
if True:
    SHIFT = 2

def scaled(x):
    return FACTOR * x + SHIFT

def unused():
    return TITLE, thing

def same(cls):
    return cls

@same
class Mine:
    def __call__(self, x):
        return scaled(x) + helpers.more(x)
"""


@pytest.fixture
def code(tmp_path):
    (tmp_path / "helpers.py").write_text("def more(x):\n    return x\n")
    (tmp_path / "other.py").write_text("thing = 1\n")

    def digests(source=LOSS):
        path = tmp_path / "mine.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("mine_for_a_test", path)
        module = importlib.util.module_from_spec(spec)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(tmp_path))
            patch.setitem(__import__("sys").modules, "mine_for_a_test", module)
            spec.loader.exec_module(module)
            return code_of(module.Mine)

    return digests


def test_files_and_names(code):
    assert set(code()) == {"mine.py: Mine", "helpers.py"}


@pytest.mark.parametrize("change", [("FACTOR = 1.0", "FACTOR = -1.0"), ("SHIFT = 2", "SHIFT = 3"), ("* x", "- x"),
                                    ("+ helpers", "- helpers"), ("return cls", "return  cls")])  # fmt: skip
def test_what_the_class_refers_to_counts(code, change):
    assert code()["mine.py: Mine"] != code(LOSS.replace(*change))["mine.py: Mine"]


@pytest.mark.parametrize(
    "change", [('"a study"', '"another"'), ("TITLE, thing", "TITLE"), ("FACTOR = 1.0\n", "\n\nFACTOR = 1.0\n")]
)
def test_what_it_does_not_refer_to_does_not(code, change):
    assert code() == code(LOSS.replace(*change))


def test_a_module_beside_it_counts_as_a_whole(code, tmp_path):
    before = code()
    (tmp_path / "helpers.py").write_text("def more(x):\n    return 2 * x\n")
    after = code()
    assert before["helpers.py"] != after["helpers.py"]
    assert before["mine.py: Mine"] == after["mine.py: Mine"]


def test_geoframes_own_and_what_has_no_file_have_none():
    assert code_of(gf.CrossEntropy) == {}
    assert code_of(type("Typed", (), {"__module__": "__nowhere__"})) == {}
