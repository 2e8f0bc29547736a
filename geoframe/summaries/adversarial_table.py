"""Networks of one family by ε: accuracies, the peak of the median profile, and the linear prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.spec import count
from geoframe.statistics.families import epsilons_of
from geoframe.statistics.peaks import peaks
from geoframe.summaries.bump import ETA_UNITS, medians_of
from geoframe.summaries.tables import NONE, measured, number, percent, place_with_error, with_error
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

TRAINING = "training"  # the node of accuracies
VARIABLES = {
    "budget": (ETA_UNITS, "training budget ε"),
    "train_accuracy": ("1", "share of correct classifications of training images, as they are"),
    "test_accuracy": ("1", "share of correct classifications of test images"),
    "peak_scale": (ETA_UNITS, "perturbation size at the median profile's peak, a lower bound where it is censored"),
    "log10_peak_scale_se": ("decade", "standard error of log10 of the perturbation size at the peak"),
    "peak_height": ("1", "height of the median profile's peak, a lower bound where it is censored"),
    "peak_height_se": ("1", "standard error of the peak's height"),
    "censored": ("1", "the median profile is largest at the end of the ladder"),
    "prediction": ("squared feature L2 / η²", "median over images of the linear prediction m̃_η / η²"),
    "prediction_low": ("squared feature L2 / η²", "lower quartile over images of the linear prediction"),
    "prediction_high": ("squared feature L2 / η²", "upper quartile over images of the linear prediction"),
    "n_images": ("1", "number of images with at least one valid rung"),
}


def by_budget(tree: xr.DataTree, probe: str = "ratio", *, replicates: int = 1000, seed: int = 0) -> xr.Dataset:
    """Return the variables of `VARIABLES` of every encoder that has an ε, by ascending ε; empty where none has.

    Peaks are those of the median profile, interior or at the end of the ladder; standard errors of the former by
    bootstrap over images and pairs (`median_profile`).
    """
    import xarray as xr

    ds = stored_node(tree, probe)
    epsilon = epsilons_of(ds)
    names = sorted(epsilon, key=lambda name: epsilon[name])
    if not names:
        return xr.Dataset()
    ds = ds.sel(encoder=names).transpose("encoder", "probeset", ...).sortby("scale")
    lead = ("encoder", "probeset")
    found = {**_peaks(ds, replicates, seed), **_predictions(ds)}
    coords = {name: c for name, c in ds.coords.items() if set(c.dims) <= set(lead)}
    table = xr.Dataset({name: (lead, values) for name, values in found.items()}, coords)
    table["budget"] = "encoder", np.array([epsilon[name] for name in names])
    for name in ("train_accuracy", "test_accuracy"):
        table[name] = "encoder", _accuracies(tree, names, name)
    return described(table[list(VARIABLES)], VARIABLES).assign_attrs(
        probe=probe, bootstrap_replicates=replicates, bootstrap_seed=seed
    )


def _peaks(ds: xr.Dataset, replicates: int, seed: int) -> dict[str, Any]:
    medians = medians_of(ds, replicates=replicates, seed=seed)
    place = peaks(ds["scale"].values, np.array([m.ratio for m in medians.flat]).reshape(*medians.shape, -1))
    inside = np.isfinite(place.scale) & ~place.at_end
    errors = {
        name: np.where(inside, np.array([getattr(m, field) for m in medians.flat]).reshape(medians.shape), np.nan)
        for name, field in (("log10_peak_scale_se", "log10_scale_se"), ("peak_height_se", "height_se"))
    }
    images = np.array([m.images for m in medians.flat]).reshape(medians.shape)
    return {
        "peak_scale": place.scale,
        "peak_height": place.height,
        "censored": place.at_end,
        "n_images": images,
        **errors,
    }


def _predictions(ds: xr.Dataset) -> dict[str, Any]:
    values = ds["prediction"].transpose("encoder", "probeset", "image").values
    quartiles = np.full((3, *values.shape[:2]), np.nan)
    for place in np.ndindex(values.shape[:2]):
        known = values[place][np.isfinite(values[place])]
        if known.size:
            quartiles[:, *place] = np.quantile(known, [0.5, 0.25, 0.75])
    return dict(zip(("prediction", "prediction_low", "prediction_high"), quartiles, strict=True))


def _accuracies(tree: xr.DataTree, names: list[str], variable: str) -> list[float]:
    """Accuracies by name; NaN for encoders that weren't trained here."""
    if TRAINING not in tree.children:
        return [np.nan] * len(names)
    known = tree.children[TRAINING].to_dataset()[variable]
    return [float(known.sel(encoder=name)) if name in known["encoder"].values else np.nan for name in names]


@attrs.frozen(kw_only=True, slots=False, eq=False)
class AdversarialSummary(Summary):
    """Table of what stands beside ε: accuracy, peak, prediction (*Beyond Local Linearity*, fig. 2a).

    Attributes
    ----------
    probe : str
        Node of the ratios.
    replicates, seed : int
        Bootstrap of the standard errors, see `median_profile`.
    """

    probe: str = "ratio"
    replicates: int = count(1000)
    seed: int = 0

    @property
    def caption(self) -> str:
        """Units, and what is what."""
        return (
            "ε and η: L2 in raw [0, 1] pixels; accuracy of networks that were trained here; peak of the median "
            "profile (over images, at scales valid in at least half of them), ± one standard error (bootstrap over "
            "images and directions), ≥: at the end of the ladder; "
            "m̃: linear prediction m̃/η², median over images"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Return `by_budget`."""
        return by_budget(tree, self.probe, replicates=self.replicates, seed=self.seed)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row a network and probe set."""
        if "budget" not in ds:
            return ["nothing to compare"], [["these results hold no network with an ε"]]
        headers = ["encoder", "ε", "probe set", "images", "train %", "test %", "peak η", "peak height", "m̃"]
        return headers, [_row(cell) for cell in measured(ds, "prediction")]


def _row(cell: xr.Dataset) -> list[str]:
    sign = "≥ " if bool(cell["censored"]) else ""
    height, error = float(cell["peak_height"]), float(cell["peak_height_se"])
    return [
        str(cell["encoder"].item()),
        f"{float(cell['budget']):g}",
        str(cell["probeset"].item()),
        str(int(cell["n_images"])),
        *(percent(cell[name]) for name in ("train_accuracy", "test_accuracy")),
        f"{sign}{place_with_error(cell)}" if np.isfinite(cell["peak_scale"]) else "no peak",
        f"{sign}{with_error(height, error)}" if np.isfinite(height) else NONE,
        number(cell["prediction"]),
    ]
