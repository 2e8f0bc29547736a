"""Ray coverage under random labels, beside true ones (Neural Expansion, fig. 4a, Table 7, I.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.compare import FEWEST, mann_whitney, mean_interval
from geoframe.statistics.pairing import along_encoder, initial
from geoframe.summaries.claim_table import REPORTED, Claim, Claims, by_interval, by_range, unclear
from geoframe.summaries.tables import RULE, by_sign, number
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

TRUE, RANDOM = "true", re.compile(r"random\d+")  # variants: I.1's RANDOM-10 is random10
PUBLISHED_TRUE, PUBLISHED_RANDOM = 80.0, (17.0, 24.0)  # %, §6 and I.1; Table 7 itself isn't in the text
MEMORISED = 0.8  # train accuracy below which a network says nothing about memorised labels
DATASET = "MNIST"  # whose figures are published


@attrs.frozen
class Labelled:
    """One network: what stands in the results, its variant, coverage by image, accuracies, and training images."""

    subject: str
    variant: str
    dataset: str
    coverage: xr.DataArray
    train: float
    test: float
    images: int

    @property
    def doubt(self) -> str:
        """Why nothing follows from its coverage; "" where something does. Of random labels only."""
        if self.variant == TRUE:
            return ""
        if not np.isfinite(self.train):
            return "train accuracy not known"
        return "" if self.train >= MEMORISED else f"memorised only {number(100 * self.train, 2)} %"


@attrs.frozen(kw_only=True, slots=False, eq=False)
class RandomLabelClaims(Claims):
    """Coverage under random labels against the published range, and against true labels (§6, I.1, Table 7).

    The rules are in the caption. One training of each kind: intervals and tests are over test images.

    Attributes
    ----------
    probe : str
        Node of the `same` rays.
    """

    probe: str = "coverage"

    @property
    def caption(self) -> str:
        """The rules."""
        low, high = PUBLISHED_RANDOM
        return (
            f"published: Neural Expansion, §6 and appendix I.1, on MNIST: {low:g}–{high:g} % on average under random "
            f"labels, > {PUBLISHED_TRUE:g} % under true ones; Table 7 isn't in its text. Means over n test images with "
            f"95 % bootstrap intervals; in range: agrees where the mean lies in {low:g}–{high:g} %, disagrees where "
            f"the interval doesn't touch it; above {PUBLISHED_TRUE:g} %: agrees where the interval is, disagrees where "
            f"it lies below; neither below {FEWEST} images, nor on other data: reported. Less than true labels: "
            f"Mann–Whitney U over images of one training, difference in percentage points (pp), {RULE}. Below "
            f"{100 * MEMORISED:g} % train accuracy a network of random labels hasn't memorised them: inconclusive. n "
            "of a train accuracy: training images. Published networks have 60,000; where fewer are memorised, fewer "
            "places cut a ray, which may well leave more of them covered"
        )

    def claims(self, tree: xr.DataTree) -> Sequence[Claim]:
        """Return the claims of each group of networks that differ in their labels alone."""
        found: list[Claim] = []
        for group in _groups(tree, self.probe):
            true = next((one for one in group if one.variant == TRUE), None)
            for one in group:
                found += [*_accuracies(one), _level(one)]
                if one.variant != TRUE:
                    found.append(_less(one, true))
        return found


def _groups(tree: xr.DataTree, node: str) -> Iterator[list[Labelled]]:
    """Yield the trained networks of one architecture, data set and seed, true labels first."""
    ds = stored_node(tree, node)
    names = [str(name) for name in ds["encoder"].values]
    fields = ("architecture", "dataset", "seed", "variant")
    columns = [along_encoder(ds, name) or [""] * len(names) for name in fields]
    groups: dict[tuple[object, ...], list[Labelled]] = {}
    for i, (*key, variant) in enumerate(zip(*columns, strict=True)):
        coverage = ds["coverage"].isel(encoder=i)
        known = bool(coverage.notnull().any()) and not bool(initial(ds)[i])
        if known and (variant == TRUE or RANDOM.fullmatch(str(variant))):
            accuracies = _scores(tree, names[i])
            one = Labelled(f"{key[0]} {key[1]}, {variant}", str(variant), str(key[1]), coverage, *accuracies)
            groups.setdefault(tuple(key), []).append(one)
    for group in groups.values():
        yield sorted(group, key=lambda one: one.variant != TRUE)


def _scores(tree: xr.DataTree, encoder: str) -> tuple[float, float, int]:
    """Accuracy on training and on test images, and how many training images there were (0: not known)."""
    if "training" not in tree.children:
        return np.nan, np.nan, 0
    ds = stored_node(tree, "training")
    if encoder not in ds["encoder"].values:
        return np.nan, np.nan, 0
    row = ds.sel(encoder=encoder)
    images = int(row["class_counts"].clip(min=0).sum()) if "class_counts" in row else 0
    return float(row["train_accuracy"]), float(row["test_accuracy"]), images


def _accuracies(one: Labelled) -> list[Claim]:
    blank = Claim(subject=one.subject, claim="", units="%", verdict=REPORTED)
    return [
        attrs.evolve(blank, claim="train accuracy", value=100 * one.train, n=one.images),
        attrs.evolve(blank, claim="test accuracy", value=100 * one.test),
    ]


def _level(one: Labelled) -> Claim:
    """The mean coverage, beside what is published of such labels."""
    images = ("probeset", "image")  # with `match`, a network meets one probe set
    found = mean_interval(one.coverage.stack(every=images), "every", shares=True)
    value, low, high = (100 * float(found[name]) for name in ("mean", "low", "high"))
    if one.variant == TRUE:
        claim, published, verdict = "coverage above 80 %", "> 80 %", by_interval(low, high, PUBLISHED_TRUE)
    else:
        claim, published, verdict = "coverage in range", "17–24 %", by_range(value, low, high, PUBLISHED_RANDOM)
    if one.dataset != DATASET:
        verdict = REPORTED
    if one.doubt:
        verdict = unclear(one.doubt)
    return Claim(
        subject=one.subject,
        claim=claim,
        published=published,
        value=value,
        low=low,
        high=high,
        n=int(found["n"]),
        units="%",
        verdict=verdict,
    )


def _less(one: Labelled, true: Labelled | None) -> Claim:
    """Whether the coverage is less than under true labels."""
    claim = Claim(subject=one.subject, claim="less than true labels", published="less", units="pp")
    if true is None:
        return attrs.evolve(claim, verdict=unclear("no network of true labels"))
    mine, theirs = (side.coverage.stack(every=("probeset", "image")) for side in (one, true))
    found = mann_whitney(mine.drop_vars(set(mine.coords)), theirs.drop_vars(set(theirs.coords)), dim="every")
    p, difference = float(found["p"]), float(found["difference"])
    verdict = unclear(one.doubt) if one.doubt else by_sign(p, -difference)
    return attrs.evolve(
        claim, value=100 * difference, p=p, n=int(min(found["n_first"], found["n_second"])), verdict=verdict
    )
