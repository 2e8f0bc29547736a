"""One family's ratios, responses and predictions on the same images: factors, shares and trends with intervals."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.bootstrap import median_over_images, paired_replicates
from geoframe.statistics.compare import FEWEST, mean_interval
from geoframe.statistics.families import Family
from geoframe.statistics.peaks import Estimate, Peaks, factor, interval, peaks, rank_correlation
from geoframe.statistics.profile import Array, enough_rungs

if TYPE_CHECKING:
    import xarray as xr


@attrs.frozen(slots=False, eq=False)
class Responses:
    """A family on one probe set, networks by ascending ε; images that every network with data has a valid rung of.

    Attributes
    ----------
    epsilons : tuple of float
    scale : array, shape (scale,)
        η, ascending.
    ratio, ratio_se, response : array, shape (network, image, scale)
    prediction, relative_se : array, shape (network, image)
        Linear prediction and its relative standard error.
    replicates, seed : int
        Bootstrap over images.
    """

    epsilons: tuple[float, ...]
    scale: Array
    ratio: Array
    ratio_se: Array
    response: Array
    prediction: Array
    relative_se: Array
    replicates: int
    seed: int

    @property
    def images(self) -> int:
        """Number of images."""
        return int(self.ratio.shape[1])

    @cached_property
    def medians(self) -> Array:
        """Median profiles, (network, scale)."""
        return median_over_images(self.ratio)

    @cached_property
    def has_data(self) -> Array:
        """Which networks' median profiles have enough valid rungs to have a peak at all, (network,)."""
        return enough_rungs(self.medians)

    @cached_property
    def peaks(self) -> Peaks:
        """Peak of each network's median profile."""
        return peaks(self.scale, self.medians)

    @cached_property
    def draws(self) -> Peaks:
        """The same of the replicates, (network, replicate)."""
        profiles = paired_replicates(
            self.ratio, self.ratio_se, self.relative_se, replicates=self.replicates, seed=self.seed
        )
        return peaks(self.scale, profiles)

    def move(self, k: int) -> Estimate:
        """Factor by which network k's peak lies farther out than that of ε = 0."""
        return factor(self.peaks[0], self.peaks[k], self.draws[0], self.draws[k], self.images)

    def drop(self, k: int) -> Estimate:
        """Factor by which network k's prediction is lower: geometric mean over images."""
        import xarray as xr

        logs = xr.DataArray(self._log_drop(k), dims="image")
        found = mean_interval(logs, replicates=self.replicates, seed=self.seed)
        value, low, high = (float(np.exp(found[name])) for name in ("mean", "low", "high"))
        return Estimate(value, low, high, n=int(found["n"]))

    def share(self, k: int) -> tuple[Estimate, str]:
        """Share of the rise of log r at the rung of network k's peak that its lower prediction brings, or why none.

        There is none where the peak is censored, or where log r doesn't rise in at least 95 % of the replicates.
        """
        if np.isnan(self.peaks.scale[k]):
            return Estimate(np.nan), "no peak"
        if self.peaks.at_end[k]:
            return Estimate(np.nan), "censored"
        rung = int(np.nanargmax(self.medians[k]))
        drop, rise = self._log_drop(k), _log(self.response[k, :, rung]) - _log(self.response[0, :, rung])
        good = np.isfinite(drop + rise + self.ratio[k, :, rung] + self.ratio[0, :, rung])
        drop, rise, n = drop[good], rise[good], int(good.sum())
        if n < FEWEST:
            return Estimate(np.nan, n=n), "no interval"
        index = np.random.default_rng(self.seed).integers(0, n, (self.replicates, n))
        by_drop, whole = drop[index].mean(axis=1), (drop + rise)[index].mean(axis=1)
        draws = np.where(whole > 0, by_drop / np.where(whole > 0, whole, 1.0), np.nan)
        low, high = interval(draws, n)
        if np.isnan(low):
            return Estimate(np.nan, n=n), "rise not certain"
        return Estimate(float(drop.mean() / (drop + rise).mean()), low, high, n=n), ""

    def trend(self, which: str) -> tuple[Estimate, int]:
        """Spearman's ρ of ε with the peaks' `scale` or `height`, over the networks that have one, and their number.

        A peak at the end of the ladder lies farther out than all within it, so that its place has a rank; its height
        has none.
        """
        values, draws = (getattr(found, which) for found in (self.peaks, self.draws))
        if which == "height":
            values, draws = (np.where(found.at_end, np.nan, found.height) for found in (self.peaks, self.draws))
        known = np.isfinite(values)
        budgets = np.array(self.epsilons)[known]
        value, draws = rank_correlation(budgets, values[known]), rank_correlation(budgets, draws[known].T)
        return Estimate(float(value), *interval(draws, self.images), n=self.images), int(known.sum())

    def baseline(self) -> tuple[Estimate, float]:
        """Place of the interior peak of ε = 0, and the share of replicates that have one."""
        places = np.where(self.draws.at_end[0], np.nan, self.draws.scale[0])
        value = np.nan if self.peaks.at_end[0] else float(self.peaks.scale[0])
        return Estimate(value, *interval(places, self.images), n=self.images), float(np.isfinite(places).mean())

    def _log_drop(self, k: int) -> Array:
        return _log(self.prediction[0]) - _log(self.prediction[k])


def responses(ds: xr.Dataset, family: Family, probeset: str, *, replicates: int, seed: int) -> Responses:
    """Take a family's arrays on one probe set out of a RatioProbe's node."""
    ds = ds.sel(encoder=list(family.names), probeset=probeset).sortby("scale")
    ratio, error, response = (
        ds[name].transpose("encoder", "image", "scale").values for name in ("ratio", "ratio_se", "response")
    )
    prediction, spread = (ds[name].transpose("encoder", "image").values for name in ("prediction", "prediction_se"))
    valid = np.isfinite(ratio).any(axis=-1)
    there = valid.any(axis=-1)  # a network without data must not take the others' images away
    kept = valid[there].all(axis=0) & there.any()
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(prediction > 0, spread / prediction, np.nan)
    ratio, error, response, prediction, relative = (
        values[:, kept] for values in (ratio, error, response, prediction, relative)
    )
    scale = ds["scale"].values
    return Responses(family.epsilons, scale, ratio, error, response, prediction, relative, replicates, seed)


def _log(values: Array) -> Array:
    """Logarithm, NaN where there is none."""
    return np.log(np.where(values > 0, values, np.nan))
