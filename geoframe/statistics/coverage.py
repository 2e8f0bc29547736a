"""Ray coverage of stored results: a table, and F.1's 2×2 of trained or not, same or different class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.compare import LEVEL, mann_whitney, mean_interval
from geoframe.summary import Summary, stored_node

if TYPE_CHECKING:
    import xarray as xr

PUBLISHED = {  # F.1's text, in %; its Table 4 isn't in the text
    ("same", True): (89.0, 96.0),
    ("same", False): (32.0, 47.0),
    ("different", True): (0.3, 1.2),
}
CONTRASTS = {  # what is compared: (classes, trained) twice
    "trained: same − untrained: same": (("same", True), ("same", False)),
    "trained: same − trained: different": (("same", True), ("different", True)),
    "untrained: same − untrained: different": (("same", False), ("different", False)),
}
ALPHA = 0.05


def coverages(tree: xr.DataTree, same: str, different: str) -> xr.DataArray:
    """Coverage by image (classes, encoder, probeset, image), from the nodes of both kinds of rays that are there.

    Raises
    ------
    BadInput
        Where a node holds no coverage.
    """
    import xarray as xr

    found = {kind: stored_node(tree, node) for kind, node in (("same", same), ("different", different)) if node}
    for kind, ds in found.items():
        if "coverage" not in ds:
            raise BadInput(f"the node of {kind} rays holds no coverage: name a RayCoverageProbe's")
    parts = [ds["coverage"].transpose("encoder", "probeset", "image") for ds in found.values()]
    return xr.concat(parts, xr.Variable("classes", np.array(list(found), dtype=object)), join="outer")


def initial(ds: xr.Dataset | xr.DataArray) -> xr.DataArray:
    """Which encoders have their initial weights, (encoder,)."""
    import xarray as xr

    known = [str(v) for v in ds["training"].values] if "training" in ds.coords else [""] * ds.sizes["encoder"]
    return xr.DataArray(np.array([v == "random" for v in known]), dims="encoder", coords={"encoder": ds["encoder"]})


@attrs.frozen(kw_only=True)
class CoverageSummary(Summary):
    """Mean coverage over test images, with a bootstrap interval over images; correct and misclassified apart.

    Attributes
    ----------
    probe : str
        Node of the `same` rays.
    different : str
        Node of the `different` rays; "" where there is none.
    replicates, seed : int
        Bootstrap of the 95 % interval.
    """

    probe: str = "coverage"
    different: str = "coverage-different"
    replicates: int = 2000
    seed: int = 0

    def default_name(self) -> str:
        """Return the node's name."""
        return f"{self.probe}-summary"

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Return the mean coverage of each encoder and probe set, by kind of ray and by outcome."""
        import xarray as xr

        same = stored_node(tree, self.probe)
        coverage = coverages(tree, self.probe, self.different)
        counted = same["coverage"].notnull()
        known = (same["label"] >= 0) & counted
        outcomes = {"all": counted, "correct": known & same["correct"], "misclassified": known & ~same["correct"]}
        parts = [self._interval(coverage.where(mask)) for mask in outcomes.values()]
        ds = xr.concat(parts, xr.Variable("outcome", np.array(list(outcomes), dtype=object)))
        ds["accuracy"] = same["correct"].where(known).mean("image")
        for name in ("elsewhere", "reentry"):
            ds[name] = same[name].mean("image").assign_attrs(same[name].attrs)
        ds["coverage"].attrs = {"units": "1", "long_name": "mean over test images of the share of covered rays"}
        ds["accuracy"].attrs = {"units": "1", "long_name": "share of test images with the right prediction"}
        return ds.assign_attrs(level=LEVEL, replicates=self.replicates, seed=self.seed)

    def _interval(self, coverage: xr.DataArray) -> xr.Dataset:
        found = mean_interval(coverage, replicates=self.replicates, seed=self.seed)
        names = {"mean": "coverage", "low": "coverage_low", "high": "coverage_high", "n": "images"}
        return found.rename(names)

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "coverage in %, mean over test images with a 95 % bootstrap interval; re-entry: rays that leave the class "
            "and come back"
        )

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder and probe set that was measured."""
        kinds = [str(v) for v in ds["classes"].values]
        headers = ["encoder", "probe set", "images", "accuracy", "same", "correct", "misclassified", "re-entry"]
        headers += ["different"] if "different" in kinds else []
        rows = []
        for cell in _cells(ds, "coverage"):
            same = cell.sel(classes="same")
            row = [str(cell["encoder"].item()), str(cell["probeset"].item())]
            row += [str(int(same.sel(outcome="all")["images"])), _percent(cell["accuracy"])]
            row += [_range(same.sel(outcome=outcome)) for outcome in ("all", "correct", "misclassified")]
            row += [_percent(cell["reentry"])]
            if "different" in kinds:
                row.append(_range(cell.sel(classes="different", outcome="all")))
            rows.append(row)
        return headers, rows


