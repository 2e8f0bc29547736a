"""When the bump forms: *Beyond Local Linearity*, fig. 1c, beside the checkpoints of stored trainings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.spec import count
from geoframe.statistics.compare import FEWEST, LEVEL
from geoframe.statistics.courses import Course, courses
from geoframe.statistics.peaks import interval
from geoframe.statistics.profile import FEWEST_RUNGS, Array
from geoframe.statistics.replicates import CENSORED, Replicates, replicates_of
from geoframe.summaries.claim_table import AGREES, DISAGREES, Claim, Claims, by_interval, unclear
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

EARLY, LARGELY = 10.0, 200 / 3  # %
SHORT = 3910  # steps: what is early in the paper's 39,100


@attrs.frozen(kw_only=True)
class FormationClaims(Claims):
    """The bump is absent at first, forms early and is largely kept (*Beyond Local Linearity*, §3), and what we find.

    The paper gives no numbers; what is called a bump (`BumpRule`), early and largely is ours. All checkpoints of a
    training are judged on the same images, and each replicate draws the same ones for all of them.

    Attributes
    ----------
    probe : str
        Node of the ratios.
    replicates, seed : int
        Bootstrap over images, see `replicates_of`.
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
            "ours: height of the interior maximum; agrees or disagrees where the median profile and 95 % of the "
            "replicates say the same; the median is taken at scales valid in at least half of the images; a rise to "
            f"the end of the ladder is no bump; no data: fewer than {FEWEST_RUNGS} scales, and such checkpoints are "
            "left out of early and kept. Early: the first measured checkpoint with a bump is within the first "
            f"{EARLY:g} % of all steps, which are {SHORT} or more; kept: more than {LARGELY:.0f} % of the later "
            "checkpoints show it (whole interval each). [ ]: 95 % bootstrap over images and directions, not over "
            f"trainings, none below {FEWEST} images; {CENSORED}."
        )
        return " ".join(text for text in (rules, self.note) if text)

    def claims(self, tree: xr.DataTree) -> list[Claim]:
        """Return four claims for each network and probe set."""
        ds = stored_node(tree, self.probe)
        probesets = [str(name) for name in ds["probeset"].values]
        return [claim for course in courses(ds) for name in probesets for claim in self._on(ds, course, name)]

    def _on(self, ds: xr.Dataset, course: Course, probeset: str) -> Iterator[Claim]:
        """Claims on one probe set; none where nothing was measured."""
        cells = [(name, probeset) for name in course.names]
        found = replicates_of(ds, cells, replicates=self.replicates, seed=self.seed)
        subject = f"{course.label} on {probeset}"
        if not found.images or not course.trained:
            return
        if course.has_initial:
            yield attrs.evolve(_bump(found, 0, wanted=False), subject=subject)
        yield attrs.evolve(_bump(found, len(cells) - 1, wanted=True), subject=subject)
        if len(course.trained) > 1:
            yield attrs.evolve(_early(found, course), subject=subject)
            yield attrs.evolve(_kept(found, course), subject=subject)


def _bump(found: Replicates, cell: int, *, wanted: bool) -> Claim:
    """Claim that one checkpoint shows the bump, or that it doesn't."""
    claim = Claim(subject="", claim="bump at the end" if wanted else "no bump at first", published="yes")
    if not found.has_data[cell]:
        return attrs.evolve(claim, verdict=unclear("no data"))
    low, high = interval(found.shapes.height[cell], found.images)
    claim = attrs.evolve(claim, value=float(found.shape.height[cell]), low=low, high=high, n=found.images)
    shown = found.shows_bump(cell)
    if not found.enough:
        return attrs.evolve(claim, verdict=unclear("few images"))
    if wanted and shown is False and found.cut_off(cell):
        return attrs.evolve(claim, verdict=unclear("censored"))
    return claim if shown is None else attrs.evolve(claim, verdict=AGREES if shown == wanted else DISAGREES)


def _early(found: Replicates, course: Course) -> Claim:
    """Claim about the first checkpoint with a bump; a replicate without any has it at infinity."""
    steps = 100 * np.array(course.steps)[found.has_data] / course.steps[-1]
    value, draws = (_first(bumps, steps) for bumps in _trained(found, course))
    claim = Claim(subject="", claim="emerges early", published="early", units="%", n=found.images)
    if not np.isfinite(value):
        return attrs.evolve(claim, verdict=unclear(_nothing(found, course)))
    tail = (1 - LEVEL) / 2
    low, high = (float(np.quantile(draws, q, method="nearest")) for q in (tail, 1 - tail))
    if not found.enough:
        return attrs.evolve(claim, value=float(value), verdict=unclear("few images"))
    verdict = AGREES if high <= EARLY else by_interval(-high, -low, -EARLY)
    if course.steps[-1] < SHORT:
        verdict = unclear(f"only {course.steps[-1]} steps")
    if course.has_initial and found.has_data[0] and found.shows_bump(0) is not False:
        verdict = unclear("bump at first")
    return attrs.evolve(claim, value=float(value), low=low, high=high, verdict=verdict)


def _kept(found: Replicates, course: Course) -> Claim:
    """Claim about the checkpoints after the first one with a bump; in each replicate, after the first one there."""
    value, draws = (100 * _share_after(bumps) for bumps in _trained(found, course))
    claim = Claim(subject="", claim="kept afterwards", published="largely", units="%", n=found.images)
    if not np.isfinite(value):
        shown = _trained(found, course)[0].any()
        return attrs.evolve(claim, verdict=unclear("no later one" if shown else _nothing(found, course)))
    low, high = interval(draws, found.images)
    verdict = by_interval(low, high, LARGELY) if found.enough else unclear("few images")
    return attrs.evolve(claim, value=float(value), low=low, high=high, verdict=verdict)


def _trained(found: Replicates, course: Course) -> tuple[Array, Array]:
    """Which trained checkpoints show the bump: (checkpoint,) and (checkpoint, replicate); False for initial weights.

    Checkpoints without data are left out: it isn't known whether they show it.
    """
    trained = np.array(course.steps) > 0
    bumps, draws = found.shape.bump & trained, found.shapes.bump & trained[:, None]
    return bumps[found.has_data], draws[found.has_data]


def _nothing(found: Replicates, course: Course) -> str:
    """Why there is no checkpoint with a bump."""
    trained = np.array(course.steps) > 0
    return "no bump" if found.has_data[trained].any() else "no data"


def _first(bumps: Array, steps: Array) -> Array:
    return np.asarray(np.where(bumps.T, steps, np.inf).min(axis=-1, initial=np.inf))


def _share_after(bumps: Array) -> Array:
    """Share of the checkpoints after the first bump that show it too; NaN where there is none or nothing after it."""
    since = np.cumsum(bumps, axis=0) > 0
    later = since[:-1].sum(axis=0)
    return np.asarray(np.where(later > 0, (bumps.sum(axis=0) - 1) / np.maximum(later, 1), np.nan))
