"""Random labels and random data against the clean network's bump: *Beyond Local Linearity*, fig. 2c."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.spec import count
from geoframe.statistics.compare import FEWEST
from geoframe.statistics.peaks import interval
from geoframe.statistics.profile import FEWEST_RUNGS, Array, Shape
from geoframe.statistics.replicates import CENSORED, Replicates, replicates_of, shown
from geoframe.statistics.treatments import CLEAN, RANDOMISED, Treated, treated
from geoframe.summaries.claim_table import (
    AGREES,
    DISAGREES,
    INCONCLUSIVE,
    NOT_GIVEN,
    REPORTED,
    Claim,
    Claims,
    by_interval,
    unclear,
)
from geoframe.summaries.long_tail import share
from geoframe.summaries.tables import number
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

MEMORISED = 0.8  # train accuracy below which a random network says nothing about memorising
COMPARABLE = 0.5  # of the clean network's excess above 1
CHANCE_FACTOR = 1.5
SHORT = {"random-labels": "labels", "random-data": "data"}
PUBLISHED = {"random-labels": ("89.5 %", "10.6 %")}


@attrs.frozen(kw_only=True)
class RandomisedClaims(Claims):
    """No comparable peak forms under random labels or random data (*Beyond Local Linearity*, fig. 2c), and ours.

    A peak is comparable (ours) where the rule of `BumpRule` finds one and its height above 1 is at least half of the
    clean network's on the same images. It says something only if the randomised network has learned its training data,
    and if the clean one has a peak to compare with on the first probe set with data of it, in 95 % of the replicates.
    On each set, both must have data, and the randomised one's ladder must reach the place of the clean one's peak.

    Attributes
    ----------
    probe, training : str
        Nodes of the ratios and of the accuracies.
    chance : float
        Test accuracy of guessing.
    replicates, seed : int
        Bootstrap over images, see `replicates_of`: each replicate draws the same images for both networks.
    note : str
        What else has to be said under the table.
    """

    probe: str = "ratio"
    training: str = "training"
    chance: float = 0.1
    replicates: int = count(1000)
    seed: int = 0
    note: str = ""

    @property
    def caption(self) -> str:
        """The rules of the verdicts."""
        rules = (
            "labels, data: trained on random ones; ours: height of the median profile's interior maximum (at scales "
            "valid in at least half of the images), with a 95 % bootstrap "
            f"interval over images and directions, not over trainings; none below {FEWEST} images. Comparable: a peak "
            f"of 1.3 or more, and at least {COMPARABLE:g} of the clean network's height above 1; no profile that rises "
            "to the end of the ladder. Agrees or disagrees where medians and 95 % of the replicates say the same; "
            "inconclusive where the clean network doesn't surely have a peak on the first set with data of it, below "
            f"{100 * MEMORISED:g} % train accuracy, where either has no data on the set (fewer than {FEWEST_RUNGS} "
            "scales), or where the scales end before the clean network's peak. Test accuracy: at chance up to "
            f"{CHANCE_FACTOR:g} times {100 * self.chance:.3g} %, by Wilson's interval over n test images, by the value "
            f"alone where results don't hold n; {CENSORED}."
        )
        return " ".join(text for text in (rules, self.note) if text)

    def claims(self, tree: xr.DataTree) -> list[Claim]:
        """Return what each network learned, and its peaks on every probe set."""
        ds = stored_node(tree, self.probe)
        scores = stored_node(tree, self.training) if self.training in tree.children else None
        found = treated(ds)
        prefix = {one.label: f"{one.label}: " if len(found) > 1 else "" for one in found}
        return [
            attrs.evolve(claim, subject=prefix[one.label] + claim.subject)
            for one in found
            if CLEAN in one.encoders and one.among(RANDOMISED)
            for claim in self._of(ds, scores, one)
        ]

    def _of(self, ds: xr.Dataset, scores: xr.Dataset | None, one: Treated) -> Iterator[Claim]:
        randomised = one.among(RANDOMISED)
        learned = {treatment: _accuracies(scores, encoder) for treatment, encoder in randomised}
        for treatment, _ in randomised:
            yield from self._learned(treatment, *learned[treatment])
        encoders = [one.encoders[CLEAN], *(encoder for _, encoder in randomised)]
        sets = [str(name) for name in ds["probeset"].values]
        found = [
            replicates_of(ds, [(encoder, name) for encoder in encoders], replicates=self.replicates, seed=self.seed)
            for name in sets
        ]
        for name, cells in zip(sets, found, strict=True):
            if _pictures(ds, name):
                yield _reference(cells, f"{CLEAN}, {name}")
        for k, (treatment, _) in enumerate(randomised, start=1):
            reason = _excuse(_first_known(found), learned[treatment][0])
            for name, cells in zip(sets, found, strict=True):
                yield _comparison(cells, k, f"{SHORT[treatment]}, {name}", reason)

    def _learned(self, treatment: str, train: float, test: float, images: int) -> Iterator[Claim]:
        """Claims about accuracies; none where they aren't known."""
        published = PUBLISHED.get(treatment, (NOT_GIVEN, NOT_GIVEN))
        if np.isfinite(train):
            given = published[0] != NOT_GIVEN
            verdict = _little(train) if train < MEMORISED else AGREES if given else REPORTED
            yield Claim(
                subject=SHORT[treatment],
                claim="train accuracy",
                published=published[0],
                value=100 * train,
                units="%",
                verdict=verdict,
            )
        if np.isfinite(test):
            low, high = share(np.arange(images) < round(images * test))[1:]
            near = _at_most(CHANCE_FACTOR * self.chance, test, low, high)
            verdict = near if published[1] != NOT_GIVEN else REPORTED
            yield Claim(
                subject=SHORT[treatment],
                claim="test accuracy",
                published=published[1],
                value=100 * test,
                low=100 * low,
                high=100 * high,
                n=images,
                units="%",
                verdict=verdict,
            )


