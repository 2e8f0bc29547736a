"""The response profile as a table: the median ratio at each scale, how many images it stands on, and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.spec import count
from geoframe.summaries.bump import medians_of
from geoframe.summaries.tables import NONE, with_error
from geoframe.summary import Summary, stored_node

if TYPE_CHECKING:
    import xarray as xr

VARIABLES = {
    "median_ratio": ("1", "median over images of the response ratio, where at least half of them are valid"),
    "median_ratio_se": ("1", "standard error of the median response ratio"),
    "valid_share": ("1", "share of images whose ratio is valid"),
    "directions": ("1", "directions measured, both antipodes counted: median over images"),
    "n_images": ("1", "number of images measured"),
}


def profile_table(ds: xr.Dataset, *, replicates: int = 1000, seed: int = 0) -> xr.Dataset:
    """Take the median profile of each encoder and probe set, with what it stands on.

    Parameters
    ----------
    ds : xarray.Dataset
        A node of `RatioProbe`: `ratio`, `ratio_se`, `valid`, `directions_used` (..., image, scale).
    replicates, seed : int
        Bootstrap of the standard errors over images and pairs, see `median_profile`.

    Returns
    -------
    xarray.Dataset
        The variables of `VARIABLES` over the dimensions of `ratio` without image; NaN where nothing was measured.

    Raises
    ------
    BadInput
        If the dataset isn't a RatioProbe's.
    """
    import xarray as xr

    missing = [name for name in ("ratio", "ratio_se", "valid", "directions_used") if name not in ds]
    if missing or not {"image", "scale"} <= set(ds["ratio"].dims):
        raise BadInput(f"a profile needs a RatioProbe's dataset; this one lacks {', '.join(missing) or 'scales'}")
    used = ds["directions_used"].where(ds["directions_used"] >= 0)  # −1 pads sets of unequal size
    medians = medians_of(ds, replicates=replicates, seed=seed)
    dims = [str(d) for d in ds["ratio"].dims if d != "image"]
    arrays = {
        name: (dims, np.array([getattr(m, field) for m in medians.flat]).reshape(*medians.shape, -1))
        for name, field in (("median_ratio", "ratio"), ("median_ratio_se", "ratio_se"))
    }
    there = used.notnull()
    found = xr.Dataset(arrays, {name: c for name, c in ds.coords.items() if set(c.dims) <= set(dims)})
    found["valid_share"] = ds["valid"].where(there).mean("image")
    found["directions"] = used.median("image")
    found["n_images"] = there.any("scale").sum("image")
    for name, (units, text) in VARIABLES.items():
        found[name].attrs = {"units": units, "long_name": text}
    return found.assign_attrs(bootstrap_replicates=replicates, bootstrap_seed=seed)


def above_target(ds: xr.Dataset, target: float) -> tuple[int, int]:
    """Count the valid ratios whose relative standard error is above a target, and all of them."""
    error = (ds["ratio_se"] / ds["ratio"]).where(ds["valid"] > 0)
    return int((error > target).sum()), int(error.notnull().sum())


@attrs.frozen(kw_only=True)
class ProfileSummary(Summary):
    """Table of the response profile: scale by scale, the median ratio, valid images, and directions used.

    Attributes
    ----------
    probe : str
        Node of the results that holds the ratios.
    replicates, seed : int
        Bootstrap of the standard errors, see `median_profile`.
    """

    probe: str = "ratio"
    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return the node's name: profile."""
        return "profile"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "η: L2 in raw [0, 1] pixels; median over the valid images, where they are at least half, ± one standard "
            "error (bootstrap over images and directions)"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Apply `profile_table` to the probe's node."""
        ds = profile_table(stored_node(tree, self.probe), replicates=self.replicates, seed=self.seed)
        return ds.assign_attrs(probe=self.probe)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return the table: a row a scale; encoder and probe set are named where there are several."""
        lead = [str(d) for d in ds["n_images"].dims]
        named = [d for d in lead if ds.sizes[d] > 1]
        headers = [*(d.replace("probeset", "probe set") for d in named), "η", "median ratio", "valid", "directions"]
        rows = []
        for place in np.ndindex(ds["n_images"].shape):
            cell = ds.isel(dict(zip(lead, place, strict=True)))
            rows += [
                [*(str(cell[d].item()) for d in named), *_row(cell.isel(scale=k))] for k in range(ds.sizes["scale"])
            ]
        return headers, rows


def _row(rung: xr.Dataset) -> list[str]:
    median, error, share, directions = (float(rung[name]) for name in list(VARIABLES)[:4])
    images = int(rung["n_images"])
    return [
        f"{float(rung['scale']):.3g}",
        NONE if np.isnan(median) else with_error(median, error),
        NONE if np.isnan(share) else f"{round(share * images)}/{images}",
        NONE if np.isnan(directions) else f"{directions:.0f}",
    ]
