"""What Neural Expansion says of long-tailed training (fig. 4b, fig. 4c, I.2), beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.statistics.bands import BANDS, DESTINATIONS, PUBLISHED_COVERAGE, PUBLISHED_FLOWS, Banded, banded
from geoframe.statistics.compare import ALPHA, FEWEST, mean_interval
from geoframe.summaries.chance import CHANCE_RULE, at_chance, judged
from geoframe.summaries.claim_table import AGREES, DISAGREES, Claim, Claims, by_interval, tables_by_subject, unclear
from geoframe.summaries.long_tail import share
from geoframe.summaries.tables import by_sign
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

WIDEST = 0.1  # half of an interval that can tell a published share from another


@attrs.frozen(kw_only=True)
class LongTailClaims(Claims):
    """I.2's claims of each classifier that was trained on classes of unequal size.

    Rules (ours). A published share agrees where our 95 % interval (Wilson) holds it and is at most 20 percentage points
    wide, and disagrees where it doesn't hold it; the paper gives no number of samples, and its class sizes aren't in
    its text, so that a disagreement may be of the data. Misclassified low-band images leave the band where the interval
    of the share that does is above one half, and more than evenly spread errors would (every other class drawing as
    many, which the paper doesn't compare with) where it is above that. Fewer than ten such images are inconclusive. The
    low band errs more where Fisher's exact test says so; the high band is predicted more often than it occurs by
    McNemar's exact test; coverage is as high as published where the combination with the least (of at least ten images)
    is above the published least one, by its bootstrap interval. All are inconclusive of a network at chance
    (`at_chance`).

    Attributes
    ----------
    probe : str
        Node of the `same` rays: predictions and coverage.
    """

    probe: str = "coverage"

    @property
    def caption(self) -> str:
        """The rules."""
        low, high = (100 * value for value in PUBLISHED_COVERAGE)
        return (
            "Published: Neural Expansion, I.2; its shares are of MNIST at 6.5:1, whose class sizes its text doesn't "
            "give, and are compared there only: disagrees if our interval doesn't hold them, agrees if "
            f"it does and is at most {200 * WIDEST:g} percentage points wide (ours). Leaving the low band: agrees if "
            "the interval (Wilson) of the share is above one half; the row below it is our control, above what errors "
            f"spread evenly over the other classes give; fewer than {FEWEST} errors: inconclusive. Errors: Fisher's, "
            f"predictions: McNemar's exact test, p < {ALPHA}. Coverage ({low:g}–{high:g} % published): the combination "
            f"of bands with the least, of those with at least {FEWEST} images, is above {low:g} by its interval. "
            f"Inconclusive where the network is {CHANCE_RULE}"
        )

    def claims(self, tree: xr.DataTree) -> list[Claim]:
        """Return the claims of each classifier and probe set."""
        rays = stored_node(tree, self.probe)
        found: list[Claim] = []
        for one in banded(tree, self.probe):
            lost = one.encoder in at_chance(rays, one.probeset)
            found += [judged(claim, lost) for claim in _claims(one)]
        return found

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table for each classifier and probe set."""
        return tables_by_subject(self.label, *self.rows(ds))


def _claims(one: Banded) -> Iterator[Claim]:
    subject = f"{one.encoder} on {one.probeset}"
    yield attrs.evolve(_errors(one), subject=subject)
    for claim in (*_flows(one), _predicted(one), _coverage(one)):
        yield attrs.evolve(claim, subject=subject)


def _claim(claim: str, found: tuple[float, float, float], n: int, **more: Any) -> Claim:
    """A claim on a share, in %."""
    value, low, high = (100 * number for number in found)
    return Claim(subject="", claim=claim, value=value, low=low, high=high, n=n, units="%", **more)


def _errors(one: Banded) -> Claim:
    """Are low-band images misclassified more often than high-band ones?"""
    from scipy import stats

    wrong = {band: ~one.correct[one.true == band] for band in ("low", "high")}
    n = sum(map(len, wrong.values()))
    text = "errors: low minus high band > 0"
    if not all(map(len, wrong.values())):
        return _claim(text, (np.nan,) * 3, n, published="more often", verdict=unclear("no images of a band"))
    p = float(stats.fisher_exact([[int(v.sum()), int((~v).sum())] for v in wrong.values()]).pvalue)
    found = newcombe(share(wrong["low"]), share(wrong["high"]))
    return _claim(text, found, n, p=p, published="more often", verdict=by_sign(p, found[0]))


def newcombe(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float, float]:
    """Difference of two shares with Newcombe's interval, from each share and its Wilson interval.

    >>> difference, low, high = newcombe((0.5, 0.4, 0.6), (0.2, 0.1, 0.3))
    >>> round(difference, 3), round(low, 3), round(high, 3)
    (0.3, 0.159, 0.441)
    """
    (p, p_low, p_high), (q, q_low, q_high) = first, second
    return p - q, p - q - math.hypot(p - p_low, q_high - q), p - q + math.hypot(p_high - p, q - q_low)


def _flows(one: Banded) -> Iterator[Claim]:
    """Where do misclassified low-band images go?"""
    wrong = (one.true == "low") & ~one.correct
    n, to = int(wrong.sum()), one.predicted[wrong]
    few = unclear(f"n < {FEWEST}") if n < FEWEST else ""
    if one.has_published_flows:
        for band, published in PUBLISHED_FLOWS.items():
            found = share(to == band)
            verdict = few or _holds(found, published)
            yield _claim(f"low-band errors {_to(band)}", found, n, published=f"{100 * published:g} %", verdict=verdict)
        said = f"{100 * (1 - PUBLISHED_FLOWS['low']):g} %"
    else:
        said = "migrate"
    left, even = share(to != "low"), 1 - one.even("low", "low")
    yield _claim(
        "low-band errors leave the band: > 50 %",
        left,
        n,
        published=said,
        verdict=few or by_interval(*left[1:], 0.5),
    )
    text = f"… than spread evenly: > {100 * even:.3g} % (ours)"
    yield _claim(text, left, n, verdict=few or by_interval(*left[1:], even))


def _holds(found: tuple[float, float, float], published: float) -> str:
    """Verdict on a published share: a wide interval holds nearly any."""
    _, low, high = found
    if not low <= published <= high:
        return DISAGREES
    return AGREES if high - low <= 2 * WIDEST else unclear("wide interval")


def _to(band: str) -> str:
    return "that stay low" if band == "low" else f"to {band}"


def _predicted(one: Banded) -> Claim:
    """Is the high band predicted more often than it occurs?"""
    import xarray as xr
    from scipy import stats

    gained = ((one.predicted == "high") & (one.true != "high")).astype(int)
    lost = ((one.predicted != "high") & (one.true == "high")).astype(int)
    moved = int(gained.sum() + lost.sum())
    p = float(stats.binomtest(int(gained.sum()), moved).pvalue) if moved else np.nan
    mean = mean_interval(xr.DataArray(gained - lost, dims="image"))
    found = float(mean["mean"]), float(mean["low"]), float(mean["high"])
    text = "predicted high minus truly high > 0"
    return _claim(text, found, len(gained), p=p, published="dominates", verdict=by_sign(p, found[0]))


def _coverage(one: Banded) -> Claim:
    """Is coverage high in every combination of bands?"""
    import xarray as xr

    least, published = PUBLISHED_COVERAGE[0], "–".join(f"{100 * value:g}" for value in PUBLISHED_COVERAGE) + " %"
    found = {}
    for band in BANDS:
        for to in DESTINATIONS:
            mean = mean_interval(xr.DataArray(one.coverage[one.went(band, to)], dims="image"), shares=True)
            if int(mean["n"]) >= FEWEST:
                found[band, to] = mean
    if not found:
        return _claim("coverage", (np.nan,) * 3, 0, published=published, verdict=unclear(f"below {FEWEST} images"))
    (band, to), mean = min(found.items(), key=lambda item: float(item[1]["mean"]))
    value, low, high = (float(mean[name]) for name in ("mean", "low", "high"))
    text = f"least coverage ({band} → {to}) > {100 * least:g}"
    verdict = by_interval(low, high, least)
    return _claim(text, (value, low, high), int(mean["n"]), published=published, verdict=verdict)
