"""Attacked images of stored results: who was fooled, how far it took, and what is covered after (fig. 5, I.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.compare import LEVEL, binomial_interval, mann_whitney, mean_interval
from geoframe.summaries.tables import INTERVALS, NONE, interval, number, who
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import xarray as xr

CLEAN = "none"
OUTCOMES = ("correct", "wrong")
NODES = ("coverage-cw", "coverage-ifgsm", "coverage-pgd")
L2, LINF = "raw-pixel L2", "raw-pixel L∞"
VARIABLES = {
    "images": ("1", "number of labelled images"),
    "correct": ("1", "number of attacked images whose prediction is the label"),
    "wrong": ("1", "number of attacked images whose prediction isn't the label"),
    "correct_before": ("1", "number of images whose prediction was the label before the attack"),
    "success": ("1", "share of the images that were classified correctly before and are not after"),
    "success_low": ("1", "lower end of Wilson's 95 % interval of the share of successes"),
    "success_high": ("1", "upper end of Wilson's 95 % interval of the share of successes"),
    "distance": (L2, "median distance that successful attacks moved images"),
    "distance_inf": (LINF, "median over successful attacks of the largest change of a pixel"),
    "coverage": ("1", "mean over images of one outcome of the share of covered rays"),
    "coverage_low": ("1", "lower end of the 95 % interval of the mean coverage"),
    "coverage_high": ("1", "upper end of the 95 % interval of the mean coverage"),
    "covered_images": ("1", "number of images of one outcome with rays"),
    "difference": ("1", "mean coverage of misclassified images minus that of correctly classified ones"),
    "p": ("1", "two-sided p-value of Mann–Whitney's U of misclassified against correctly classified images"),
}


def as_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple (an attrs converter)."""
    return tuple(names)


@attrs.frozen
class Published:
    """What I.3 says of one network.

    Attributes
    ----------
    architecture : str
    correct, wrong : tuple of float, or None
        Range of the coverage over the three attacks, in %; None where the paper has none.
    counts : mapping of str to (int, int or None)
        Correctly and wrongly classified images by attack.
    """

    architecture: str
    correct: tuple[float, float]
    wrong: tuple[float, float] | None
    counts: dict[str, tuple[int, int | None]]

    def range_of(self, outcome: str) -> tuple[float, float] | None:
        """Return the range of an outcome."""
        return self.correct if outcome == "correct" else self.wrong


PUBLISHED = {
    "MNIST": Published("mlp", (83.9, 86.6), (91.2, 94.5), {"cw": (132, 68), "ifgsm": (81, 19), "pgd": (74, 26)}),
    "CIFAR10": Published("resnet20", (63.9, 68.7), (39.6, 58.1), {"cw": (37, 63), "ifgsm": (25, 75), "pgd": (35, 65)}),
    "Imagenette": Published("vit_b_16", (15.8, 19.6), None, {"cw": (53, None), "ifgsm": (47, None), "pgd": (42, None)}),
}


def published(cell: xr.Dataset) -> tuple[Published | None, bool]:
    """Return what I.3 says of an encoder and probe set, None of others, and whether the images are a stand-in."""
    data = _coord(cell, "probeset_dataset") or _coord(cell, "dataset")
    found = PUBLISHED.get(data)
    same = found is not None and _coord(cell, "architecture") == found.architecture
    return (found if same else None), bool(_coord(cell, "stand_in"))


def _coord(cell: xr.Dataset, name: str) -> str:
    return str(cell[name].item()) if name in cell.coords else ""


def attack_of(node: str) -> str:
    """Name of the attack in a node's name.

    >>> attack_of("coverage-pgd"), attack_of("coverage")
    ('pgd', 'none')
    """
    return node.partition("-")[2] or CLEAN


def attacked_node(tree: xr.DataTree, node: str) -> xr.Dataset:
    """Return the coverage of attacked images, or of images as they are where the node's probe had no attack.

    Raises
    ------
    BadInput
        Where the node isn't a RayCoverageProbe's.
    """
    ds = stored_node(tree, node)
    if "coverage" not in ds or "correct" not in ds:
        raise BadInput(f"node {node!r} holds no coverage: name a RayCoverageProbe's")
    return ds


