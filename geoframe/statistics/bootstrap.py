"""Median profile over images, with standard errors by bootstrap over images and pairs (array layer)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import ArrayLike

from geoframe.statistics.profile import Array, BumpRule, Shape, profile_shape

ELEMENTS_AT_ONCE = 1_000_000


@attrs.frozen
class MedianProfile:
    """Median profile of a set of images.

    Attributes
    ----------
    ratio, ratio_se : array, shape (scale,)
        Median over the images valid at each scale, see `median_over_images`, and its standard error.
    images : int
        Number of images with at least one valid rung.
    shape : Shape
        Shape of the median profile (fields are 0-d arrays).
    height_se, log10_scale_se, width_se, tail_slope_se : float
        Standard errors of the peak's height, of log10 of its place and of its width (both in decades), and of the
        tail slope, over the replicates that have the quantity at all.
    bump_share : float
        Share of the replicates that pass the rule.
    """

    ratio: Array
    ratio_se: Array
    images: int
    shape: Shape
    height_se: float
    log10_scale_se: float
    width_se: float
    tail_slope_se: float
    bump_share: float


def median_profile(
    scale: ArrayLike,
    ratio: ArrayLike,
    ratio_se: ArrayLike,
    relative_prediction_se: ArrayLike | None = None,
    *,
    rule: BumpRule | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> MedianProfile:
    """Take the median over images and bootstrap its standard error over images and pairs.

    Each replicate draws images with replacement and perturbs every drawn profile by its measurement error. The
    antipodal pairs themselves are not stored, so resampling them is replaced by a draw from the distribution that
    they estimate: log-normal, with mean `ratio` and standard deviation `ratio_se` (to first order a Gaussian, but
    positive). The error of the denominator is common to all scales of an image: one factor an image, of relative
    size `relative_prediction_se`; what is left of `ratio_se` is drawn for each scale by itself. Where the common
    part alone would exceed `ratio_se` (numerator and denominator share their pairs and cancel), the smaller one
    is used.

    Parameters
    ----------
    scale : array_like, shape (scale,)
        Perturbation sizes η.
    ratio, ratio_se : array_like, shape (image, scale)
        Ratios and their standard errors; NaN where invalid. Images without any valid rung are left out.
    relative_prediction_se : array_like, shape (image,), optional
        Standard error of the prediction divided by the prediction; taken as 0 where missing.
    rule : BumpRule, optional
        Thresholds.
    replicates, seed : int
        Number of bootstrap replicates, and the seed of their draws.

    Returns
    -------
    MedianProfile

    Notes
    -----
    The measured ratios already carry their measurement error, and each replicate adds it once more, as any two-stage
    bootstrap does: the standard errors err on the large side where measurement error outweighs the spread of images.
    With one image, drawing images changes nothing, and the standard error is that of the measurement alone.
    A maximum over scales is biased upward, the more the noisier the profile: the standard error of the height does
    not contain that bias.
    """
    rule = rule or BumpRule()
    ratio = np.asarray(ratio, dtype=np.float64)
    error = np.broadcast_to(np.asarray(ratio_se, dtype=np.float64), ratio.shape)
    common = np.zeros(ratio.shape[0]) if relative_prediction_se is None else np.asarray(relative_prediction_se)
    kept = np.isfinite(ratio).any(axis=-1)
    median = median_over_images(ratio)
    draws = _replicates(ratio[kept], error[kept], np.nan_to_num(common[kept]), replicates, seed)
    shapes = profile_shape(scale, draws, rule)
    return MedianProfile(
        ratio=median,
        ratio_se=_spread(draws),
        images=int(kept.sum()),
        shape=profile_shape(scale, median, rule),
        height_se=float(_spread(shapes.height)),
        log10_scale_se=float(_spread(np.log10(shapes.scale))),
        width_se=float(_spread(shapes.width)),
        tail_slope_se=float(_spread(shapes.tail_slope)),
        bump_share=float(shapes.bump.mean()) if kept.any() else np.nan,
    )


def median_over_images(values: ArrayLike) -> Array:
    """Median profile of images (..., image, scale), NaNs skipped; NaN, without a warning, where nothing is left.

    A scale that is valid in fewer than half of the images (of those that have a valid one at all) is left out, else a
    single image could decide where the profile starts or ends, and so its shape. The half is ours.

    >>> nan = float("nan")
    >>> median_over_images([[1.0, 4.0, 5.0], [3.0, 2.0, nan], [2.0, nan, nan], [nan, nan, nan]])
    array([ 2.,  3., nan])
    """
    values = np.asarray(values, dtype=np.float64)
    return np.where(_half_valid(values), _median(values), np.nan)


def _half_valid(values: Array) -> Array:
    """Scales that are valid in at least half of the images that have a valid one at all, (..., scale)."""
    valid = np.isfinite(values)
    images = valid.any(axis=-1).sum(axis=-1)
    return np.asarray(2 * valid.sum(axis=-2) >= images[..., None])


def _median(values: Array) -> Array:
    """Median over the second-last axis, NaNs skipped; NaN, without a warning, where nothing is left."""
    ordered = np.sort(np.moveaxis(values, -2, -1), axis=-1)  # sorts NaN to the end
    if ordered.shape[-1] == 0:
        return np.full(ordered.shape[:-1], np.nan)
    count = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    low, high = (np.take_along_axis(ordered, np.maximum(i, 0), axis=-1) for i in ((count - 1) // 2, count // 2))
    middle = (low + np.where(count % 2 == 1, low, high)) / 2
    return np.asarray(np.where(count > 0, middle, np.nan)[..., 0])


def paired_replicates(ratio: Array, error: Array, common: Array, *, replicates: int, seed: int) -> Array:
    """Draw median profiles of several networks, each replicate with the same images for all of them.

    Measurement errors are drawn for each network by itself. They are not independent where the directions are shared,
    as a `RatioProbe`'s are: what is concluded from differences errs on the careful side.

    Parameters
    ----------
    ratio, error : array, shape (network, image, scale)
        Every image has a valid rung in every network.
    common : array, shape (network, image)
        Relative standard error of the prediction.
    replicates, seed : int
        As in `median_profile`.

    Returns
    -------
    array, shape (network, replicate, scale)
    """
    networks = zip(ratio, error, np.nan_to_num(common), strict=True)
    return np.stack([_replicates(*one, replicates, seed, errors=(seed, k)) for k, one in enumerate(networks)])


def _replicates(
    ratio: Array, error: Array, common: Array, replicates: int, seed: int, errors: tuple[int, ...] | None = None
) -> Array:
    """Median profiles of the replicates, shape (replicate, scale), in blocks of bounded memory.

    Their scales are those of the images' own median, whichever images a replicate draws.
    `errors` seeds the draws of measurement errors; by default they come from `seed`, as those of images do.
    """
    if ratio.shape[0] == 0:
        return np.full((replicates, ratio.shape[1]), np.nan)
    ratio = np.where((ratio > 0) & _half_valid(ratio), ratio, np.nan)
    error = np.where(np.isfinite(error), error, np.nan)
    total = np.log1p((error / ratio) ** 2)
    shared = np.minimum(np.log1p(common**2)[:, None], total)
    own = np.sqrt(total - shared)
    base, shared = np.log(ratio) - total / 2, np.sqrt(shared)
    pick, bias, noise = np.random.default_rng(seed).spawn(3)  # a stream each: block sizes change no number
    if errors is not None:
        bias, noise = np.random.default_rng(errors).spawn(2)
    out = []
    for size in _block_sizes(replicates, ratio.size):
        index = pick.integers(0, ratio.shape[0], (size, ratio.shape[0]))
        log_r = own[index] * noise.standard_normal((*index.shape, ratio.shape[1]))
        log_r -= shared[index] * bias.standard_normal(index.shape)[..., None]
        out.append(_median(np.exp(log_r + base[index])))
    return np.concatenate(out)


def _block_sizes(replicates: int, elements: int) -> Iterator[int]:
    size = max(1, ELEMENTS_AT_ONCE // max(elements, 1))
    for start in range(0, replicates, size):
        yield min(size, replicates - start)


def _spread(values: Array) -> Array:
    """Standard deviation over the first axis, NaNs skipped; NaN where fewer than two values are left."""
    valid = np.isfinite(values)
    count = valid.sum(axis=0)
    mean = np.where(valid, values, 0).sum(axis=0) / np.maximum(count, 1)
    squares = np.where(valid, values - mean, 0) ** 2
    return np.where(count > 1, np.sqrt(squares.sum(axis=0) / np.maximum(count - 1, 1)), np.nan)
