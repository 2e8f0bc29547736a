"""Fig. 2's claims: what is compared, and between which checkpoints of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from geoframe.statistics.pairing import UNCLEAR, Network, in_order, networks, numbers_of

if TYPE_CHECKING:
    import xarray as xr

GI = "scaled direction"
CLAIMS = {  # what the paper's text gives
    "mean GI: late > early": "11.5 > 7",
    "GI, late: last > first third": "yes",
    "α, late: last > first third": "1.2 > 0.4",
    "α, last third: late > initial": "1.2 > 0.4",
}
TESTS = {
    "u": ("1", "Mann–Whitney U of the first sample against the second"),
    "p": ("1", "two-sided p-value of Mann–Whitney's U"),
    "difference": (GI, "mean over images of the first sample minus that of the second"),
    "n_first": ("1", "number of images in the first sample"),
    "n_second": ("1", "number of images in the second sample"),
    "first": (GI, "mean over images of the first sample"),
    "second": (GI, "mean over images of the second sample"),
}
Side = tuple[str, str]
"""What is compared, and of which encoder ("": there is none)."""


@attrs.frozen
class Stages:
    """One network's checkpoints, by name; "" where there is none.

    Attributes
    ----------
    late, early, initial : str
        The last and the first checkpoint after the initial weights, and those.
    problem : str
        Why the initial weights aren't known.
    """

    late: str
    early: str
    initial: str
    problem: str


def stages(ds: xr.Dataset) -> list[Stages]:
    """Return the checkpoints of each trained network."""
    epochs = numbers_of(ds, "epoch")
    return [one for network in networks(ds) if network.trained for one in _of(network, epochs)]


def _of(network: Network, epochs: dict[str, float]) -> list[Stages]:
    """One network; where its encoders may be of several networks, none is compared with another."""
    if network.problem == UNCLEAR:
        return [Stages(name, "", "", UNCLEAR) for name in network.trained]
    ordered = in_order(network.trained, epochs)
    early = ordered[0] if len(ordered) > 1 else ""
    return [Stages(ordered[-1], early, network.control, network.problem)]


def missing(claim: str, problem: str) -> str:
    """Say why a claim couldn't be tested."""
    of_two_checkpoints, *_, of_initial = CLAIMS
    if problem == UNCLEAR or (claim == of_initial and problem):
        return problem
    return "one checkpoint" if claim == of_two_checkpoints else "not measured"


def sides(stage: Stages) -> list[tuple[Side, Side]]:
    """What each claim compares, in the order of `CLAIMS`."""
    return [
        (("gi", stage.late), ("gi", stage.early)),
        (("gi_last", stage.late), ("gi_first", stage.late)),
        (("alpha_last", stage.late), ("alpha_first", stage.late)),
        (("alpha_last", stage.late), ("alpha_last", stage.initial)),
    ]
