"""The shape of profiles known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoframe.errors import BadInput
from geoframe.statistics.profile import BumpRule, Shape, profile_shape

ETA = np.logspace(-2, 2, 17)
UNEVEN = np.array([0.01, 0.02, 0.1, 0.5, 0.7, 2.0, 9.0, 20.0, 100.0])


def parabola(eta: np.ndarray, top: float = np.log(5.0), place: float = np.log(3.0), bend: float = 0.5) -> np.ndarray:
    return np.exp(top - bend * (np.log(eta) - place) ** 2)


def bump_profile(eta: np.ndarray, place: float = 3.0, height: float = 5.0) -> np.ndarray:
    """1 at small η, a hump, and a fall."""
    return (1 + (height - 1) * np.exp(-((np.log(eta / place)) ** 2) / 2)) / (1 + (eta / (8 * place)) ** 2)


@pytest.mark.parametrize("eta", [ETA, UNEVEN])
def test_a_log_parabola_gives_its_vertex_exactly(eta):
    shape = profile_shape(eta, parabola(eta))
    np.testing.assert_allclose([shape.height, shape.scale], [5.0, 3.0], rtol=1e-10)
    assert shape.peak
    assert shape.decays
    assert not shape.plateau  # a log-parabola starts far below 1
    assert not shape.bump


@pytest.mark.parametrize(("gap", "overshoots"), [(2.9, True), (3.2, False), (1e-9, False)])
def test_very_uneven_gaps_beside_a_peak_do_not_overshoot(gap, overshoots):
    shape = profile_shape(np.exp([0.0, 1.0, 1.0 + gap]), [1.0, 2.0, 1.9])
    assert (float(shape.height) > 2.0001) is overshoots
    assert float(shape.height) < 3


def test_width_of_a_fine_log_parabola():
    eta = np.logspace(-2, 2, 4001)
    half = np.sqrt(np.log(5.0 / 3.0) / 0.5)  # r = 1 + (5 - 1) / 2
    assert float(profile_shape(eta, parabola(eta)).width) == pytest.approx(2 * half / np.log(10), rel=1e-4)


def test_width_is_interpolated_in_log_log():
    eta = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])
    ratio = np.array([1.0, 1.0, 9.0, 1.0, 1.0])  # vertex at the middle rung, level 5
    crossing = 1 - np.log(5) / np.log(9)
    assert float(profile_shape(eta, ratio).width) == pytest.approx(2 * crossing)


def test_the_whole_bump():
    shape = profile_shape(ETA, bump_profile(ETA))
    assert shape.plateau & shape.peak & shape.decays & shape.bump & ~shape.censored
    assert float(shape.tail_slope) == pytest.approx(-2, abs=0.2)


def test_a_constant_profile_has_plateau_only():
    shape = profile_shape(ETA, np.ones(17))
    assert shape.plateau
    assert not (shape.peak | shape.decays | shape.censored | shape.bump)
    assert np.isnan([shape.height, shape.scale, shape.width]).all()
    assert float(shape.tail_slope) == pytest.approx(0)


def test_a_rise_to_the_end_is_censored_not_a_peak():
    shape = profile_shape(ETA, 1 + ETA)
    assert shape.censored
    assert not shape.peak
    assert np.isnan(shape.height)


def test_a_fall_from_one_is_neither_peak_nor_censored():
    shape = profile_shape(ETA, 1 / (1 + ETA**2))
    assert shape.plateau & shape.decays
    assert not (shape.peak | shape.censored)
    assert float(shape.tail_slope) == pytest.approx(-2, abs=0.01)


def test_a_fall_from_above_the_plateau_is_censored_at_the_start():
    shape = profile_shape(ETA, 5 / (1 + ETA))
    assert shape.censored
    assert not (shape.plateau | shape.peak)


def test_a_low_interior_maximum_is_measured_but_is_no_peak():
    shape = profile_shape(ETA, bump_profile(ETA, height=1.25))
    assert not shape.peak
    assert 1.1 < float(shape.height) < 1.3
    assert profile_shape(ETA, bump_profile(ETA, height=1.25), BumpRule(peak_minimum=1.1)).peak


def test_width_is_censored_where_a_side_does_not_come_down():
    ratio = np.r_[1.0, 1.0, 9.0, 8.0, 7.0]
    shape = profile_shape(np.logspace(0, 4, 5), ratio)
    assert shape.peak
    assert np.isnan(shape.width)
    assert not shape.decays


def test_invalid_rungs_are_skipped():
    holes = bump_profile(ETA)
    holes[[0, 1, 5, 12]] = np.nan
    holes[16] = 0.0  # not a ratio that a logarithm can take
    keep = np.flatnonzero(np.isfinite(holes) & (holes > 0))
    assert_same(profile_shape(ETA, holes), profile_shape(ETA[keep], holes[keep]))


@pytest.mark.parametrize("valid", [0, 1, 2])
def test_fewer_than_three_valid_rungs_give_nothing(valid):
    ratio = np.full(17, np.nan)
    ratio[:valid] = 1.0
    assert_nothing(profile_shape(ETA, ratio))
    assert_nothing(profile_shape(ETA[:valid], ratio[:valid]))


def assert_nothing(shape: Shape) -> None:
    assert not (shape.plateau | shape.peak | shape.decays | shape.censored | shape.bump)
    assert np.isnan([shape.height, shape.scale, shape.width, shape.tail_slope]).all()


def assert_same(a: Shape, b: Shape, **scaled: float) -> None:
    for field in Shape.__slots__:
        if field.startswith("__"):
            continue
        expected = getattr(b, field) * scaled.get(field, 1) if field in scaled else getattr(b, field)
        np.testing.assert_allclose(getattr(a, field), expected, rtol=1e-6, atol=1e-7, err_msg=field)


def test_many_profiles_are_measured_as_each_one_alone():
    rng = np.random.default_rng(0)
    ratio = np.exp(rng.normal(size=(4, 5, 17)))
    ratio[rng.random(ratio.shape) < 0.3] = np.nan
    together = profile_shape(ETA, ratio)
    for place in np.ndindex(4, 5):
        alone = profile_shape(ETA, ratio[place])
        assert_same(Shape(*(getattr(together, f)[place] for f in Shape.__slots__ if not f.startswith("__"))), alone)


def test_the_order_of_scales_does_not_matter():
    order = np.random.default_rng(1).permutation(17)
    assert_same(profile_shape(ETA[order], bump_profile(ETA)[order]), profile_shape(ETA, bump_profile(ETA)))


@pytest.mark.parametrize("eta", [[0.0, 1, 2], [1.0, 1, 2], [1.0, np.nan, 2], [1.0, 2.0]])
def test_scales_that_cannot_be_a_ladder_are_refused(eta):
    with pytest.raises(BadInput):
        profile_shape(eta, [1.0, 2.0, 1.0])


logs = st.lists(st.floats(-6, 6), min_size=3, max_size=12)


@settings(deadline=None)
@given(logs, st.floats(-3, 3), st.sets(st.integers(0, 11), max_size=4))
def test_scaling_eta_moves_the_peak_and_nothing_else(log_r, shift, holes):
    ratio = np.exp(np.round(log_r, 3))
    ratio[[h for h in holes if h < ratio.size]] = np.nan
    eta = np.logspace(-2, 2, ratio.size)
    factor = 10.0**shift
    assert_same(profile_shape(eta * factor, ratio), profile_shape(eta, ratio), scale=factor)


@settings(deadline=None)
@given(logs)
def test_the_vertex_lies_between_the_peaks_neighbours_and_not_below_it(log_r):
    ratio = np.exp(np.round(log_r, 3))
    eta = np.logspace(-2, 2, ratio.size)
    shape, top = profile_shape(eta, ratio), int(np.argmax(ratio))
    if 0 < top < ratio.size - 1:
        assert shape.height >= ratio[top] * (1 - 1e-12)
        assert eta[top - 1] <= shape.scale <= eta[top + 1]
    else:
        assert np.isnan(shape.height)
