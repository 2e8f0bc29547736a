"""Digests of the code behind a class: what it refers to counts, and nothing else."""

from __future__ import annotations

import importlib.util
import linecache
import os
import subprocess
import sys
import types

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


def test_geoframes_own_and_installed_classes_have_none():
    assert code_of(gf.CrossEntropy) == {}
    assert code_of(pytest.MonkeyPatch) == {}


TYPED = """
FACTOR = 1.0
CALLS = 0
TITLE = "a study"
SEEN = []
fold = sum
half = 8  # called as an attribute of Mine is

def scaled(x):
    return fold([FACTOR * x - 1j, 0])

def unused():
    return TITLE

class Base:
    def offset(self):
        return 1

class Mine(Base):
    power, calls = (2, 3), 0

    @property
    def half(self):
        return 0.5

    @staticmethod
    def kept(x, least=-1, *, most=9):
        return [each for each in x if each in {"a", "b", "c"}]

    def __call__(self, x):
        global CALLS
        CALLS += 1
        Mine.calls += 1
        SEEN.append(x)
        return scaled(x) ** self.power[0] * self.half + self.offset()

def made(shift):
    class Inner:
        def __call__(self, x):
            return x + shift
    return Inner

Inner = made(4)
"""


def typed(source=TYPED, name="Mine"):
    """A class of a module that has no file, as at a prompt."""
    known = {"__name__": "typed_for_a_test"}
    exec(compile(source, "<stdin>", "exec"), known)
    return known[name]


def test_a_class_without_a_file_has_one_digest():
    assert set(code_of(typed())) == {"typed_for_a_test: Mine"}
    assert len(code_of(typed())["typed_for_a_test: Mine"]) == 64


COUNTS = [
    ("FACTOR = 1.0", "FACTOR = -1.0"), ("FACTOR * x", "FACTOR - x"), ("return 1", "return 2"), ("(2, 3)", "(2, 4)"),
    ("0.5", "0.25"), ('"a", "b"', '"a", "d"'), ("-1", "-2"), ("most=9", "most=8"), ("** self", "- self"),
    ("(Base)", ""), (".half", ".power[1]"), ("fold = sum", "fold = max"), ("- 1j", "- 2j"),
]  # fmt: skip


@pytest.mark.parametrize("change", COUNTS)
def test_without_a_file_too_what_the_class_refers_to_counts(change):
    assert change[0] in TYPED
    assert code_of(typed(TYPED.replace(*change))) != code_of(typed())


@pytest.mark.parametrize(
    "change",
    [
        ('"a study"', '"another"'),
        ("return TITLE", "return 5"),
        ("FACTOR = 1.0", "\n\nFACTOR = 1.0"),
        ("half = 8", "half = 9"),
    ],
)
def test_without_a_file_too_what_it_does_not_refer_to_does_not(change):
    assert code_of(typed(TYPED.replace(*change))) == code_of(typed())


def test_what_surrounds_a_class_without_a_file_counts():
    assert code_of(typed(name="Inner")) == code_of(typed(name="Inner"))
    assert code_of(typed(TYPED.replace("made(4)", "made(5)"), "Inner")) != code_of(typed(name="Inner"))


def test_calling_it_does_not_change_it():
    mine = typed()
    before = code_of(mine)
    mine()(1.0)
    assert mine.calls == 1
    assert code_of(mine) == before


def test_it_is_the_same_in_every_process():
    code = "import sys; from tests.test_class_code import *; print(code_of(typed()))"
    said = {
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
                       text=True, check=True).stdout for seed in ("1", "2", "3")
    }  # fmt: skip
    assert said == {f"{code_of(typed())}\n"}


def test_where_an_interpreter_keeps_the_lines_they_are_read(monkeypatch):
    def cell(source):
        monkeypatch.setitem(linecache.cache, "<cell>", (len(source), None, source.splitlines(keepends=True), "<cell>"))
        known = {"__name__": "typed_for_a_test"}
        exec(compile(source, "<cell>", "exec"), known)
        return code_of(known["Mine"])

    first = cell(TYPED)
    assert cell(TYPED) == first
    assert cell("\n\n" + TYPED) == first
    assert cell(TYPED.replace("SEEN.append(x)", "SEEN.append(x)  # all")) != first
    assert first != code_of(typed())


def test_a_class_that_the_file_of_its_module_does_not_hold(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("FACTOR = 1\n")
    module = types.ModuleType("typed_for_a_test")
    module.__file__ = str(tmp_path / "mine.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert code_of(typed(TYPED.replace("1.0", "2.0"))) != code_of(typed())
