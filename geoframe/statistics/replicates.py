"""Median profiles of several cells of a run on the same images, and replicates that draw the same ones for all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import ArrayLike

from geoframe.errors import BadInput
from geoframe.statistics.bootstrap import median_over_images, paired_replicates
from geoframe.statistics.compare import ALPHA, FEWEST
from geoframe.statistics.profile import Array, BumpRule, Shape, enough_rungs, profile_shape

if TYPE_CHECKING:
    import xarray as xr

DECADE = 10.0
CENSORED = "censored: rises to the end of the ladder, or peaks within a decade of it and doesn't fall to half"


@attrs.frozen(slots=False, eq=False)
class Replicates:
    """Profiles of cells, and their bootstrap over images and measurement errors.

    Attributes
    ----------
    scale : array, shape (scale,)
        η.
    medians : array, shape (cell, scale)
        Median profiles, see `median_over_images`; NaN for a cell without data.
    draws : array, shape (cell, replicate, scale)
        Median profiles of the replicates, see `paired_replicates`.
    images : int
        Images that all cells have.
    rule : BumpRule
    """

    scale: Array
    medians: Array
    draws: Array
    images: int
    rule: BumpRule

    @property
    def enough(self) -> bool:
        """Whether a bootstrap over so few images says anything."""
        return self.images >= FEWEST

    @cached_property
    def has_data(self) -> Array:
        """Which cells' median profiles have enough valid rungs to have a shape at all, (cell,)."""
        return enough_rungs(self.medians)

    @cached_property
    def shape(self) -> Shape:
        """Shape of the median profiles, (cell,)."""
        return profile_shape(self.scale, self.medians, self.rule)

    @cached_property
    def shapes(self) -> Shape:
        """Shape of the replicates, (cell, replicate)."""
        return profile_shape(self.scale, self.draws, self.rule)

    def cut_off(self, cell: int) -> bool:
        """Whether the ladder ends too early to tell, see `CENSORED`."""
        near = self.shape.scale[cell] > self.end(cell) / DECADE
        return bool(self.shape.censored[cell] | (self.shape.peak[cell] & ~self.shape.decays[cell] & near))

    def end(self, cell: int) -> float:
        """η of the last valid rung of a cell's median profile; 0 where none is valid."""
        return float(self.scale[np.isfinite(self.medians[cell])].max(initial=0.0))

    def shows_bump(self, cell: int) -> bool | None:
        """Whether a cell shows the bump: in at least 95 % of the replicates, or at most 5 %.

        None in between, and without data.
        """
        if not self.has_data[cell]:
            return None
        return shown(bool(self.shape.bump[cell]), self.shapes.bump[cell])


def shown(found: bool, draws: Array) -> bool | None:
    """Whether something was found and is there in at least 95 % of the replicates, or not and in at most 5 %.

    >>> shown(True, np.array([True, True])), shown(False, np.array([False, True]))
    (True, None)
    """
    share = float(draws.mean())
    if found and share >= 1 - ALPHA:
        return True
    return False if not found and share <= ALPHA else None


def replicates_of(
    ds: xr.Dataset,
    cells: Sequence[tuple[str, str]],
    rule: BumpRule | None = None,
    *,
    replicates: int = 1000,
    seed: int = 0,
) -> Replicates:
    """Draw replicates of some cells of a `RatioProbe`'s node.

    Parameters
    ----------
    ds : xarray.Dataset
        `ratio` (encoder, probeset, image, scale), and what `bump` uses of it.
    cells : sequence of (str, str)
        Encoder and probe set of each. Images are paired by their place: probe sets must hold the same ones, or
        their blurs.
    rule : BumpRule, optional
    replicates, seed : int

    Raises
    ------
    BadInput
        Where the cells are of probe sets with other images.
    """
    check_images(ds, [probeset for _, probeset in cells])
    parts = [ds.sel(encoder=encoder, probeset=probeset).sortby("scale") for encoder, probeset in cells]
    ratio = np.stack([part["ratio"].transpose("image", "scale").values for part in parts])
    error = np.stack([_error(part) for part in parts])
    common = np.stack([_common(part) for part in parts])
    valid = np.isfinite(ratio).any(axis=-1)
    there = valid.any(axis=-1)  # a cell without data must not take the others' images away
    kept = valid[there].all(axis=0) if there.any() else np.zeros(ratio.shape[1], dtype=bool)
    draws = np.full((len(cells), replicates, ratio.shape[2]), np.nan)
    if kept.any():
        chosen = (values[there][:, kept] for values in (ratio, error, common))
        draws[there] = paired_replicates(*chosen, replicates=replicates, seed=seed)
    medians = median_over_images(ratio[:, kept])
    return Replicates(parts[0]["scale"].values, medians, draws, int(kept.sum()), rule or BumpRule())


def heights(scale: ArrayLike, profiles: ArrayLike) -> Array:
    """Largest value of each profile: of an interior maximum (parabola), or the first rung where all others are lower.

    NaN where the last valid rung is the largest: what comes after it isn't known.

    >>> heights([1, 2, 4], [[1, 3, 1], [1, 0.9, 0.2], [1, 2, 3]]).round(2)
    array([ 3.,  1., nan])
    """
    r = np.asarray(profiles, dtype=np.float64)
    inside = profile_shape(scale, r).height
    good = np.isfinite(r) & (r > 0)
    first = np.take_along_axis(r, np.argmax(good, axis=-1)[..., None], axis=-1)[..., 0]
    falls = (good.sum(axis=-1) > 1) & (first == np.max(np.where(good, r, 0.0), axis=-1))
    return np.asarray(np.where(np.isfinite(inside), inside, np.where(falls, first, np.nan)))


def check_images(ds: xr.Dataset, probesets: Sequence[str]) -> None:
    """Refuse probe sets whose images aren't the same; those without stored ids are taken at their word."""
    if "image_id" not in ds.coords or len({*probesets}) < 2:
        return
    first, *others = dict.fromkeys(probesets)
    ids = ds["image_id"].transpose("probeset", "image")
    for other in others:
        if list(ids.sel(probeset=first).values) != list(ids.sel(probeset=other).values):
            raise BadInput(f"probe sets {first!r} and {other!r} hold other images: only the same ones can be paired")


def _error(part: xr.Dataset) -> Array:
    if "ratio_se" not in part:
        return np.zeros((part.sizes["image"], part.sizes["scale"]))
    return np.asarray(part["ratio_se"].transpose("image", "scale").values)


def _common(part: xr.Dataset) -> Array:
    """Relative standard error of each image's prediction; 0 where it isn't known."""
    if "prediction" not in part or "prediction_se" not in part:
        return np.zeros(part.sizes["image"])
    relative = part["prediction_se"] / part["prediction"].where(part["prediction"] > 0)
    return np.asarray(np.nan_to_num(relative.values))
