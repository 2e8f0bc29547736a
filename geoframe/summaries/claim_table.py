"""What papers claim beside what we measure: one line a claim, with our interval and a verdict by a stated rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.statistics.compare import LEVEL
from geoframe.summaries.tables import NONE, number
from geoframe.summary import Summary, described

if TYPE_CHECKING:
    import xarray as xr

AGREES, DISAGREES, INCONCLUSIVE = "agrees", "disagrees", "inconclusive"
NOT_GIVEN = "not given"
REPORTED = "reported"  # what decides nothing by itself: no published figure, or one run of several
TEXTS = ("subject", "claim", "published", "verdict", "units")
NUMBERS = {
    "value": ("see units", "ours"),
    "low": ("see units", "lower end of our 95 % interval"),
    "high": ("see units", "upper end of our 95 % interval"),
    "p": ("1", "p-value of the claim's test"),
    "n": ("1", "number of observations"),
    "at_least": ("1", "1 where our value is a lower bound, else 0"),
}


@attrs.frozen(kw_only=True)
class Claim:
    """One claim, and what was found.

    Attributes
    ----------
    subject : str
        What was measured: network, probe set.
    claim : str
        What is claimed, with the direction in which it is.
    published : str
        The published figure, as the text gives it.
    value, low, high : float
        Ours, with its 95 % interval; NaN where there is none. An infinite `high`: the interval has no upper end.
    p : float
        Of a test, where the rule uses one.
    n : int
        Observations behind it.
    at_least : bool
        Whether the value is a lower bound (what was measured is censored).
    units : str
        Of `value`.
    verdict : str
        "agrees", "disagrees", or "inconclusive: why".
    """

    subject: str
    claim: str
    published: str = NOT_GIVEN
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    n: int = 0
    at_least: bool = False
    units: str = "1"
    verdict: str = INCONCLUSIVE


def by_interval(low: float, high: float, threshold: float = 0.0) -> str:
    """Verdict on "ours is above the threshold", from our interval.

    >>> by_interval(0.1, 0.3), by_interval(-0.3, -0.1), by_interval(-0.1, 0.3), by_interval(float("nan"), 1)
    ('agrees', 'disagrees', 'inconclusive', 'inconclusive')
    """
    if low > threshold:
        return AGREES
    return DISAGREES if high < threshold else INCONCLUSIVE


def by_range(value: float, low: float, high: float, limits: tuple[float, float]) -> str:
    """Verdict on "ours lies in the published range": disagrees where our interval doesn't touch it; none without one.

    >>> by_range(85, 80, 90, (84, 87)), by_range(80, 75, 84.5, (84, 87)), by_range(80, 75, 83, (84, 87))
    ('agrees', 'inconclusive', 'disagrees')
    >>> by_range(85, float("nan"), float("nan"), (84, 87))
    'inconclusive'
    """
    if limits[0] <= value <= limits[1] and np.isfinite([low, high]).all():
        return AGREES
    return DISAGREES if high < limits[0] or low > limits[1] else INCONCLUSIVE


def unclear(why: str) -> str:
    """Return an inconclusive verdict with its reason."""
    return f"{INCONCLUSIVE}: {why}"


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Claims(Summary):
    """Base of the summaries that hold what is published against what is measured; subclasses implement `claims`."""

    def claims(self, tree: xr.DataTree) -> Sequence[Claim]:
        """Return the claims, in the order in which they are printed."""
        raise NotImplementedError(f"{type(self).__name__} does not implement claims()")

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Return a dataset with one entry a claim; empty where there is nothing to compare."""
        import xarray as xr

        found = self.claims(tree)
        variables: dict[str, Any] = {name: ("entry", np.array([getattr(c, name) for c in found])) for name in NUMBERS}
        ds = described(xr.Dataset(variables), NUMBERS) if found else xr.Dataset()
        texts = {name: np.array([getattr(c, name) for c in found], dtype=object) for name in TEXTS}
        return ds.assign_coords({name: ("entry", values) for name, values in texts.items() if found}).assign_attrs(
            level=LEVEL
        )

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row a claim."""
        headers = ["measured", "claim", "n", "ours [95 %]", "published", "p", "verdict"]
        if "value" not in ds:
            return ["nothing to compare"], [["these results hold none of the networks that the claims are about"]]
        return headers, [_row(ds.isel(entry=i)) for i in range(ds.sizes["entry"])]


def tables_by_subject(
    label: str, headers: list[str], rows: list[list[str]]
) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return a table for each subject, which its title names instead of a column: for claims of many words."""
    if headers[0] != "measured":
        return [(label, headers, rows)]
    subjects = dict.fromkeys(row[0] for row in rows)
    return [(f"{label}, {name}", headers[1:], [row[1:] for row in rows if row[0] == name]) for name in subjects]


def _row(cell: xr.Dataset) -> list[str]:
    texts = {name: str(cell[name].item()) for name in TEXTS}
    n = int(cell["n"])
    count = str(n) if n else NONE
    ours = _ours(cell, texts["units"])
    return [texts["subject"], texts["claim"], count, ours, texts["published"], number(cell["p"], 2), texts["verdict"]]


def _ours(cell: xr.Dataset, units: str) -> str:
    """Write our value and its interval; "≥" before a lower bound, "∞" where the interval has no upper end."""
    value, low, high = (float(cell[name]) for name in ("value", "low", "high"))
    unit = "" if units == "1" else f" {units}"
    if not np.isfinite(value):
        return NONE
    ours = f"{'≥ ' if bool(cell['at_least']) else ''}{number(value)}"
    if not np.isfinite(low) or np.isnan(high):
        return f"{ours}{unit}"
    return f"{ours} [{number(low)}, {'∞' if np.isinf(high) else number(high)}]{unit}"
