from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoframe.errors import BadInput
from geoframe.probesets.drawing import draw

NAMES = st.sets(st.text(min_size=1), min_size=1, max_size=30)


@given(NAMES, st.data())
def test_a_draw_depends_on_the_set_of_names_and_the_seed_only(names, data):
    n, seed = data.draw(st.integers(1, len(names))), data.draw(st.integers())
    order = data.draw(st.permutations(sorted(names)))
    drawn = draw(order, n, seed, "names")
    assert drawn == draw(names, n, seed, "names") == sorted(drawn)
    assert len(set(drawn)) == n
    assert draw(order, None, seed, "names") == sorted(names)


@given(NAMES, st.data())
def test_draws_are_nested(names, data):
    n = data.draw(st.integers(1, len(names)))
    drawn = draw(names, n, 3, "names")
    assert set(draw(names, max(1, n - 1), 3, "names")) <= set(drawn)
    assert draw({*drawn, *sorted(names)[:5]}, n, 3, "names") == drawn


def test_seeds_differ_and_every_name_has_its_chance():
    names = [str(i) for i in range(20)]
    draws = [draw(names, 5, seed, "names") for seed in range(400)]
    counts = [sum(name in drawn for drawn in draws) for name in names]
    assert len({tuple(drawn) for drawn in draws}) > 350
    assert min(counts) > 60  # 100 expected, standard deviation 9
    assert max(counts) < 140


def test_the_draw_is_fixed_for_good():
    assert draw([f"{i:03d}" for i in range(1000)], 4, 0, "names") == ["125", "185", "542", "892"]


def test_too_few_names_are_an_error():
    with pytest.raises(BadInput, match="3 asked for, but there are only 2 cats: lower n"):
        draw("ab", 3, 0, "cats")