def _pictures(ds: xr.Dataset, probeset: str) -> bool:
    """Whether a probe set's images have labels; the paper says nothing of the clean network's bump on noise."""
    return "label" not in ds.coords or bool((ds["label"].sel(probeset=probeset) >= 0).any())


def _at_most(limit: float, value: float, low: float, high: float) -> str:
    """Verdict on "ours is at most the limit", by our interval; by our value where there is none."""
    if np.isfinite([low, high]).all():
        return by_interval(-high, -low, -limit)
    return AGREES if value <= limit else DISAGREES


def _accuracies(scores: xr.Dataset | None, encoder: str) -> tuple[float, float, int]:
    """Train and test accuracy of an encoder, NaN where they aren't known, and of how many test images, 0 likewise."""
    if scores is None or encoder not in scores["encoder"].values:
        return np.nan, np.nan, 0
    cell = scores.sel(encoder=encoder)
    images = float(cell["test_images"]) if "test_images" in cell else np.nan
    return float(cell["train_accuracy"]), float(cell["test_accuracy"]), int(np.nan_to_num(images))


def _little(train: float) -> str:
    return unclear(f"memorised only {number(100 * train, 2)} %")


def _first_known(found: list[Replicates]) -> Replicates:
    """The first probe set on which the clean network has data; the first one where there is none."""
    return next((cells for cells in found if cells.has_data[0]), found[0])


def _excuse(first: Replicates, train: float) -> str:
    """Why a network without a peak would say nothing; "" where it would."""
    if not np.isfinite(train):
        return unclear("accuracy not known")
    if train < MEMORISED:
        return _little(train)
    peak = shown(bool(first.shape.peak[0]), first.shapes.peak[0])
    return "" if peak else unclear("clean has no peak")


def _reference(cells: Replicates, subject: str) -> Claim:
    """The clean network's bump on one probe set."""
    claim = attrs.evolve(_height(cells, 0), subject=subject, claim="bump", published="yes")
    seen = cells.shows_bump(0)
    if not cells.has_data[0]:
        return attrs.evolve(claim, verdict=unclear("no data"))
    if not cells.enough:
        return attrs.evolve(claim, verdict=unclear("few images"))
    if seen is False and cells.cut_off(0):
        return attrs.evolve(claim, verdict=unclear("censored"))
    return attrs.evolve(claim, verdict={True: AGREES, False: DISAGREES, None: INCONCLUSIVE}[seen])


def _comparison(cells: Replicates, k: int, subject: str, reason: str) -> Claim:
    """A randomised network against the clean one on one probe set."""
    claim = attrs.evolve(_height(cells, k), subject=subject, claim="comparable peak", published="none")
    if not cells.has_data[[0, k]].all():
        return attrs.evolve(claim, verdict=unclear("clean has no data" if cells.has_data[k] else "no data"))
    if not cells.enough:
        return attrs.evolve(claim, verdict=unclear("few images"))
    return attrs.evolve(claim, verdict=reason or _compared(cells, k))


def _compared(cells: Replicates, k: int) -> str:
    """Verdict on "no comparable peak", which scales that end before the clean network's can't show."""
    seen = shown(bool(comparable(cells.shape, k)), comparable(cells.shapes, k))
    if not seen and cells.shape.peak[0] and cells.end(k) < cells.shape.scale[0]:
        return unclear("ends before the peak")
    return {True: DISAGREES, False: AGREES, None: INCONCLUSIVE}[seen]


def _height(cells: Replicates, k: int) -> Claim:
    if not cells.has_data[k]:
        return Claim(subject="", claim="")
    low, high = interval(cells.shapes.height[k], cells.images)
    return Claim(subject="", claim="", value=float(cells.shape.height[k]), low=low, high=high, n=cells.images)


def comparable(shape: Shape, k: int) -> Array:
    """Whether network k has a peak as high, at least by half, as that of the clean network, which stands first."""
    clean = np.where(shape.peak[0], shape.height[0] - 1, 0.0)
    return np.asarray(shape.peak[k] & (np.nan_to_num(shape.height[k]) - 1 >= COMPARABLE * clean))
