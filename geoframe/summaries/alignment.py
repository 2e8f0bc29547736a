"""Stored alignments beside fig. 10 and §3.4: how much of gradients, differences and attacks is on the first vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.statistics.compare import mean_interval
from geoframe.summaries.attacks import published
from geoframe.summaries.claim_table import NOT_GIVEN, Claim, by_range, unclear
from geoframe.summaries.tables import by_sign
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

TOP = 5  # right singular vectors that fig. 10's figures are of
GRADIENT, DIFFERENCE = (80.0, 95.0), (20.0, 40.0)  # I.3: "often", "typically", in %
NO_FIGURE, OTHER, COPY = unclear("ours"), unclear("data"), unclear("copy")
Values = np.ndarray[Any, Any]


def judged(cell: xr.Dataset, verdict: str) -> str:
    """Return a verdict on a range that I.3 gives of one network and data set, or why there is none on this one."""
    known, copied = published(cell)
    if known is None:
        return OTHER
    return COPY if copied else verdict


def top_energy(ds: xr.Dataset, name: str = "energy", top: int = TOP) -> xr.DataArray:
    """Energy on the first vectors, (encoder, probeset, image), mean over the vectors of an image."""
    energy = ds[name].isel(component=slice(top)).max("component")  # it only grows; a smaller network has fewer
    return energy.mean("vector") if "vector" in energy.dims else energy


@attrs.frozen
class Energies:
    """Nodes of `AlignmentProbe`s: loss gradients, image differences, and moves of images by attack; None: absent."""

    gradient: xr.Dataset | None
    differences: xr.Dataset | None
    moves: dict[str, xr.Dataset]

    @classmethod
    def stored(cls, tree: xr.DataTree, gradient: str, differences: str, moves: tuple[str, ...]) -> Energies:
        """Read nodes by name; "" is none."""
        one, other = (stored_node(tree, name) if name else None for name in (gradient, differences))
        return cls(one, other, {name.partition("-")[2]: stored_node(tree, name) for name in moves})

    def claims(self) -> Iterator[Claim]:
        """Yield the claims on each encoder and probe set that was measured."""
        nodes = [ds for ds in (self.gradient, self.differences, *self.moves.values()) if ds is not None]
        for encoder in nodes[0]["encoder"].values if nodes else ():
            for probeset in nodes[0]["probeset"].values:
                yield from self._at(encoder=encoder, probeset=probeset)

    def _at(self, **place: Any) -> Iterator[Claim]:
        gradient, differences = (None if ds is None else ds.sel(place) for ds in (self.gradient, self.differences))
        one = other = None
        if gradient is not None and _measured(gradient):
            one = top_energy(gradient)
            random = top_energy(gradient, "baseline_pullback")
            yield level(gradient, f"gradient, top {TOP}", one, GRADIENT)
            yield paired(gradient, "gradient − random", one, random)
            yield level(gradient, "|cos(v₁, gradient)|", gradient["cosine"].mean("vector"))
        if differences is not None and _measured(differences):
            other = top_energy(differences)
            yield level(differences, f"difference, top {TOP}", other, DIFFERENCE)
        if one is not None and other is not None and differences is not None:
            yield paired(differences, "gradient − difference", one, other, "> 0")
        for name, ds in self.moves.items():
            move = ds.sel(place)
            if _measured(move):
                yield level(move, f"{name}, top {TOP}", top_energy(move))
                if other is not None:
                    yield paired(move, f"{name} − difference", top_energy(move), other, "> 0")


def _measured(cell: xr.Dataset) -> bool:
    return bool(cell["energy"].notnull().any())


def level(cell: xr.Dataset, claim: str, values: xr.DataArray, limits: tuple[float, float] | None = None) -> Claim:
    """Mean over images; a verdict where there is a published range, in %."""
    factor, units = (1.0, "1") if claim.startswith("|") else (100.0, "%")
    found = mean_interval(values, shares=True)
    value, low, high = (factor * float(found[name]) for name in ("mean", "low", "high"))
    return Claim(
        subject=str(cell["encoder"].item()),
        claim=claim,
        published=f"{limits[0]:g}–{limits[1]:g} %" if limits else NOT_GIVEN,
        value=value,
        low=low,
        high=high,
        n=int(found["n"]),
        units=units,
        verdict=judged(cell, by_range(value, low, high, limits)) if limits else NO_FIGURE,
    )


def paired(cell: xr.Dataset, claim: str, one: xr.DataArray, other: xr.DataArray, said: str = "") -> Claim:
    """Mean difference over images, Wilcoxon's signed ranks; a verdict where the paper says that the first is larger."""
    from scipy import stats

    change = (one - other).values
    change = change[np.isfinite(change)]
    found = mean_interval(change)
    p = float(stats.wilcoxon(change).pvalue) if np.any(change) else np.nan
    value, low, high = (100 * float(found[name]) for name in ("mean", "low", "high"))
    return Claim(
        subject=str(cell["encoder"].item()),
        claim=claim,
        published=said or NOT_GIVEN,
        value=value,
        low=low,
        high=high,
        p=p,
        n=len(change),
        units="%",
        verdict=by_sign(p, value) if said else NO_FIGURE,
    )