def outcomes(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return which labelled images, (encoder, probeset, image), were measured and have the right or a wrong class."""
    known = (ds["predicted"] >= 0) & (ds["label"] >= 0)
    return {"correct": known & ds["correct"], "wrong": known & ~ds["correct"]}


@attrs.frozen(kw_only=True)
class AttackSummary(Summary):
    """What each attack does to each network, and the coverage of the attacked images by outcome (fig. 5, I.3).

    Success is counted over the images that were classified correctly before. I.3's counts are of all images. Its
    counts don't all add up to its numbers of images: IFGSM and PGD on MNIST to 100, not 200; of 50 images of Imagenette
    53 are correct under CW.

    Attributes
    ----------
    nodes : tuple of str
        Nodes of attacked images.
    clean : str
        Node of the same images as they are; "" where there is none.
    """

    nodes: tuple[str, ...] = attrs.field(default=NODES, converter=as_names)
    clean: str = "coverage"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            "correct / wrong: attacked images by their prediction (published: Neural Expansion, I.3, whose images are "
            "more); fooled: share of the images classified correctly before; L2, L∞: how far these were moved, "
            "medians, raw pixels; covered: mean share of a test image's rays that keep its predicted class; "
            f"{INTERVALS}, Wilson's for "
            "shares of images, and for coverage where every image has 0 or every one 100 %"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images."""
        import xarray as xr

        names = [*([self.clean] if self.clean else []), *self.nodes]
        parts = [_aggregated(attacked_node(tree, node)) for node in names]
        attacks = xr.Variable("attack", np.array([attack_of(node) for node in names], dtype=object))
        return described(xr.concat(parts, attacks), VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each encoder, probe set and attack: outcomes and distances."""
        headers = ["encoder", "probe set", "attack", "correct / wrong", "published", "fooled (%)", L2[10:], LINF[10:]]
        rows = []
        for cell in cells(ds):
            count = f"{int(cell['correct'])} / {int(cell['wrong'])}"
            moved = [number(cell[name], 2) for name in ("distance", "distance_inf")]
            fooled = NONE if attack_name(cell) == CLEAN else interval(cell, "success", 100, 2)
            rows.append([*who(cell), attack_name(cell), count, _counts(cell), fooled, *moved])
        return headers, rows

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the table of outcomes and distances, and that of coverage."""
        headers = ["encoder", "probe set", "attack", "outcome", "images", "covered (%)", "published (%)"]
        rows = []
        for cell in cells(ds):
            for one in (cell.sel(outcome=outcome) for outcome in OUTCOMES):
                said = "" if attack_name(cell) == CLEAN else _range(cell, str(one["outcome"].item()))
                images = str(int(one["covered_images"]))
                covered = interval(one, "coverage", 100)
                rows.append([*who(cell), attack_name(cell), str(one["outcome"].item()), images, covered, said])
        return [(self.label, *self.rows(ds)), (f"{self.label}, coverage", headers, rows)]


def _aggregated(ds: xr.Dataset) -> xr.Dataset:
    """Numbers of one attack, (encoder, probeset) and (outcome, encoder, probeset)."""
    import xarray as xr

    kind = outcomes(ds)
    right, wrong = kind["correct"], kind["wrong"]
    before = (ds["predicted_before"] == ds["label"]) & (right | wrong) if "predicted_before" in ds else right
    success = binomial_interval(wrong.where(before), "image")
    test = mann_whitney(ds["coverage"].where(wrong), ds["coverage"].where(right))
    parts = [_coverage(ds["coverage"].where(kind[outcome])) for outcome in OUTCOMES]
    table = xr.concat(parts, xr.Variable("outcome", np.array(OUTCOMES, dtype=object)))
    for name in ("distance", "distance_inf"):
        moved = ds[name] if name in ds else xr.full_like(ds["coverage"], np.nan)
        table[name] = moved.where(wrong & before).median("image")
    counts = {"images": right | wrong, "correct": right, "wrong": wrong, "correct_before": before}
    table = table.assign({name: which.sum("image") for name, which in counts.items()})
    ends = {"success": "share", "success_low": "low", "success_high": "high"}
    shares = {name: success[end] for name, end in ends.items()}
    return table.assign({**shares, "p": test["p"], "difference": test["difference"]})


def _coverage(values: xr.DataArray) -> xr.Dataset:
    found = mean_interval(values, shares=True)
    return found.rename(mean="coverage", low="coverage_low", high="coverage_high", n="covered_images")


def cells(ds: xr.Dataset) -> Iterator[xr.Dataset]:
    """Yield each attack on each encoder and probe set that was measured, encoder by encoder."""
    for encoder in range(ds.sizes["encoder"]):
        for probeset in range(ds.sizes["probeset"]):
            for attack in range(ds.sizes["attack"]):
                cell = ds.isel(encoder=encoder, probeset=probeset, attack=attack)
                if int(cell["images"]):
                    yield cell


def attack_name(cell: xr.Dataset) -> str:
    """Name of a cell's attack."""
    return str(cell["attack"].item())


def _counts(cell: xr.Dataset) -> str:
    found, _ = published(cell)
    if found is None or attack_name(cell) not in found.counts:
        return NONE
    right, wrong = found.counts[attack_name(cell)]
    return f"{right} / {NONE if wrong is None else wrong}"


def _range(cell: xr.Dataset, outcome: str) -> str:
    found, _ = published(cell)
    limits = None if found is None else found.range_of(outcome)
    return NONE if limits is None else f"{limits[0]:g}–{limits[1]:g}"
