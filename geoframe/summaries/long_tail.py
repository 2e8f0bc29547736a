"""Classifiers of long-tailed data: where errors go, and coverage, by frequency band (Neural Expansion, I.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.statistics.bands import BANDS, CORRECT, DESTINATIONS, Banded, banded
from geoframe.statistics.compare import LEVEL, binomial_interval, mean_interval
from geoframe.summaries.tables import INTERVALS, interval, who
from geoframe.summary import Summary, described

if TYPE_CHECKING:
    import xarray as xr

ENDS = {"": "", "_low": "lower end of the 95 % interval of the ", "_high": "upper end of the 95 % interval of the "}
SHARES = {
    "error": "share of a true band's images that are misclassified",
    "flow": "share of a true band's misclassified images that go to a predicted band",
    "coverage": "mean coverage of images by true band and by where their prediction is",
}
VARIABLES = {
    "class_counts": ("1", "training images of the class (−1: no class of this training)"),
    "has_published_flows": ("1", "trained on MNIST at 6.5:1, of which the paper's text gives the flows"),
    "images": ("1", "number of images by true band and by where their prediction is"),
    "even": ("1", "share of a true band's errors to a predicted band if all other classes drew as many"),
    **{f"{name}{end}": ("1", f"{said}{text}") for name, text in SHARES.items() for end, said in ENDS.items()},
}
NOTHING = "no trained network whose training images have classes of different sizes"
LISTED = 5  # classes of a band that a table names one by one


@attrs.frozen(kw_only=True)
class LongTailSummary(Summary):
    """By band of the true class: training images, errors, where they go, and the coverage of each combination.

    A band is the third of the classes with few, middling or many training images (33rd and 66th percentiles, Table 8;
    see `frequency_bands`). Numbers of training images are those of the node `training`.

    Attributes
    ----------
    probe : str
        Node of the `same` rays: predictions and coverage.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return "long-tail"."""
        return "long-tail"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "low, medium, high: classes with fewest to most training images, parted at the 33rd and 66th percentiles "
            "(Neural Expansion, Table 8; which classes are the rare ones is ours). even: errors to low/medium/high if "
            "every other class drew as many. Coverage in %, mean over images, by true band, of correct images and of "
            "wrong ones by the band of the class predicted. Shares: Wilson's 95 % intervals; coverage: "
            f"{INTERVALS}"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Return one entry along `cell` for each trained encoder and probe set; empty where there is none."""
        import xarray as xr

        found = banded(tree, self.probe)
        if not found:
            return xr.Dataset()
        names = {name: [getattr(one, name) for one in found] for name in ("encoder", "probeset")}
        ds = xr.concat([_of(one) for one in found], "cell", join="outer", fill_value={"class_counts": -1})
        texts = {name: ("cell", np.array(values, dtype=object)) for name, values in names.items()}
        return described(ds.assign_coords(texts), VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder, probe set and band: training images and errors."""
        headers = ["encoder", "probe set", "band", "training images by class", "test images", "misclassified (%)"]
        rows = []
        for cell in _cells(ds):
            for band in BANDS:
                part = cell.sel(true=band)
                images, error = str(int(part["images"].sum())), interval(part, "error", 100)
                rows.append([*who(cell), band, _members(cell, band), images, error])
        return headers, rows

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the tables of training images, of flows, and of coverage."""
        if not ds.data_vars:
            return [(self.label, ["nothing to compare"], [[NOTHING]])]
        named = len({str(name) for name in ds["probeset"].values}) > 1
        flows: list[list[str]] = []
        covered: list[list[str]] = []
        for cell in _cells(ds):
            subject = f"{who(cell)[0]}, {who(cell)[1]}" if named else who(cell)[0]
            for band in BANDS:
                part = cell.sel(true=band)
                if not int(part["images"].sum()):
                    continue
                wrong, even = (part[name].sel(destination=[*BANDS]) for name in ("images", "even"))
                shares = [interval(part.sel(destination=to), "flow", 100) for to in BANDS]
                spread = "/".join(f"{100 * float(share):.0f}" for share in even)
                flows.append([subject, band, str(int(wrong.sum())), *shares, spread])
                means = [interval(part.sel(destination=to), "coverage", 100) for to in DESTINATIONS]
                covered.append([subject, band, *means])
        to = [f"→ {band}" for band in BANDS]
        return [
            (self.label, *self.rows(ds)),
            (f"{self.label}, errors (%)", ["encoder", "true band", "errors", *to, "even"], flows),
            (f"{self.label}, coverage (%)", ["encoder", "true band", CORRECT, *to], covered),
        ]


def _of(one: Banded) -> xr.Dataset:
    """Everything of one classifier on one probe set."""
    import xarray as xr

    labels = sorted(one.counts)
    table = [[_combination(one, band, to) for to in DESTINATIONS] for band in BANDS]
    variables: dict[str, Any] = {
        name: (("true", "destination"), np.array([[found[name] for found in row] for row in table]))
        for name in table[0][0]
    }
    errors = [share(~one.correct[one.true == band]) for band in BANDS]
    variables |= {f"error{end}": ("true", [found[i] for found in errors]) for i, end in enumerate(ENDS)}
    variables["has_published_flows"] = ((), one.has_published_flows)
    variables["class_counts"] = ("class", [one.counts[label] for label in labels])
    coords = {"true": [*BANDS], "destination": [*DESTINATIONS], "class": labels}
    return xr.Dataset(
        variables, {name: np.array(v, dtype=object if name != "class" else int) for name, v in coords.items()}
    )


def _combination(one: Banded, band: str, to: str) -> dict[str, float]:
    """Number, share and coverage of the images of a true band with predictions of one kind."""
    import xarray as xr

    chosen = one.went(band, to)
    found = mean_interval(xr.DataArray(one.coverage[chosen], dims="image"), shares=True)
    values = {f"coverage{end}": float(found[name]) for end, name in zip(ENDS, ("mean", "low", "high"), strict=True)}
    wrong = (one.true == band) & ~one.correct
    flow = share(chosen[wrong]) if to != CORRECT else (np.nan, np.nan, np.nan)
    values |= {f"flow{end}": value for end, value in zip(ENDS, flow, strict=True)}
    return {**values, "images": int(chosen.sum()), "even": one.even(band, to) if to != CORRECT else np.nan}


def share(yes: Any) -> tuple[float, float, float]:
    """Share of a sample with Wilson's interval; NaN of an empty one."""
    import xarray as xr

    found = binomial_interval(xr.DataArray(np.asarray(yes, dtype=bool), dims="image"), "image")
    return float(found["share"]), float(found["low"]), float(found["high"])


def _cells(ds: xr.Dataset) -> list[xr.Dataset]:
    return [ds.isel(cell=place) for place in range(ds.sizes.get("cell", 0))]


def _members(cell: xr.Dataset, band: str) -> str:
    """Write the classes of a band with their training images; of many, how many and from what to what."""
    from geoframe.statistics.bands import class_bands

    counts = {int(k): int(n) for k, n in zip(cell["class"].values, cell["class_counts"].values, strict=True) if n > 0}
    bands = class_bands(counts)
    mine = {label: n for label, n in counts.items() if bands[label] == band}
    if len(mine) > LISTED:
        return f"{len(mine)} classes: {min(mine.values())}–{max(mine.values())}"
    return ", ".join(f"{label}: {n}" for label, n in mine.items())
