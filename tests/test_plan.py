from __future__ import annotations

import os
import subprocess
import sys

import pytest

from geoframe.errors import BadInput
from geoframe.plan import Cell, Plan
from geoframe.probeset import ProbeSet
from geoframe.study import Study
from tests.doubles import Dots, Faded, Norm, TinyEncoder


class Small(Study):
    encoders = (TinyEncoder(name="a"), TinyEncoder(name="b", seed=1), TinyEncoder(name="copy of a"))
    probesets = (Dots(n=5), Faded(of=Dots()))
    probes = (Norm(),)


def test_every_combination_encoder_by_encoder():
    plan = Plan.of(Small.resolve())
    assert [cell.label for cell in plan.cells][:3] == ["a × dots × norm", "a × faded × norm", "b × dots × norm"]
    assert len(plan.cells) == 6


def test_cells_that_differ_in_names_only_are_one():
    plan = Plan.of(Small.resolve())
    assert len(plan.unique()) == 4
    assert plan.cells[0].key == plan.cells[4].key


def test_every_part_enters_the_key():
    base = Cell(TinyEncoder(), Dots(), Norm())
    others = (
        Cell(TinyEncoder(seed=1), Dots(), Norm()),
        Cell(TinyEncoder(), Dots(n=4), Norm()),
        Cell(TinyEncoder(), Dots(), Norm(repeats=2)),
        Cell(TinyEncoder(), Dots(), Norm(seed=1)),
    )
    assert len({base.key, *(cell.key for cell in others)}) == 5


def test_passes_are_unknown_where_the_count_is():
    assert Cell(TinyEncoder(), Dots(n=5), Norm(repeats=3)).passes() == 15
    unknown = Cell(TinyEncoder(), ProbeSet(), Norm(repeats=3))
    assert (unknown.passes(), unknown.passes(2)) == (None, 6)


def test_planning_imports_no_torch():
    code = (
        "from tests.test_plan import Small; from geoframe.plan import Plan; import sys\n"
        "keys = [cell.key for cell in Plan.of(Small.resolve()).cells]\n"
        "assert 'torch' not in sys.modules; print(*keys)"
    )
    root = os.path.dirname(os.path.dirname(__file__))
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [cell.key for cell in Plan.of(Small.resolve()).cells]


class Matched(Small):
    encoders = (TinyEncoder(name="a", seed=0), TinyEncoder(name="b", seed=1), TinyEncoder(name="c", seed=2))
    probesets = (Dots(n=2, seed=0), Dots(n=2, seed=1, name="one"), Faded(of=Dots()))
    match = "seed"


def test_only_what_agrees_in_a_coordinate_is_measured_together():
    cells = [(cell.encoder.label, cell.probeset.label) for cell in Plan.of(Matched.resolve()).cells]
    assert cells == [("a", "dots"), ("a", "faded"), ("b", "one"), ("b", "faded"), ("c", "faded")]


def test_nothing_agrees():
    with pytest.raises(BadInput, match="of the same seed, and none agree in it"):
        Plan.of(Matched.resolve(set=["encoders=c", "probesets=dots,one"]))


def test_a_match_is_a_text():
    with pytest.raises(BadInput, match="field 'match' must be a string"):
        type("Wrong", (Small,), {"match": 3, "__module__": __name__})


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ("sede", r"match='sede', but no encoder has that coordinate; did you mean 'seed'\?"),
        ("training", r"match='training', but no probe set has that coordinate"),
    ],
)
def test_a_match_that_would_pair_all_with_all_is_refused(match, message):
    wrong = type("Wrong", (Matched,), {"match": match, "__module__": __name__})
    with pytest.raises(BadInput, match=message):
        wrong.resolve()


def test_specs_of_a_preset_may_lack_the_coordinate():
    assert len(Plan.of(Matched.resolve("smoke")).cells) > 0
