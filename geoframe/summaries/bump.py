"""The bump of stored response ratios, labelled: dataset in, dataset and table out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.spec import count
from geoframe.statistics.bootstrap import MedianProfile, median_profile
from geoframe.statistics.profile import FEWEST_RUNGS, Array, BumpRule
from geoframe.summaries.tables import NONE, place_with_error, with_error
from geoframe.summary import Summary, stored_node

if TYPE_CHECKING:
    import xarray as xr

ETA_UNITS = "L2 in raw [0, 1] pixels"

# name: (units, long name); the order is that of the dataset
VARIABLES = {
    "median_ratio": ("1", "median over images of the response ratio, where at least half of them are valid"),
    "median_ratio_se": ("1", "standard error of the median response ratio"),
    "peak_height": ("1", "height of the median profile's peak"),
    "peak_height_se": ("1", "standard error of the peak's height"),
    "peak_scale": (ETA_UNITS, "perturbation size at the median profile's peak"),
    "log10_peak_scale_se": ("decade", "standard error of log10 of the perturbation size at the peak"),
    "width": ("decade", "full width of the peak at half its height above 1"),
    "width_se": ("decade", "standard error of the peak's width"),
    "tail_slope": ("1", "d log r / d log η over the last valid rungs of the median profile"),
    "tail_slope_se": ("1", "standard error of the tail slope"),
    "plateau": ("1", "the median profile starts at 1"),
    "peak": ("1", "the median profile has an interior peak"),
    "decays": ("1", "the median profile ends well below its largest rung"),
    "censored": ("1", "the median profile is largest at an end of the ladder"),
    "is_bump": ("1", "plateau, peak and decay together"),
    "bump_share": ("1", "share of bootstrap replicates that show the bump"),
    "n_images": ("1", "number of images with at least one valid rung"),
}


def bump(ds: xr.Dataset, rule: BumpRule | None = None, *, replicates: int = 1000, seed: int = 0) -> xr.Dataset:
    """Apply the bump rule to the median profile of each encoder and probe set.

    Parameters
    ----------
    ds : xarray.Dataset
        `ratio` and `ratio_se` (..., image, scale), as `RatioProbe` stores them; `prediction` and `prediction_se`
        (..., image) give the error that is common to all scales of an image, if there.
    rule : BumpRule, optional
        Thresholds; ours, the paper gives none.
    replicates, seed : int
        Bootstrap replicates over images and pairs, see `median_profile`.

    Returns
    -------
    xarray.Dataset
        The variables of `VARIABLES`, over the dimensions of `ratio` without image (and scale). Height, place and
        width are NaN where the rule finds no peak, the width also where one side does not come down to half
        the height. The rule's parameters are attributes.

    Raises
    ------
    BadInput
        If the dataset has no ratios over image and scale.
    """
    import xarray as xr

    rule = rule or BumpRule()
    if "ratio" not in ds or not {"image", "scale"} <= set(ds["ratio"].dims):
        raise BadInput("the bump needs a variable 'ratio' over image and scale: give a RatioProbe's dataset")
    lead = [str(d) for d in ds["ratio"].dims if d not in ("image", "scale")]
    medians = medians_of(ds, rule, replicates=replicates, seed=seed)
    fields = {name: _stack([_values(m)[name] for m in medians.flat], medians.shape) for name in VARIABLES}
    data = {
        name: ([*lead, "scale"][: values.ndim], values, {"units": VARIABLES[name][0], "long_name": VARIABLES[name][1]})
        for name, values in fields.items()
    }
    coords = {k: c for k, c in ds.coords.items() if set(c.dims) <= {*lead, "scale"}}
    settings = {**attrs.asdict(rule), "bootstrap_replicates": replicates, "bootstrap_seed": seed}
    return xr.Dataset(data, coords, settings)


def medians_of(ds: xr.Dataset, rule: BumpRule | None = None, *, replicates: int = 1000, seed: int = 0) -> Array:
    """Return the `MedianProfile` of each encoder and probe set: an object array over `ratio`'s leading dims."""
    import xarray as xr

    ratio = ds["ratio"].transpose(..., "image", "scale")
    error = ds["ratio_se"] if "ratio_se" in ds else xr.zeros_like(ratio)
    image = ratio.isel(scale=0, drop=True)
    common = xr.zeros_like(image)
    if "prediction" in ds and "prediction_se" in ds:
        common = ds["prediction_se"] / ds["prediction"].where(ds["prediction"] > 0)
    wanted = ((ratio, ratio), (error, ratio), (common, image))
    inputs = [values.broadcast_like(like).transpose(*like.dims).values for values, like in wanted]
    out = np.empty(ratio.shape[:-2], dtype=object)
    for place in np.ndindex(out.shape):
        cell = (v[place] for v in inputs)
        out[place] = median_profile(ds["scale"].values, *cell, rule=rule, replicates=replicates, seed=seed)
    return out


