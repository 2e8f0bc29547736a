"""Ray coverage of stored results: means by outcome, and F.1's 2×2 of trained or not, same or different class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.spec import count
from geoframe.statistics.compare import ALPHA, LEVEL, mean_interval
from geoframe.summaries.chance import CHANCE_RULE, at_chance
from geoframe.summaries.contrasts import (
    CONTRASTS,
    NETWORKS,
    PUBLISHED_P,
    TESTS,
    compared,
    pairs,
    published,
    short,
    tested,
    verdict,
)
from geoframe.summaries.tables import INTERVALS, RULE, interval, measured, number, percent, who
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

MEANS = {
    "coverage": ("1", "mean over test images of the share of covered rays"),
    "coverage_low": ("1", "lower end of the 95 % interval of the mean coverage"),
    "coverage_high": ("1", "upper end of the 95 % interval of the mean coverage"),
    "images": ("1", "number of test images with rays"),
    "accuracy": ("1", "share of test images with the right prediction"),
    "elsewhere": ("1", "mean over test images of the share of rays that start in another class"),
    "reentry": ("1", "mean over test images of the share of rays that leave the class and end in it"),
}


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


@attrs.frozen(kw_only=True)
class CoverageSummary(Summary):
    """Mean coverage over test images, with a bootstrap interval over images; correct and misclassified apart, too.

    Attributes
    ----------
    probe : str
        Node of the `same` rays.
    different : str
        Node of the `different` rays; "" where there is none.
    by_outcome : bool
        False leaves out accuracy and outcomes: for images whose labels mean nothing to the encoders.
    replicates, seed : int
        Bootstrap of the 95 % interval.
    """

    probe: str = "coverage"
    different: str = "coverage-different"
    by_outcome: bool = True
    replicates: int = count(2000)
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
        outcomes = {"all": counted}
        if self.by_outcome:
            outcomes |= {"correct": known & same["correct"], "misclassified": known & ~same["correct"]}
        parts = [self._interval(coverage.where(mask)) for mask in outcomes.values()]
        ds = xr.concat(parts, xr.Variable("outcome", np.array(list(outcomes), dtype=object)))
        if self.by_outcome:
            ds["accuracy"] = same["correct"].where(known).mean("image")
        for name in ("elsewhere", "reentry"):
            ds[name] = same[name].mean("image")
        return described(ds, MEANS).assign_attrs(level=LEVEL, replicates=self.replicates, seed=self.seed)

    def _interval(self, coverage: xr.DataArray) -> xr.Dataset:
        found = mean_interval(coverage, replicates=self.replicates, seed=self.seed, shares=True)
        names = {"mean": "coverage", "low": "coverage_low", "high": "coverage_high", "n": "images"}
        return found.rename(names)

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "same, different: coverage in %, the share of a test image's rays that keep its predicted class (Neural "
            f"Expansion, §5.3 and F.1), mean over images; {INTERVALS}, Wilson's where every image has 0 or every one "
            "100 %; re-entry: rays that leave the class and end in it (after appendix H.1)"
        )

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder and probe set that was measured, all images together."""
        kinds = [str(v) for v in ds["classes"].values]
        accuracy = ["accuracy (%)"] if self.by_outcome else []
        headers = ["encoder", "probe set", "images", *accuracy, *(f"{kind} (%)" for kind in kinds), "re-entry (%)"]
        rows = []
        for cell in measured(ds, "coverage"):
            every = cell.sel(outcome="all")
            ranges = [interval(every.sel(classes=kind), "coverage", 100) for kind in kinds]
            images = str(int(every["images"].max()))
            right = [percent(cell["accuracy"])] if self.by_outcome else []
            rows.append([*who(cell), images, *right, *ranges, percent(cell["reentry"])])
        return headers, rows

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the table of all images, and that of correctly classified and misclassified ones."""
        outcomes = [str(v) for v in ds["outcome"].values if v != "all"]
        headers = ["encoder", "probe set"]
        for outcome in outcomes:
            headers += [f"n {outcome}", "same (%)"]
        rows = []
        for cell in measured(ds, "accuracy") if self.by_outcome else ():
            same = [cell.sel(classes="same", outcome=outcome) for outcome in outcomes]
            rows.append(
                [
                    *who(cell),
                    *(text for one in same for text in (str(int(one["images"])), interval(one, "coverage", 100))),
                ]
            )
        more = [(f"{self.label}, by outcome", headers, rows)] if rows else []
        return [(self.label, *self.rows(ds)), *more]


@attrs.frozen(kw_only=True)
class CoverageTests(Summary):
    """F.1: does training raise same-class coverage, and above that of other classes? (Mann–Whitney U over images).

    Rule (ours): a contrast agrees where p < 0.05 with the published sign, disagrees where p < 0.05 with the other sign,
    and is inconclusive otherwise. The sign of the third contrast is the one that F.1 finds on MNIST (same > different,
    p = 3.9e-12 and 0.02, "a mild same-class pixel bias"); on Fashion-MNIST it isn't significant there (p = 0.19).

    A network is compared with its own random copy, known from the encoders' identities (`networks`). Where there is
    none, or older results don't tell which it is, what needs one isn't compared, and the verdict says so. Where a
    trained network is at chance (`at_chance`), what compares it is inconclusive.

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
            "initial: the network's random copy; mean coverage in %, Mann–Whitney U over n test images, two-sided. "
            f"Published: Neural Expansion, F.1, ranges over three networks ({NETWORKS}); its three p-values in that "
            "order, the last one not significant. On other data, such as 8×8 digits, only the sign is compared. "
            f"{RULE}, and so where the trained network is {CHANCE_RULE}"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Compare each trained encoder with its random copy, on one probe set at a time; there may be none."""
        import xarray as xr

        coverage = coverages(tree, self.probe, self.different)
        found = list(pairs(coverage))
        if not found:  # preset smoke has initial weights only
            return xr.Dataset(attrs={"alpha": ALPHA})
        parts = [xr.concat([compared(pair, *sides) for sides in CONTRASTS.values()], "contrast") for pair, _ in found]
        ds = xr.concat(parts, "pair").assign_coords(contrast=np.array(list(CONTRASTS), dtype=object))
        labels = np.array([label for _, label in found], dtype=object)
        names = ("encoder", "probeset", "control", "problem")
        ds = ds.assign_coords({name: ("pair", labels[:, i]) for i, name in enumerate(names)})
        rays = stored_node(tree, self.probe)
        lost = [encoder in at_chance(rays, probeset) for encoder, probeset, *_ in labels]
        ds = ds.assign_coords(at_chance=("pair", np.array(lost)))
        return described(ds, TESTS).assign_attrs(alpha=ALPHA)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each pair and contrast: tests and verdicts."""
        headers = ["encoder", "probe set", "contrast", "p", "published p", "verdict"]
        cells = list(tested(ds))
        return headers, [
            [*who(cell), short(sides), number(cell["p"], 2), said, verdict(cell)]
            for (cell, sides), said in zip(cells, PUBLISHED_P * (len(cells) // 3), strict=True)
        ]

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table of means and one of tests, or one that says why there are none."""
        headers = ["encoder", "probe set", "contrast", "n", "ours (%)", "published (%)"]
        rows = [
            [
                *who(cell),
                short(sides),
                f"{int(cell['n_first'])}, {int(cell['n_second'])}",
                f"{percent(cell['first'])} − {percent(cell['second'])}",
                " − ".join(published(side) for side in sides),
            ]
            for cell, sides in tested(ds)
        ]
        if not rows:
            return [(self.label, ["nothing to compare"], [["no trained network in these results"]])]
        return [(f"{self.label}, means", headers, rows), (self.label, *self.rows(ds))]
