"""Rank correlations against scipy, textbook formulas, and simulated data whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from geoframe.errors import BadInput
from geoframe.statistics.rank_correlation import (
    between_clusters,
    fisher_pooled,
    partial_spearman,
    permuted_spearman,
    pooled_spearman,
    rank_correlations,
    reliability,
)


def test_without_controls_it_is_scipys_spearman_ties_and_gaps_included() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 40).astype(float)
    y = x + rng.normal(0, 2, 40)
    y[3], x[7] = np.nan, np.inf
    good = np.isfinite(x) & np.isfinite(y)
    rho, n = partial_spearman(x, y)
    assert n == 38
    assert rho == pytest.approx(stats.spearmanr(x[good], y[good]).statistic)


def test_one_control_is_the_textbook_formula() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=60)
    x, y = z + rng.normal(size=60), np.exp(z + rng.normal(size=60))
    xy, xz, yz = (stats.spearmanr(a, b).statistic for a, b in ((x, y), (x, z), (y, z)))
    want = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
    assert partial_spearman(x, y, z)[0] == pytest.approx(want)
    assert partial_spearman(np.exp(x), y**3, -z)[0] == pytest.approx(want), "ranks alone count"


def test_more_controls_are_residuals_of_ranks() -> None:
    rng = np.random.default_rng(2)
    x, y, *controls = rng.normal(size=(5, 50))
    y = y + x + controls[0]
    ranks = [stats.rankdata(v) for v in (x, y, *controls)]
    design = np.column_stack([np.ones(50), *ranks[2:]])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in ranks[:2]]
    assert partial_spearman(x, y, *controls)[0] == pytest.approx(np.corrcoef(*left)[0, 1])
    assert partial_spearman(x, y, *controls, controls[0])[0] == pytest.approx(np.corrcoef(*left)[0, 1]), (
        "twice the same"
    )


def test_a_common_cause_is_taken_away_and_a_direct_one_stays() -> None:
    rng = np.random.default_rng(3)
    z, a, b = rng.normal(size=(3, 20_000))
    x = z + a
    assert abs(partial_spearman(x, z + b, z)[0]) < 0.03
    assert partial_spearman(x, z + b)[0] == pytest.approx(6 / math.pi * math.asin(0.25), abs=0.02)  # ρ = ½
    assert partial_spearman(x, z + a + b, z)[0] > 0.6


@pytest.mark.parametrize(
    "columns",
    [
        ([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]),
        ([1, 2, 3, 5, 4], [2, 1, 3, 4, 5], [1, 2, 3, 5, 4]),
        ([1, 2], [1, 2]),
        ([1, 2, 3, 4], [1, 2, 4, 3], [2, 1, 3, 4], [4, 1, 2, 3]),
    ],
    ids=["constant", "control is x", "two pairs", "too few for the controls"],
)
def test_what_cannot_be_known_is_nan(columns: tuple[list[float], ...]) -> None:
    assert math.isnan(partial_spearman(*columns)[0])


def test_samples_of_other_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="one length"):
        partial_spearman([1, 2, 3], [1, 2])


def test_many_at_once_are_each_by_itself() -> None:
    rng = np.random.default_rng(4)
    samples = rng.normal(size=(3, 6, 20))
    samples[0, 1, 4] = np.nan
    rho, n = rank_correlations(samples)
    for k in range(6):
        one, count = partial_spearman(*samples[:, k])
        assert rho[k] == pytest.approx(one)
        assert n[k] == count


def test_pooling_weights_by_degrees_of_freedom() -> None:
    z = np.arctanh([0.2, 0.6])
    want = math.tanh((7 * z[0] + 27 * z[1]) / 34)
    assert fisher_pooled([0.2, 0.6, np.nan, 0.9], [11, 31, 50, 4], 1)[0] == pytest.approx(want)
    rho, low, high = fisher_pooled([0.3], [103])
    assert (math.atanh(high) - math.atanh(rho)) == pytest.approx(1.96 * math.sqrt(1.06 / 100), abs=1e-3)
    assert low < rho < high
    assert math.isnan(fisher_pooled([np.nan], [10])[0])
    assert fisher_pooled([1.0, 1.0], [20, 20])[0] == pytest.approx(1.0)


def _networks(rng: np.random.Generator, effect: float, networks: int = 4, images: int = 40) -> tuple[np.ndarray, ...]:
    x = rng.normal(size=(networks, images))
    return x, effect * x + rng.normal(size=(networks, images))


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    inside = powerful = 0
    for trial in range(100):
        rng = np.random.default_rng(trial)
        none = pooled_spearman(*_networks(rng, 0.0), clusters=[0, 0, 1, 1], replicates=200, seed=trial)
        some = pooled_spearman(*_networks(rng, 0.6), clusters=[0, 0, 1, 1], replicates=200, seed=trial)
        inside += none.low <= 0 <= none.high
        powerful += some.low > 0
    assert inside >= 88
    assert powerful >= 95


def test_what_counts_is_counted() -> None:
    rng = np.random.default_rng(5)
    x, y = _networks(rng, 1.0, 4, 20)
    x[1, 5:] = np.nan  # too few images
    y[2] = 3.0  # no spread
    found = pooled_spearman(x, y, clusters=["a", "a", "b", "b"], replicates=100)
    assert (found.n, found.networks, found.clusters) == (40, 2, 2)
    rho = [stats.spearmanr(x[k], y[k]).statistic for k in (0, 3)]
    assert found.rho == pytest.approx(fisher_pooled(rho, [20, 20])[0])
    assert found.low < found.rho < found.high
    nothing = pooled_spearman(x[1:3], y[1:3], replicates=100)
    assert math.isnan(nothing.rho)
    assert nothing.networks == nothing.n == 0


def test_clusters_that_differ_widen_the_interval() -> None:
    """Two seeds with opposite correlations: images alone would be sure of the mean, seeds aren't."""
    rng = np.random.default_rng(6)
    x, y = _networks(rng, 2.0, 2, 200)
    y[1] = -y[1]
    apart = pooled_spearman(x, y, clusters=[0, 1], replicates=300)
    together = pooled_spearman(x, y, clusters=[0, 0], replicates=300)
    assert apart.high - apart.low > 1.5
    assert together.high - together.low < 0.3


