"""Trained networks that are no better than guessing: of their coverage nothing follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.compare import binomial_interval
from geoframe.summaries.claim_table import AGREES, DISAGREES, INCONCLUSIVE, Claim, unclear

if TYPE_CHECKING:
    import xarray as xr

AT_CHANCE = unclear("at chance")
CHANCE_RULE = (
    "at chance (ours): on the measured images one class is predicted throughout, or accuracy isn't above one over the "
    "number of their classes by its interval (Wilson)"
)


def at_chance(rays: xr.Dataset, probeset: str) -> set[str]:
    """Return the encoders that are at chance on the images of a probe set.

    The rule is ours. A network that predicts one class everywhere covers every ray, and so would seem to agree with
    what is published of trained networks. An encoder is at chance where all its predictions on the measured images are
    of one class, or where the lower end of Wilson's 95 % interval of its accuracy on them isn't above one over the
    number of classes among their labels. Images of a single class tell nothing, nor do images without labels.

    Parameters
    ----------
    rays : xarray.Dataset
        Node of a RayCoverageProbe.
    probeset : str
        Whose labels are classes of the encoders.
    """
    cell = rays.sel(probeset=probeset)
    return {str(name) for name in cell["encoder"].values if _guesses(cell.sel(encoder=name))}


def _guesses(cell: xr.Dataset) -> bool:
    counts = (cell["coverage"].notnull() & (cell["label"] >= 0)).values
    predicted, labels = (np.unique(cell[name].values[counts]) for name in ("predicted", "label"))
    if len(labels) < 2:
        return False
    least = float(binomial_interval(cell["correct"].values[counts], "image")["low"])
    return len(predicted) == 1 or least <= 1 / len(labels)


def judged(claim: Claim, lost: bool) -> Claim:
    """Return a claim without the verdict that it would have if no network behind it were at chance."""
    decided = claim.verdict in (AGREES, DISAGREES, INCONCLUSIVE)
    return attrs.evolve(claim, verdict=AT_CHANCE) if lost and decided else claim
