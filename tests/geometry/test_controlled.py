"""The control variate: unbiased, a smaller error, and intervals that hold what they should."""

from __future__ import annotations

import numpy as np
import pytest

from geoframe.geometry.controlled import RIDGE, Moments, expected_skewness, moments, ridge, without_control

SHARES = np.exp(-np.arange(40) / 9)
SHARES /= SHARES.sum()
CAUGHT = 16


def pairs(n: int, generator: np.random.Generator) -> np.ndarray:
    """Energies along 40 singular directions of mean 1 together, as of random directions in a high dimension."""
    return SHARES * generator.standard_normal((n, len(SHARES))) ** 2


def found(energies: np.ndarray, curvature: float, m: int) -> Moments:
    """Moments for a response that saturates: N = Σ e / (1 + curvature · e)."""
    response = (energies / (1 + curvature * energies)).sum(1)
    mean, variance = SHARES[:CAUGHT].sum(), 2 * np.square(SHARES[:CAUGHT]).sum()
    return moments(response, energies[:, :CAUGHT].sum(1), energies[:m, CAUGHT:].sum(1), mean, variance)


def truth(curvature: float) -> float:
    """E N by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    energy = SHARES[:, None] * nodes**2
    return float((energy / (1 + curvature * energy) @ weights).sum() / np.sqrt(2 * np.pi))


def test_each_slope_is_fitted_on_the_other_pairs() -> None:
    generator = np.random.default_rng(0)
    values, control = generator.random(9), generator.standard_normal(9)
    for i, have in enumerate(without_control(values, control, variance=0.7)):
        v, c = np.delete(values, i), np.delete(control, i)
        slope = (c * (v - v.mean())).sum() / ((c * c).sum() + ridge(values, control, 0.7) * 0.7)
        assert have == pytest.approx(values[i] - slope * control[i])


def test_a_control_that_does_not_vary_changes_nothing() -> None:
    values = np.random.default_rng(0).random(9)
    np.testing.assert_array_equal(without_control(values, np.zeros(9), 0.0), values)


def test_the_ridge_grows_as_the_control_explains_less() -> None:
    control = np.random.default_rng(0).standard_normal(64)
    beside = np.random.default_rng(1).standard_normal(64)
    assert ridge(control, control, 1.0) == RIDGE[0]
    assert ridge(beside, control, 1.0) == RIDGE[1]
    assert ridge(2 * control + 2 * beside, control, 1.0) == pytest.approx(1.0, rel=0.5)
    assert ridge(np.ones(64), control, 1.0) == RIDGE[1]


def test_the_variance_is_that_of_the_ratio() -> None:
    """With more, fewer and as many pairs as Jacobian–vector products."""
    generator = np.random.default_rng(1)
    for n, m in ((64, 32), (48, 48)):
        ratios, variances = [], []
        for _ in range(1500):
            one = found(pairs(n, generator), 3.0, m)
            ratios.append(one.ratio)
            variances.append(float(one.variance(n, m)))
        assert np.mean(variances) == pytest.approx(np.var(ratios), rel=0.12)


def test_the_error_is_a_fraction_of_that_without_control() -> None:
    energies = pairs(64, np.random.default_rng(2))
    one = found(energies, 0.3, 64)
    plain = energies.sum(1).std(ddof=1) / np.sqrt(64)
    assert one.standard_error(64, 64, 0.02) < plain / 5


@pytest.mark.parametrize("curvature", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("n", [16, 48])
def test_intervals_hold_the_truth(curvature: float, n: int) -> None:
    generator, want = np.random.default_rng(3), truth(curvature)
    hits = []
    for _ in range(2000):
        one = found(pairs(n, generator), curvature, n)
        hits.append(abs(one.ratio - want) < 1.96 * one.standard_error(n, n, 0.02))
    assert 0.91 <= np.mean(hits) <= 0.985


def test_few_pairs_widen_the_interval() -> None:
    even = Moments(1.0, 1.0, 1.0, 0.0, 0.0, skewness=0.0)
    for n, want in ((12, 2.2281 / 1.95996), (10_000, 1.0002)):
        assert float(even.bound(n, 0)) * np.sqrt(n) == pytest.approx(want, rel=1e-4)
        assert even.standard_error(n, 0, 0.02) == float(even.bound(n, 0))


def test_skewed_pairs_widen_the_interval() -> None:
    values = np.array([0.0] * 15 + [4.0])
    one = moments(values, np.zeros(16), np.empty(0), 1.0, 0.0)
    assert one.skewness == pytest.approx(np.sqrt(14**2 / 15 - 6 / 16))  # less what 16 pairs show of none
    even = Moments(one.response, one.prediction, one.own, one.left, one.shared, skewness=0.0)
    assert float(one.bound(100, 0)) > 1.1 * float(even.bound(100, 0))


@pytest.mark.parametrize(("features", "least"), [(1, 2.0), (2, 0.5), (100, 2e-4)])
def test_few_features_have_a_tail_before_it_is_seen(features: int, least: float) -> None:
    """v = 2 / features, of features that have the same energy."""
    assert expected_skewness(3.0, 9 * 2 / features) == pytest.approx(least)
    one = moments(np.linspace(1, 2, 16), np.linspace(2, 4, 16), np.empty(0), 3.0, 9 * 2 / features)
    assert one.skewness == pytest.approx(least)


def test_luck_widens_the_interval_where_the_target_is_near() -> None:
    one = Moments(1.0, 1.0, 1.0, 0.0, 0.0, skewness=0.5)
    even, bound = Moments(1.0, 1.0, 1.0, 0.0, 0.0, skewness=0.0).standard_error(64, 0, 0.1), float(one.bound(64, 0))
    assert one.standard_error(64, 0, bound) == pytest.approx(bound)
    for far in (20 * bound, bound / 20):
        assert even < one.standard_error(64, 0, far) < 1.03 * even


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_skewness_has_no_unit(unit: float) -> None:
    values = np.array([0.0] * 15 + [4.0])
    one, other = (moments(v, np.zeros(16), np.empty(0), 1.0, 0.0) for v in (values, unit * values))
    assert other.skewness == pytest.approx(one.skewness)
    assert other.standard_error(16, 0, 0.02) == pytest.approx(unit * one.standard_error(16, 0, 0.02))


def test_skewness_that_chance_explains_widens_nothing() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.2])
    assert moments(values, np.zeros(4), np.empty(0), 1.0, 0.0).skewness == 0