def was_measured(ds: xr.Dataset) -> xr.DataArray:
    """Which encoders were measured on which probe sets at all, whatever came of it: over `ratio`'s leading dims."""
    import xarray as xr

    known = ds["response"].notnull() if "response" in ds else xr.ones_like(ds["ratio"], dtype=bool)
    found = known.any(("image", "scale"))
    found.attrs = {"units": "1", "long_name": "whether the encoder was measured on the probe set"}
    return found


def _stack(values: list[Any], lead: tuple[int, ...]) -> Array:
    stacked = np.stack([np.asarray(v) for v in values])
    return stacked.reshape((*lead, *stacked.shape[1:]))


def _values(median: MedianProfile) -> dict[str, Any]:
    """One median profile as the variables of `VARIABLES`; what describes a peak is NaN without one."""
    shape = median.shape
    of_peak: dict[str, Any] = {
        "peak_height": shape.height,
        "peak_height_se": median.height_se,
        "peak_scale": shape.scale,
        "log10_peak_scale_se": median.log10_scale_se,
        "width": shape.width,
        "width_se": median.width_se if np.isfinite(shape.width) else np.nan,
    }
    return {
        "median_ratio": median.ratio,
        "median_ratio_se": median.ratio_se,
        **{name: np.where(shape.peak, value, np.nan) for name, value in of_peak.items()},
        "tail_slope": shape.tail_slope,
        "tail_slope_se": median.tail_slope_se,
        "plateau": shape.plateau,
        "peak": shape.peak,
        "decays": shape.decays,
        "censored": shape.censored,
        "is_bump": shape.bump,
        "bump_share": median.bump_share,
        "n_images": median.images,
    }


@attrs.frozen(kw_only=True)
class BumpSummary(Summary):
    """Table of the bump: height, place, width, and whether there is one, by the rule of `BumpRule`.

    Attributes
    ----------
    probe : str
        Node of the results that holds the ratios.
    plateau_tolerance, peak_minimum, decay_fraction, tail_rungs
        The rule, see `BumpRule`.
    replicates, seed : int
        Bootstrap of the standard errors, see `median_profile`.
    """

    probe: str = "ratio"
    plateau_tolerance: float = 0.1
    peak_minimum: float = 1.3
    decay_fraction: float = 0.5
    tail_rungs: int = 3
    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return the node's name: bump."""
        return "bump"

    @property
    def rule(self) -> BumpRule:
        """The thresholds as a `BumpRule`."""
        return BumpRule(**{f.name: getattr(self, f.name) for f in attrs.fields(BumpRule)})

    @property
    def caption(self) -> str:
        """How the peak is found, and what ± is."""
        return (
            "of the median over images, at scales valid in at least half of them; peak by a parabola through three "
            "log-log points, so it may lie between scales; "
            "± is one standard error (bootstrap over images and directions); "
            "censored: rises to the last scale, or falls from the first"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Apply `bump` to the probe's node."""
        node = stored_node(tree, self.probe)
        ds = bump(node, self.rule, replicates=self.replicates, seed=self.seed)
        return ds.assign(measured=was_measured(node)).assign_attrs(probe=self.probe)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return the table: one row an encoder and probe set, in the results' order."""
        lead = [str(d) for d in ds["is_bump"].dims]
        names = {"probeset": "probe set"}
        headers = [*(names.get(d, d) for d in lead), "images", "peak height", "peak η", "width (decades)", "bump"]
        rows = []
        for place in np.ndindex(ds["is_bump"].shape):
            cell = ds.isel(dict(zip(lead, place, strict=True)))
            if "measured" in cell and not cell["measured"]:  # a study's match pairs only some
                continue
            rows.append([*(str(cell[d].item()) if d in cell.coords else "" for d in lead), *_row(cell)])
        return headers, rows


def _row(cell: xr.Dataset) -> list[str]:
    images = str(int(cell["n_images"]))
    if not bool(cell["peak"]):
        return [images, NONE, NONE, NONE, verdict(cell)]
    width = float(cell["width"])
    return [
        images,
        with_error(float(cell["peak_height"]), float(cell["peak_height_se"])),
        place_with_error(cell),
        with_error(width, float(cell["width_se"])) if np.isfinite(width) else "censored",
        verdict(cell),
    ]


def verdict(cell: xr.Dataset) -> str:
    """Say in words whether one encoder and probe set shows the bump, and if not, the first reason why."""
    median = cell["median_ratio"].values
    valid = median[np.isfinite(median)]
    if valid.size < FEWEST_RUNGS:
        return "no data" if valid.size == 0 else "too few valid scales"
    if bool(cell["is_bump"]):
        return "yes"
    if bool(cell["censored"]):
        order = np.argsort(cell["scale"].values[np.isfinite(median)])
        rises = np.argmax(valid[order]) == valid.size - 1
        return "censored: rises" if rises else "censored: falls"
    if not bool(cell["plateau"]):
        return "no: no plateau"
    return "no: no peak" if not bool(cell["peak"]) else "no: no decay"