@attrs.frozen(kw_only=True)
class CoverageTests(Summary):
    """F.1: does training raise same-class coverage, and above that of other classes? (Mann–Whitney U over images).

    Rule (ours): a contrast agrees where p < 0.05 with the published sign, disagrees where p < 0.05 with the other sign,
    and is inconclusive otherwise. The third contrast has no published sign (p = 0.19 on Fashion-MNIST, 4e-12 and 0.02
    on MNIST): it is reported.

    Attributes
    ----------
    probe, different : str
        Nodes of the `same` and `different` rays.
    """

    probe: str = "coverage"
    different: str = "coverage-different"

    def default_name(self) -> str:
        """Return the node's name."""
        return f"{self.probe}-tests"

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            "mean coverage in %, Mann–Whitney U over test images; published ranges are those of F.1's text (three "
            f"networks); agrees: p < {ALPHA} with the published sign; disagrees: with the other one"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Compare; a pair is a trained encoder and the one with its initial weights, on one probe set; maybe none."""
        import xarray as xr

        coverage = coverages(tree, self.probe, self.different)
        pairs = list(_pairs(coverage))
        if not pairs:  # preset smoke has initial weights only
            return xr.Dataset(attrs={"alpha": ALPHA})
        found = [xr.concat([_contrast(pair, *sides) for sides in CONTRASTS.values()], "contrast") for pair, _ in pairs]
        ds = xr.concat(found, "pair").assign_coords(contrast=np.array(list(CONTRASTS), dtype=object))
        labels = np.array([label for _, label in pairs], dtype=object)
        ds = ds.assign_coords(encoder=("pair", labels[:, 0]), probeset=("pair", labels[:, 1]))
        return ds.assign_attrs(alpha=ALPHA)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each pair and contrast."""
        headers = ["encoder", "probe set", "contrast", "ours", "published", "p", "verdict"]
        rows = []
        for pair in range(ds.sizes.get("pair", 0)):
            for name, sides in CONTRASTS.items():
                cell = ds.isel(pair=pair).sel(contrast=name)
                ours = f"{_percent(cell['first'])} − {_percent(cell['second'])}"
                published = " − ".join(_published(side) for side in sides)
                p = float(cell["p"])
                who = [str(cell["encoder"].item()), str(cell["probeset"].item()), name]
                rows.append([*who, ours, published, f"{p:.2g}" if np.isfinite(p) else "–", verdict(cell)])
        return headers, rows


def verdict(cell: xr.Dataset) -> str:
    """One contrast by the rule of `CoverageTests`."""
    if any(side not in PUBLISHED for side in CONTRASTS[str(cell["contrast"].item())]):
        return "reported"
    if not float(cell["p"]) < ALPHA:
        return "inconclusive"
    return "agrees" if float(cell["difference"]) > 0 else "disagrees"


def _pairs(coverage: xr.DataArray) -> Any:
    """Yield coverage (trained, classes, image) of each trained encoder with its initial twin, and both names."""
    random = initial(coverage)
    same = [name for name in ("architecture", "dataset", "seed") if name in coverage.coords]
    for encoder in coverage["encoder"].values[~random.values]:
        mine = coverage.sel(encoder=encoder)
        twins = [
            twin
            for twin in coverage["encoder"].values[random.values]
            if all(coverage[c].sel(encoder=twin).item() == mine[c].item() for c in same)
        ]
        for probeset in coverage["probeset"].values if twins else ():
            rows = coverage.sel(encoder=[encoder, twins[0]], probeset=probeset, drop=True)
            if bool(rows.notnull().any("image").all()):
                trained = rows.drop_vars(set(rows.coords) - {"classes"}).rename(encoder="trained")
                yield trained.assign_coords(trained=[True, False]), (str(encoder), str(probeset))


def _contrast(pair: xr.DataArray, first: tuple[str, bool], second: tuple[str, bool]) -> xr.Dataset:
    """Compare two of the four samples; NaN where the results lack one kind of rays."""
    import xarray as xr

    def sample(classes: str, trained: bool) -> xr.DataArray:
        if classes in pair["classes"].values:
            return pair.sel(classes=classes, trained=trained, drop=True)
        return xr.full_like(pair.isel(classes=0, trained=0, drop=True), np.nan)

    one, other = sample(*first), sample(*second)
    return mann_whitney(one, other).assign(first=one.mean("image"), second=other.mean("image"))


def _cells(ds: xr.Dataset, name: str) -> Any:
    """Yield what was measured, encoder by encoder."""
    for encoder in range(ds.sizes["encoder"]):
        for probeset in range(ds.sizes["probeset"]):
            cell = ds.isel(encoder=encoder, probeset=probeset)
            if bool(cell[name].notnull().any()):
                yield cell


def _percent(value: Any) -> str:
    number = 100 * float(value)
    return f"{number:.3g}" if np.isfinite(number) else "–"


def _range(cell: xr.Dataset) -> str:
    mean = _percent(cell["coverage"])
    if mean == "–":
        return mean
    return f"{mean} [{_percent(cell['coverage_low'])}, {_percent(cell['coverage_high'])}]"


def _published(side: tuple[str, bool]) -> str:
    if side not in PUBLISHED:
        return "not given"
    low, high = PUBLISHED[side]
    return f"{low:g}–{high:g}"
