"""Blur in training and evaluation against the height of the bump: *Beyond Local Linearity*, fig. 2b."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.spec import count
from geoframe.statistics.compare import FEWEST
from geoframe.statistics.peaks import interval
from geoframe.statistics.profile import FEWEST_RUNGS
from geoframe.statistics.replicates import heights, replicates_of
from geoframe.statistics.treatments import BLURS, CLEAN, Treated, blur_levels, treated
from geoframe.summaries.claim_table import AGREES, DISAGREES, INCONCLUSIVE, Claim, Claims, by_interval, unclear
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

GROWS, SHRINKS = "grows with test blur", "shrinks with train blur"
Cell = tuple[str, str]


@attrs.frozen(kw_only=True)
class BlurClaims(Claims):
    """The bump mostly grows with evaluation blur and shrinks with training blur (*Beyond Local Linearity*, fig. 2b).

    Each pair of neighbouring blurs is compared: of one network on two sets, and of two networks on one set, on the
    same images. Height is the largest value of the median profile, 1 where it only falls. What is "mostly" is ours.

    Attributes
    ----------
    probe : str
        Node of the ratios.
    replicates, seed : int
        Bootstrap over images, see `replicates_of`: each replicate draws the same images for all.
    note : str
        What else has to be said under the table.
    """

    probe: str = "ratio"
    replicates: int = count(1000)
    seed: int = 0
    note: str = ""

    @property
    def caption(self) -> str:
        """The rules of the verdicts."""
        rules = (
            "σ: blur of the test images, in pixels; ours: difference of the heights of the median profiles (at scales "
            "valid in at least half of the images), the second minus the first, with a 95 % bootstrap interval over "
            "images (the same in both) and directions, not over trainings; "
            f"none below {FEWEST} images. Agrees: the whole interval has the published sign; disagrees: the other. "
            "All: agrees or disagrees where more than half of the comparisons do; ours there: % that agree. Censored: "
            f"a profile rises to the end of the ladder; no data: fewer than {FEWEST_RUNGS} scales."
        )
        return " ".join(text for text in (rules, self.note) if text)

    def claims(self, tree: xr.DataTree) -> list[Claim]:
        """Return the comparisons of each network, and what they come to."""
        ds = stored_node(tree, self.probe)
        levels = blur_levels(ds)
        found = treated(ds)
        return [claim for one in found if levels for claim in self._of(ds, one, levels, len(found) > 1)]

    def _of(self, ds: xr.Dataset, one: Treated, levels: list[tuple[float, str]], several: bool) -> list[Claim]:
        networks = one.among((CLEAN, *BLURS))
        cells = [(encoder, name) for _, encoder in networks for _, name in levels]
        if not cells:
            return []
        found = replicates_of(ds, cells, replicates=self.replicates, seed=self.seed)
        values, draws = heights(found.scale, found.medians), heights(found.scale, found.draws)
        place = {cell: k for k, cell in enumerate(cells)}

        def compared(first: Cell, second: Cell, subject: str, claim: str) -> Claim:
            k, m = place[first], place[second]
            made = Claim(subject=subject, claim=claim, published="mostly", n=found.images)
            if not found.has_data[[k, m]].all():
                return attrs.evolve(made, n=0, verdict=unclear("no data"))
            return _difference(made, values[m] - values[k], draws[m] - draws[k], 1 if claim == GROWS else -1)

        grow = [
            compared((encoder, a), (encoder, b), f"{treatment}: σ {s:g}, {t:g}", GROWS)
            for treatment, encoder in networks
            for (s, a), (t, b) in pairwise(levels)
        ]
        shrink = [
            compared((e, name), (f, name), f"σ {sigma:g}: {t}, {u}", SHRINKS)
            for sigma, name in levels
            for (t, e), (u, f) in pairwise(networks)
        ]
        prefix = f"{one.label}: " if several else ""
        every = [claim for part in (grow, shrink) if part for claim in (*part, _mostly(part))]
        return [attrs.evolve(claim, subject=f"{prefix}{claim.subject}") for claim in every]


def _difference(claim: Claim, value: float, draws: np.ndarray, sign: int) -> Claim:
    """Judge one comparison by its interval."""
    claim = attrs.evolve(claim, value=float(value))
    if not np.isfinite(value):
        return attrs.evolve(claim, verdict=unclear("censored"))
    if claim.n < FEWEST:
        return attrs.evolve(claim, verdict=unclear("few images"))
    low, high = interval(draws, claim.n)
    ends = (low, high) if sign > 0 else (-high, -low)
    return attrs.evolve(claim, low=low, high=high, verdict=by_interval(*ends))


def _mostly(claims: list[Claim]) -> Claim:
    """What several comparisons come to."""
    agree, disagree = (sum(claim.verdict == word for claim in claims) for word in (AGREES, DISAGREES))
    verdict = AGREES if 2 * agree > len(claims) else DISAGREES if 2 * disagree > len(claims) else INCONCLUSIVE
    judged = any(np.isfinite(claim.low) for claim in claims)
    value = 100 * agree / len(claims) if judged else np.nan
    first = claims[0]
    return Claim(
        subject="all", claim=first.claim, published="mostly", value=value, n=len(claims), units="%", verdict=verdict
    )
