"""F.1's 2×2 of stored ray coverages: trained or not, same or different class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoframe.statistics.compare import mann_whitney
from geoframe.statistics.pairing import Network, networks
from geoframe.summaries.chance import AT_CHANCE
from geoframe.summaries.tables import by_sign

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

Side = tuple[str, bool]
"""Kind of rays, and whether the network is trained."""

PUBLISHED: dict[Side, tuple[float, float]] = {  # F.1's text, in %; its Table 4 isn't in the text
    ("same", True): (89.0, 96.0),
    ("same", False): (32.0, 47.0),
    ("different", True): (0.3, 1.2),
}
CONTRASTS: dict[str, tuple[Side, Side]] = {  # what is compared
    "trained: same − untrained: same": (("same", True), ("same", False)),
    "trained: same − trained: different": (("same", True), ("different", True)),
    "untrained: same − untrained: different": (("same", False), ("different", False)),
}
PUBLISHED_P = ("< 1e-11", "< 1e-11", "3.9e-12, 0.02, 0.19")
NETWORKS = "MNIST MLP, MNIST CNN, Fashion-MNIST CNN"

TESTS = {
    "u": ("1", "Mann–Whitney U of the coverages of the first sample against the second"),
    "p": ("1", "two-sided p-value of Mann–Whitney's U"),
    "difference": ("1", "mean coverage of the first sample minus that of the second"),
    "n_first": ("1", "number of test images in the first sample"),
    "n_second": ("1", "number of test images in the second sample"),
    "first": ("1", "mean coverage of the first sample"),
    "second": ("1", "mean coverage of the second sample"),
}


def verdict(cell: xr.Dataset) -> str:
    """One contrast by the rule of `CoverageTests`."""
    trained = [trained for _, trained in CONTRASTS[str(cell["contrast"].item())]]
    if not all(trained) and str(cell["problem"].item()):
        return str(cell["problem"].item())
    if not np.isfinite(float(cell["p"])):
        return "not measured"
    if any(trained) and bool(cell["at_chance"]):
        return AT_CHANCE
    return by_sign(float(cell["p"]), float(cell["difference"]))


def short(sides: tuple[Side, Side]) -> str:
    """Write a contrast shortly.

    >>> short((("same", True), ("same", False)))
    'same: trained − initial'
    """
    (first, one), (second, other) = sides
    states = {True: "trained", False: "initial"}
    if first == second:
        return f"{first}: {states[one]} − {states[other]}"
    return f"{states[one]}: {first} − {second}"


def pairs(coverage: xr.DataArray) -> Iterator[tuple[xr.DataArray, tuple[str, ...]]]:
    """Yield coverage (trained, classes, image) of each trained encoder with its random copy, and what they are."""
    for network in networks(coverage):
        for encoder in network.trained:
            for probeset in coverage["probeset"].values:
                mine = coverage.sel(encoder=encoder, probeset=probeset, drop=True)
                if bool(mine.notnull().any()):
                    copy, problem = _copy(coverage.sel(probeset=probeset, drop=True), network)
                    yield _beside(mine, copy), (encoder, str(probeset), network.control, problem)


def _copy(coverage: xr.DataArray, network: Network) -> tuple[xr.DataArray | None, str]:
    """Coverage of a network's random copy on one probe set, or None and why."""
    if not network.control:
        return None, network.problem
    found = coverage.sel(encoder=network.control, drop=True)
    return (found, "") if bool(found.notnull().any()) else (None, "random copy not measured")


def _beside(mine: xr.DataArray, copy: xr.DataArray | None) -> xr.DataArray:
    import xarray as xr

    both = [mine, xr.full_like(mine, np.nan) if copy is None else copy]
    plain = [one.drop_vars(set(one.coords) - {"classes"}) for one in both]
    return xr.concat(plain, xr.Variable("trained", [True, False]))


def compared(pair: xr.DataArray, first: Side, second: Side) -> xr.Dataset:
    """Compare two of the four samples; NaN where the results lack one of them."""
    import xarray as xr

    def sample(classes: str, trained: bool) -> xr.DataArray:
        if classes in pair["classes"].values:
            return pair.sel(classes=classes, trained=trained, drop=True)
        return xr.full_like(pair.isel(classes=0, trained=0, drop=True), np.nan)

    one, other = sample(*first), sample(*second)
    return mann_whitney(one, other).assign(first=one.mean("image"), second=other.mean("image"))


def tested(ds: xr.Dataset) -> Iterator[tuple[xr.Dataset, tuple[Side, Side]]]:
    """Yield what `CoverageTests` stored of each pair and contrast, and its two sides."""
    for pair in range(ds.sizes.get("pair", 0)):
        for name, sides in CONTRASTS.items():
            yield ds.isel(pair=pair).sel(contrast=name), sides


def published(side: Side) -> str:
    """Write the range that F.1's text gives."""
    if side not in PUBLISHED:
        return "not given"
    low, high = PUBLISHED[side]
    return f"{low:g}–{high:g}"
