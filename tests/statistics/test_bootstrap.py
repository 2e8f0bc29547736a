"""Medians over images and the standard errors of what is read off them."""

from __future__ import annotations

import numpy as np
import pytest

from geoframe.statistics import bootstrap
from geoframe.statistics.bootstrap import median_over_images, median_profile

ETA = np.logspace(-1, 2, 9)
TRUTH = (1 + 3 * np.exp(-(np.log(ETA / 3) ** 2))) / (1 + (ETA / 20) ** 2)


def sample(rng, images, spread=0.3, noise=0.0, common=0.0):
    """Profiles of random images: each one's own factor, a measured factor, and independent errors."""
    own = np.exp(rng.normal(0, spread, (images, 1)))
    measured = 1 + common * rng.normal(size=(images, 1)) + noise * rng.normal(size=(images, ETA.size))
    return TRUTH * own * measured


def test_median_skips_invalid_rungs_like_numpy_does():
    values = np.random.default_rng(0).normal(size=(3, 8, 5))
    values[:, ::3, 1] = np.nan
    values[:, :, 2] = np.nan
    expected = np.nanmedian(values[..., [0, 1, 3, 4]], axis=1)
    np.testing.assert_array_equal(median_over_images(values)[..., [0, 1, 3, 4]], expected)
    assert np.isnan(median_over_images(values)[..., 2]).all()


def test_scales_valid_in_fewer_than_half_of_the_images_are_left_out():
    ratio = np.tile(TRUTH, (16, 1))
    ratio[1:, 0] = ratio[9:, -1] = np.nan  # the first in 1 of 16, the last in 9
    ratio[0, 0] = 1.5
    empty = np.full_like(ratio, np.nan)
    for images in (ratio, np.concatenate([ratio, empty])):  # images without any valid scale don't count
        np.testing.assert_array_equal(median_over_images(images), [np.nan, *TRUTH[1:]])
    ratio[8:, -1] = np.nan
    assert np.isfinite(median_over_images(ratio)[-1])  # half is enough
    ratio[7:, -1] = np.nan
    assert np.isnan(median_over_images(ratio)[-1])


def test_a_scale_without_a_median_has_no_error():
    ratio = np.tile(TRUTH, (16, 1))
    ratio[7:, 0] = np.nan
    result = median_profile(ETA, ratio, 0.1 * ratio, replicates=50)
    np.testing.assert_array_equal(np.isnan(result.ratio_se), [True, *[False] * 8])


def test_images_give_the_spread_that_fresh_samples_of_images_show():
    rng = np.random.default_rng(1)
    truth = np.array([median_over_images(sample(rng, 64)) for _ in range(2000)]).std(axis=0)
    estimates = []
    for k in range(40):
        ratio = sample(rng, 64)
        estimates.append(median_profile(ETA, ratio, 0 * ratio, replicates=300, seed=k).ratio_se)
    np.testing.assert_allclose(np.mean(estimates, axis=0), truth, rtol=0.15)


def test_height_place_and_width_errors_agree_with_repeated_measurements_of_one_image():
    noise, common = 0.04, 0.05
    rng = np.random.default_rng(2)
    fresh = TRUTH * (1 + common * rng.normal(size=(4000, 1)) + noise * rng.normal(size=(4000, ETA.size)))
    shapes = bootstrap.profile_shape(ETA, fresh)
    total = np.sqrt(noise**2 + common**2) * TRUTH[None]
    result = median_profile(ETA, TRUTH[None], total, [common], replicates=4000)
    assert result.height_se == pytest.approx(shapes.height.std(), rel=0.08)
    assert result.log10_scale_se == pytest.approx(np.log10(shapes.scale).std(), rel=0.08)
    assert result.width_se == pytest.approx(shapes.width.std(), rel=0.08)
    np.testing.assert_allclose(result.ratio_se, total[0], rtol=0.06)


def test_the_common_error_moves_the_height_and_not_the_place():
    se = 0.1 * TRUTH[None]
    common = median_profile(ETA, TRUTH[None], se, [0.1])
    apart = median_profile(ETA, TRUTH[None], se, [0.0])
    assert common.log10_scale_se < 1e-9
    assert apart.log10_scale_se > 0.01
    assert common.height_se == pytest.approx(0.1 * float(common.shape.height), rel=0.1)


def test_the_common_error_never_exceeds_the_ratios_own():
    se = np.where(ETA < 1, 1e-4, 0.1) * TRUTH[None]  # shared pairs: numerator and denominator cancel
    result = median_profile(ETA, TRUTH[None], se, [0.1])
    np.testing.assert_allclose(result.ratio_se, se[0], rtol=0.1)


def test_one_image_has_its_measurement_error_only():
    result = median_profile(ETA, TRUTH[None], 0 * TRUTH[None])
    np.testing.assert_array_equal(result.ratio, TRUTH)
    np.testing.assert_allclose(result.ratio_se, 0, atol=1e-12)
    assert result.images == 1
    assert result.bump_share == 1.0


def test_padding_and_block_size_change_no_bit(monkeypatch):
    ratio = sample(np.random.default_rng(3), 7)
    ratio[2, 4:] = np.nan
    error, common = 0.05 * ratio, np.full(7, 0.02)
    once = median_profile(ETA, ratio, error, common, replicates=50)
    gap = np.full((5, ETA.size), np.nan)
    monkeypatch.setattr(bootstrap, "ELEMENTS_AT_ONCE", 200)
    again = median_profile(
        ETA, np.r_[gap, ratio, gap], np.r_[gap, error, gap], np.r_[gap[:, 0], common, gap[:, 0]], replicates=50
    )
    np.testing.assert_array_equal(once.ratio_se, again.ratio_se)
    assert (once.height_se, once.images) == (again.height_se, again.images)


def test_the_order_of_images_does_not_change_the_medians_shape():
    ratio = sample(np.random.default_rng(4), 9)
    turned = ratio[np.random.default_rng(5).permutation(9)]
    a, b = (median_profile(ETA, r, 0.01 * r, replicates=10) for r in (ratio, turned))
    np.testing.assert_array_equal(a.ratio, b.ratio)
    assert (a.shape.height, a.shape.scale, a.shape.width) == (b.shape.height, b.shape.scale, b.shape.width)


def test_no_valid_image_gives_nan_without_a_warning():
    empty = np.full((3, ETA.size), np.nan)
    result = median_profile(ETA, empty, empty)
    assert result.images == 0
    assert np.isnan(result.ratio).all()
    assert np.isnan(result.ratio_se).all()
    assert np.isnan([result.height_se, result.bump_share]).all()


def test_an_unknown_measurement_error_is_not_taken_for_none():
    ratio = sample(np.random.default_rng(6), 5)
    assert np.isnan(median_profile(ETA, ratio, np.full_like(ratio, np.nan)).ratio_se).all()