def test_reliability_is_that_of_the_whole_measurement() -> None:
    """Truth of variance 1 and an error of variance 1 in each half: halves correlate ½, the whole is reliable to ⅔."""
    rng = np.random.default_rng(7)
    truth = rng.normal(size=(3, 4000))
    halves = (truth + rng.normal(size=truth.shape) for _ in range(2))
    assert reliability(*halves) == pytest.approx(2 / 3, abs=0.03)
    assert math.isnan(reliability(truth, -truth))


def test_permuting_within_groups_leaves_what_groups_explain() -> None:
    rng = np.random.default_rng(8)
    group = rng.integers(0, 5, (2, 400))
    x, noise = group + 0.1 * rng.normal(size=group.shape), 0.1 * rng.normal(size=group.shape)
    by_group = permuted_spearman(x, group + noise, group, replicates=50)
    assert by_group.rho == pytest.approx(pooled_spearman(x, group + noise, replicates=0).rho, abs=0.02)
    within = permuted_spearman(x, x, np.zeros_like(group), replicates=50)
    assert abs(within.rho) < 0.03
    assert within.low < 0 < within.high
    assert permuted_spearman(x[:, :5], x[:, :5], group[:, :5]).networks == 0


def test_without_replicates_there_is_no_interval():
    x, y = np.arange(24.0).reshape(2, 12), np.arange(24.0).reshape(2, 12)
    assert np.isnan(between_clusters([1.0, 2, 3], [1.0, 2, 3], "aab", replicates=0).low)
    assert np.isnan(permuted_spearman(x, y, np.zeros((2, 12), int), replicates=0).low)
