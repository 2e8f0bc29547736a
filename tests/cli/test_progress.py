from __future__ import annotations

import io

from rich.console import Console

from geoframe.cli.progress import BarProgress, LineProgress, progress_for
from geoframe.plan import Cell
from tests.doubles import Dots, Norm, TinyEncoder

CELL = Cell(TinyEncoder(name="a"), Dots(), Norm())


def tell(progress):
    progress.begin([(CELL, 10), (CELL, 0)])
    progress.started(CELL)
    progress.advance(5)
    progress.more(CELL, 5)
    progress.advance(3)
    progress.ended(CELL, 1.5)
    progress.say("[something] happened")
    progress.ended(CELL, 0.1, "no luck")
    progress.end()


def test_lines_have_no_control_codes():
    out = io.StringIO()
    progress = progress_for(Console(file=out, width=200))
    assert type(progress) is LineProgress
    tell(progress)
    start, first, second, third = out.getvalue().splitlines()
    assert start == "[1/2] a × dots × norm: started"
    assert first.startswith("[1/2] a × dots × norm: done in 1.5 s; about 1.3 s left")  # 8 of 15 are done
    assert second == "[something] happened"
    assert third == "[2/2] a × dots × norm: failed"  # the cause is said once, at the end


def test_long_runs_say_how_far_they_are_at_each_tenth_at_most(monkeypatch):
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr("geoframe.cli.progress.time.monotonic", lambda: now[0])
    progress = LineProgress(Console(file=out, width=200))
    progress.begin([(CELL, 100)])
    now[0] = 50.0  # loading doesn't count
    progress.started(CELL)
    for _ in range(100):
        now[0] += 1.0
        progress.advance(1)
    _, first, second, *_, last = lines = out.getvalue().splitlines()
    assert first == "[1/1] 10% of all; about 90 s left"
    assert second == "[1/1] 20% of all; about 80 s left"
    assert last == "[1/1] 90% of all; about 10 s left"
    assert len(lines) == 10


def test_slow_runs_say_how_far_they_are_each_minute(monkeypatch):
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr("geoframe.cli.progress.time.monotonic", lambda: now[0])
    progress = LineProgress(Console(file=out, width=200))
    progress.begin([(CELL, 1000)])
    progress.started(CELL)
    for _ in range(13):
        now[0] += 15.0
        progress.advance(1)
    _, *lines = out.getvalue().splitlines()
    assert [line.split(";")[0] for line in lines] == [f"[1/1] {share}% of all" for share in ("0.4", "0.8", "1.2")]


def test_time_left_goes_by_the_pace_of_the_same_probe():
    """Of an exact search, say, which was planned as passes that it doesn't make."""
    out = io.StringIO()
    progress = LineProgress(Console(file=out, width=200))
    slow, fast = (Cell(TinyEncoder(name="a"), Dots(), Norm(name=name)) for name in ("slow", "fast"))
    again = Cell(TinyEncoder(name="b"), Dots(), Norm(name="slow"))
    progress.begin([(slow, 10), (fast, 10), (again, 20)])
    for cell, seconds in ((slow, 100.0), (fast, 1.0)):
        progress.started(cell)
        progress.advance(10)
        progress.ended(cell, seconds)
    first, second = (line for line in out.getvalue().splitlines() if "done" in line)
    assert first.endswith("about 5 min left")  # of the other probe nothing is known yet
    assert second.endswith("about 3 min left")


def test_short_runs_do_not(monkeypatch):
    out = io.StringIO()
    progress = LineProgress(Console(file=out, width=200))
    progress.begin([(CELL, 10)])
    progress.started(CELL)
    progress.advance(5)
    assert out.getvalue() == "[1/1] a × dots × norm: started\n"


def test_bars_show_the_cell_the_share_and_the_time_left(monkeypatch):
    monkeypatch.setattr("geoframe.cli.progress.QUIET", 0.0)
    out = io.StringIO()
    progress = progress_for(Console(file=out, width=200, force_terminal=True, highlight=False))
    assert type(progress) is BarProgress
    tell(progress)
    assert "53%" in out.getvalue()
    assert "of all" not in out.getvalue()
    assert "a × dots × norm: done in 1.5 s" in out.getvalue()
    assert "[something] happened" in out.getvalue()


def test_a_run_that_ends_before_it_began_leaves_no_bar():
    BarProgress(Console(file=io.StringIO(), force_terminal=True)).end()


def test_cells_that_are_computed_again_count_and_no_time_left_is_not_said():
    out = io.StringIO()
    progress = LineProgress(Console(file=out, width=200))
    progress.begin([(CELL, 3)])
    progress.more_cells(1)
    progress.started(CELL)
    progress.advance(3)
    progress.ended(CELL, 1.5)
    progress.ended(CELL, 1.5)
    assert out.getvalue().splitlines()[1:] == [
        "[1/2] a × dots × norm: done in 1.5 s",
        "[2/2] a × dots × norm: done in 1.5 s",
    ]
