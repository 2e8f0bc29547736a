"""The estimator's standard error against simulation, and its limits."""

from __future__ import annotations

import numpy as np
import pytest

from geoframe.geometry.ratio import estimate_ratio


def simulate(n: int, m: int, share: float, repeats: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Responses that share a part with the predictions, as on a plateau (share near 1) or beyond the peak (0)."""
    generator = np.random.default_rng(0)
    predictions = generator.gamma(9.0, 1 / 9, (repeats, n))
    noise = generator.gamma(9.0, 1 / 9, (repeats, n))
    responses = 2 * (share * predictions + (1 - share) * noise)
    found = [estimate_ratio(r[:, None], p[:m]) for r, p in zip(responses, predictions, strict=True)]
    return np.array([f.ratio[0] for f in found]), np.array([f.ratio_se[0] for f in found])


@pytest.mark.parametrize(("n", "m"), [(64, 64), (256, 64), (128, 16)])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_standard_error_agrees_with_simulation(n: int, m: int, share: float) -> None:
    ratios, errors = simulate(n, m, share)
    assert ratios.mean() == pytest.approx(2.0, abs=0.03)
    assert np.sqrt((errors**2).mean()) == pytest.approx(ratios.std(ddof=1), rel=0.08 if m >= 64 else 0.15)


def test_equal_pairs_give_one_without_error() -> None:
    values = np.random.default_rng(0).random(32)
    found = estimate_ratio(values[:, None], values)
    assert found.ratio[0] == 1.0
    assert found.ratio_se[0] == 0.0


def test_a_common_factor_changes_only_the_ratio() -> None:
    generator = np.random.default_rng(1)
    responses, predictions = generator.random((32, 3)) + 1, generator.random(16) + 1
    one, two = estimate_ratio(responses, predictions), estimate_ratio(4 * responses, predictions)
    np.testing.assert_allclose(two.ratio, 4 * one.ratio)
    np.testing.assert_allclose(two.ratio_se, 4 * one.ratio_se)
    assert one.prediction == two.prediction


def test_a_zero_prediction_gives_no_finite_number() -> None:
    found = estimate_ratio(np.ones((4, 1)), np.zeros(2))
    assert not np.isfinite(found.ratio).any()
