from __future__ import annotations

import os
import subprocess
import sys

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
