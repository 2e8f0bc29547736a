"""What is published of interventions on ray coverage, beside what they come to here (Neural Expansion, §5.2, H.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.compare import welch
from geoframe.summaries.arms import arm_courses, last_epoch
from geoframe.summaries.claim_table import AGREES, DISAGREES, Claim, Claims, unclear
from geoframe.summaries.interventions import QUANTITIES
from geoframe.summaries.tables import RULE, by_sign

if TYPE_CHECKING:
    import xarray as xr

SIGNS = {"expand": 1, "restrict": -1}
EFFECTS = (  # which arm changes what, in the sign of the arm
    ("restrict", "test_accuracy"),
    ("restrict", "train_accuracy"),
    ("expand", "test_accuracy"),
    ("restrict", "coverage"),
    ("expand", "coverage"),
    ("restrict", "gi"),
    ("expand", "gi"),
)
PUBLISHED = {  # differences to the control, from §5.2 and H.3; Table 1 itself isn't in the text
    ("mlp on MNIST", "restrict", "test_accuracy"): "−12.2, p 0.003",
    ("mlp on MNIST", "restrict", "train_accuracy"): "lower (73.9 %)",
    ("mlp on MNIST", "expand", "test_accuracy"): "+1.7, p < 1e-4",
    ("cnn on FashionMNIST", "restrict", "test_accuracy"): "−7.4, p ≈ 0.008",
    ("cnn on FashionMNIST", "restrict", "coverage"): "−19.5, p ≈ 0.008",
    ("cnn on FashionMNIST", "expand", "test_accuracy"): "+1.1, p 0.008",
}
LEAST = 2  # seeds of a test of effects
APART = (
    3  # seeds, and epochs, of which "apart" is judged: with two seeds, 1 of 6 epochs is so by luck, with three 1 of 20
)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class InterventionClaims(Claims):
    """Does restricting coverage lower accuracy, and expanding it raise it? Welch's t-test over seeds (§5.2, H.3).

    With three seeds the published p = 0.003 can only be a t-test's: Mann–Whitney's least is 0.1. The rule of the
    effects is in the caption. "Apart": at each epoch, every seed of an arm is on its side of every seed of the control;
    it agrees where that is so at all epochs, and disagrees otherwise. It is inconclusive below three seeds, of which
    luck alone keeps one epoch in 20 apart, and below three epochs, which make no course (both ours).

    Attributes
    ----------
    probe, gi : str
        Nodes of the `same` rays, and of the intervals.
    """

    probe: str = "coverage"
    gi: str = "gi"

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            "ours: arm − control at the last epoch in percentage points (pp), GI in diagonals of the input box (scale "
            "of the probe), with Welch's 95 % interval and p over n seeds. Published: Neural Expansion, §5.2 and "
            "appendix H.3, with λ, τ, ε and learning rate that it doesn't give; on other data and networks only the "
            f"sign is compared. {RULE}. Apart: share of epochs at which no seed of the arm overlaps with the control; "
            f"agrees: all epochs, as in appendix H.3, inconclusive below {APART} seeds or {APART} epochs (ours); with "
            "few images, as in quick and small, noise adds to overlap"
        )

    def claims(self, tree: xr.DataTree) -> Sequence[Claim]:
        """Return the claims of each network."""
        courses = arm_courses(tree, self.probe, self.gi)
        if not courses.sizes["network"]:
            return []
        final = last_epoch(courses)
        return [
            claim
            for network in map(str, courses["network"].values)
            for claim in (
                *(_effect(final.sel(network=network), network, *effect) for effect in EFFECTS),
                *(
                    _apart(courses.sel(network=network), network, arm, name)
                    for name in ("coverage", "gi")
                    for arm in SIGNS
                ),
            )
        ]

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table of claims for each network."""
        headers, rows = self.rows(ds)
        if "value" not in ds:
            return [(self.label, headers, rows)]
        networks = dict.fromkeys(row[0] for row in rows)
        return [(f"{self.label}, {n}", headers[1:], [row[1:] for row in rows if row[0] == n]) for n in networks]


def _effect(final: xr.Dataset, network: str, arm: str, name: str) -> Claim:
    """Compare an arm with the control at the last epoch."""
    factor, unit, text = QUANTITIES[name]
    side = "lowers" if SIGNS[arm] < 0 else "raises"
    published = PUBLISHED.get((network, arm, name), "lower" if SIGNS[arm] < 0 else "higher")
    claim = Claim(subject=network, claim=f"{arm} {side} {text}", published=published, units=unit or "1")
    if not {arm, "control"} <= set(final["arm"].values):
        return attrs.evolve(claim, verdict=unclear("not trained"))
    found = welch(factor * final[name].sel(arm=arm), factor * final[name].sel(arm="control"))
    p, difference, low, high = (float(found[key]) for key in ("p", "difference", "low", "high"))
    n = int(min(found["n_first"], found["n_second"]))
    verdict = by_sign(p, SIGNS[arm] * difference)
    if not np.isfinite(p):
        verdict = unclear("not measured" if not n else f"fewer than {LEAST} seeds" if n < LEAST else "no spread")
    return attrs.evolve(claim, value=difference, low=low, high=high, p=p, n=n, verdict=verdict)


def _apart(courses: xr.Dataset, network: str, arm: str, name: str) -> Claim:
    """At how many epochs every seed of an arm is on its side of every seed of the control."""
    text = f"{arm}: {QUANTITIES[name][2]} apart"
    claim = Claim(subject=network, claim=text, published="all epochs", units="% of epochs")
    if not {arm, "control"} <= set(courses["arm"].values):
        return attrs.evolve(claim, verdict=unclear("not trained"))
    mine, control = (SIGNS[arm] * courses[name].sel(arm=one) for one in (arm, "control"))
    known = (mine.notnull() & control.notnull()).sum("seed") >= APART
    apart = (mine.min("seed") > control.max("seed")).where(known).dropna("epoch")
    if not apart.size:
        return attrs.evolve(claim, verdict=unclear(f"fewer than {APART} seeds"))
    share = float(apart.mean())
    verdict = AGREES if share == 1 else DISAGREES
    if apart.size < APART:
        verdict = unclear(f"fewer than {APART} epochs")
    return attrs.evolve(claim, value=100 * share, n=apart.size, verdict=verdict)
