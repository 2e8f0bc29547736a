"""F.2's claims on coverage over seeds and optimisers (Neural Expansion, Table 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.compare import ALPHA, binomial_interval, mann_whitney, mean_interval
from geoframe.summaries.chance import CHANCE_RULE, at_chance, judged
from geoframe.summaries.claim_table import (
    AGREES,
    DISAGREES,
    INCONCLUSIVE,
    NOT_GIVEN,
    Claim,
    Claims,
    by_interval,
    unclear,
)
from geoframe.summaries.seeds import (
    CoveredRun,
    by_network,
    covered_runs,
    deviation_ratio,
    over_optimisers,
    over_seeds,
    variation_interval,
)
from geoframe.summaries.tables import by_sign
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

UNTRAINED = {"mlp": "13–99.96 %", "cnn": "24–95 %"}  # ranges that F.2 gives
VARIATION = 1.8  # %, the largest that F.2 gives
MILD = 5.0  # points of coverage: ours
FEWEST = 3  # runs of which a spread is judged


@attrs.frozen(kw_only=True, slots=False, eq=False)
class SeedClaims(Claims):
    """Is coverage after training raised, and the same whatever the seed and, nearly, the optimiser?

    Rules (ours). A run agrees where Mann–Whitney's p over images is below 0.05 and coverage has risen, disagrees where
    it has fallen so. The runs together agree where all but at most one do, and disagree where fewer than half could,
    inconclusive ones included. A coefficient of variation agrees up to 1.8 %, and disagrees where its interval lies
    above. Untrained coverage varies more where the interval of the ratio of standard deviations lies above 1.
    Optimisers matter mildly where the largest difference between two is at most 5 points, and more where its interval
    lies above. A run at chance (`at_chance`) is inconclusive, and so is what is said of its network.

    Attributes
    ----------
    probe : str
        Node of the `same` rays.
    """

    probe: str = "coverage"

    @property
    def needs_node(self) -> str:
        """Node that must be in the tree."""
        return self.probe

    @property
    def caption(self) -> str:
        """The rules."""
        return (
            "Published: Neural Expansion, F.2, MNIST, 5 seeds and 3 optimisers of two networks: 16 models, of which "
            "SGD with the first seed may be two; here it is one run in both groups. A run: percentage points (pp) of "
            "mean coverage, bootstrap over n images; p: Mann–Whitney U, untrained against last epoch; agrees: risen "
            f"with p < {ALPHA}. All runs: share of those that aren't inconclusive, Wilson's interval; agrees: all but "
            "at most one do, disagrees: fewer than half could. CV: interval by χ²; agrees up to "
            f"{VARIATION:g} %, disagrees: interval above. Standard deviations (SD) over seeds: ratio, interval by F; "
            f"agrees: above 1. Optimisers: largest difference between two; agrees up to {MILD:g} pp (ours: the text "
            "has no number), disagrees: interval above. Else inconclusive, and so where a run is at chance. Intervals "
            f"over seeds take coverage to be normally distributed; {CHANCE_RULE}"
        )

    def claims(self, tree: xr.DataTree) -> Sequence[Claim]:
        """Return the claims on all runs, on each network, and on each run."""
        node = stored_node(tree, self.probe)
        together: list[Claim] = []
        networks: list[Claim] = []
        single: list[Claim] = []
        for name in map(str, node["probeset"].values):
            several = f" on {name}" if node.sizes["probeset"] > 1 else ""
            found = [one for one in covered_runs(node, node["coverage"].sel(probeset=name)) if one.run.trained]
            guessing = at_chance(node, name)
            tested = [_judged(_raised(one, several), [one], guessing) for one in found]
            single += tested
            compared = [claim for claim in tested if claim.n]
            together += [_together(compared, several)] if compared else []
            for network, members in by_network(found).items():
                networks += _of_network(network + several, members, guessing)
        return [*together, *networks, *single]


def _judged(claim: Claim, found: Sequence[CoveredRun], guessing: Set[str]) -> Claim:
    """Return a claim on runs of which some may be at chance."""
    return judged(claim, any(one.run.name in guessing for one in found))


def _raised(one: CoveredRun, several: str) -> Claim:
    """One run: coverage after training minus before."""
    claim = Claim(subject=one.run.name + several, claim="trained > untrained", published="p < 0.05", units="pp")
    if one.untrained is None:
        return attrs.evolve(claim, verdict=unclear("no control"))
    test = mann_whitney(one.final, one.untrained)
    ends = mean_interval(one.final - one.untrained)
    p, difference = float(test["p"]), 100 * float(ends["mean"])
    return attrs.evolve(
        claim,
        value=difference,
        low=100 * float(ends["low"]),
        high=100 * float(ends["high"]),
        p=p,
        n=int(test["n_first"]),
        verdict=by_sign(p, difference),
    )


def _together(tested: Sequence[Claim], several: str) -> Claim:
    """How many runs agree; one that is inconclusive counts for neither side."""
    import xarray as xr

    risen, fallen = (sum(claim.verdict == one for claim in tested) for one in (AGREES, DISAGREES))
    decided = risen + fallen
    share = binomial_interval(xr.DataArray(np.arange(decided) < risen, dims="run"), "run")
    return Claim(
        subject=f"all runs{several}",
        claim=f"risen in {risen} of {decided} runs",
        published="15 of 16",
        value=100 * float(share["share"]),
        low=100 * float(share["low"]),
        high=100 * float(share["high"]),
        n=decided,
        units="%",
        verdict=of_all(risen, fallen, len(tested)),
    )


def of_all(risen: int, fallen: int, runs: int) -> str:
    """Verdict on "all runs rise", whatever those would come to that neither rose nor fell."""
    if runs < FEWEST:
        return unclear(f"{runs} runs")
    if runs - risen <= 1:
        return AGREES
    if fallen * 2 > runs:
        return DISAGREES
    return unclear(f"{runs - risen - fallen} open") if risen + fallen < runs else INCONCLUSIVE


def _of_network(subject: str, found: Sequence[CoveredRun], guessing: Set[str]) -> Iterator[Claim]:
    """What runs of one network share."""
    seeds, optimisers = over_seeds(found), over_optimisers(found)
    yield _judged(_variation(subject, "trained: CV over seeds", seeds), seeds, guessing)
    yield _judged(_variation(subject, "trained: CV over all runs", found), found, guessing)
    yield _judged(_untrained(subject, seeds), seeds, guessing)
    yield _judged(_optimisers(subject, optimisers), optimisers, guessing)


def _finals(found: Sequence[CoveredRun]) -> list[float]:
    return [float(one.final.mean()) for one in found]


def _variation(subject: str, text: str, found: Sequence[CoveredRun]) -> Claim:
    value, low, high = (100 * end for end in variation_interval(_finals(found)))
    return Claim(
        subject=subject,
        claim=text,
        published=f"≤ {VARIATION:g} %",
        value=value,
        low=low,
        high=high,
        n=len(found),
        units="%",
        verdict=_at_most(VARIATION, value, low) if len(found) >= FEWEST else unclear(f"{len(found)} runs"),
    )


def _untrained(subject: str, seeds: Sequence[CoveredRun]) -> Claim:
    """Does untrained coverage vary more from seed to seed than trained coverage?"""
    before = [float(one.untrained.mean()) for one in seeds if one.untrained is not None]
    ratio, low, high = deviation_ratio(before, _finals(seeds))
    few = min(len(before), len(seeds)) < FEWEST
    return Claim(
        subject=subject,
        claim="SD untrained > SD trained",
        published=UNTRAINED.get(subject.split()[0], NOT_GIVEN),
        value=ratio,
        low=low,
        high=high,
        n=len(seeds),
        verdict=unclear(f"{len(before)} seeds") if few else by_interval(low, high, 1.0),
    )


def _optimisers(subject: str, found: Sequence[CoveredRun]) -> Claim:
    """Largest difference between two optimisers, over images."""
    claim = Claim(subject=subject, claim="optimisers differ mildly", published="mildly", units="pp")
    if len(found) < 2:
        return attrs.evolve(claim, n=len(found), verdict=unclear("one optimiser"))
    ordered = sorted(found, key=lambda one: float(one.final.mean()))
    ends = mean_interval(ordered[-1].final - ordered[0].final)
    value, low, high = (100 * float(ends[name]) for name in ("mean", "low", "high"))
    return attrs.evolve(claim, value=value, low=low, high=high, n=len(found), verdict=_at_most(MILD, value, low))


def _at_most(limit: float, value: float, low: float) -> str:
    """Verdict on "ours is at most the limit": our value is, or our interval lies above."""
    if value <= limit:
        return AGREES
    return DISAGREES if low > limit else INCONCLUSIVE
