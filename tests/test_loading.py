from __future__ import annotations

import attrs
import pytest

from geoframe.encoder import Encoder
from geoframe.errors import BadInput, MissingFile, UnknownName
from geoframe.loading import find_study
from geoframe.study import Study

GOOD = """
import attrs, geoframe as gf
from tests.doubles import Dots, Norm, TinyEncoder

@attrs.frozen(kw_only=True)
class Mine(TinyEncoder):
    "An encoder of this file."

class One(gf.Study):
    "The first."
    encoders, probesets, probes = (Mine(),), (Dots(),), (Norm(),)
"""


@pytest.fixture
def write(tmp_path):
    def _write(text, name="some_study.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return _write


def test_a_file_with_one_study(write):
    found = find_study(write(GOOD))
    assert found.study.title == "The first."
    assert found.reference.endswith("some_study.py::One")
    assert find_study(found.reference).study.name == "one"


def test_keys_of_classes_of_a_file_do_not_depend_on_its_path(write):
    first, second = (find_study(write(GOOD, name)).study for name in ("a.py", "sub/b.py"))
    assert first.encoders[0].key == second.encoders[0].key


def test_several_studies_need_a_choice(write):
    path = write(GOOD + "\nclass Two(One):\n    pass\n")
    with pytest.raises(BadInput, match=r"holds 2 studies \(One, Two\): choose one, .*some_study.py::One"):
        find_study(path)
    assert find_study(f"{path}::Two").study.name == "two"
    with pytest.raises(UnknownName, match=r"has no study 'Tow'; did you mean 'Two'\?"):
        find_study(f"{path}::Tow")


def test_a_private_base_is_no_choice(write):
    path = write(GOOD.replace("class One(", "class _Base(") + "\nclass Two(_Base):\n    pass\n")
    assert find_study(path).study.name == "two"


def test_a_study_file_can_import_its_neighbours(write):
    write("WIDTH = 5\n", "neighbour_of_study.py")
    path = write(GOOD.replace("(Mine(),)", "(Mine(width=WIDTH),)") + "\n", "s.py")
    path.write_text("from neighbour_of_study import WIDTH\n" + path.read_text())
    assert find_study(path).study.encoders[0].width == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nclass A(:\n", r"some_study.py:2: syntax error"),
        ("x = 1\n", r"holds no study: write class Name\(geoframe.Study\)"),
        ("\nimport nonsense_module\n", r"some_study.py:2: ModuleNotFoundError: No module named 'nonsense_module'"),
        ("\n\n1 / 0\n", r"some_study.py:3: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", r"some_study.py:1: SystemExit"),
        ("\0", "can't be read as Python|syntax error"),
        (
            GOOD + "\nclass Two(gf.Study):\n    enconders = ()\n",
            r"some_study.py:13: study Two: no field 'enconders'; did you mean 'encoders'\?",
        ),
        (
            GOOD.replace("Norm()", "Norm(repeats='x')"),
            r"some_study.py:11: Norm: 'repeats' must be <class 'int'> \(got 'x' that is a <class 'str'>\)\.",
        ),
        (GOOD.replace("@attrs.frozen(kw_only=True)\n", "") .replace('"An encoder of this file."', "w: int = 3"),
         r"some_study.py:\d+: Mine \(some_study.py\) is missing a decorator: put @attrs.frozen"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line_with_its_place(write, text, message):
    path = write(text)
    with pytest.raises(BadInput, match=message) as error:
        find_study(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_an_unknown_name():
    with pytest.raises(MissingFile, match=r"no study file nowhere\.py"):
        find_study("nowhere.py")
    with pytest.raises(UnknownName, match=r"^no study 'bupm'; did you mean 'bump'\?$"):
        find_study("bupm")
    with pytest.raises(UnknownName, match=r"no study 'zzzzzzzz'.*; a study is a file, a file.py::Name, or a name in"):
        find_study("zzzzzzzz")


def test_a_file_of_that_name_is_suggested(write, tmp_path, monkeypatch):
    write(GOOD, "mine.py")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownName, match=r"^no study 'mine'; did you mean mine\.py\?$"):
        find_study("mine")


def test_a_class_is_taken_as_it_is():
    class Here(Study):
        pass

    assert find_study(Here).study is Here
    assert find_study(Here).reference == ""
    for wrong in (Study, Encoder, attrs.Attribute):
        with pytest.raises(BadInput, match="is not a study"):
            find_study(wrong)
