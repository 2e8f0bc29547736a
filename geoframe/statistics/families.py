"""Families of stored encoders: one network trained with several budgets ε, and its own baseline ε = 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.pairing import along_encoder

if TYPE_CHECKING:
    import xarray as xr

ALIKE = ("architecture", "dataset", "variant", "seed", "epoch")  # coordinates in which a family's members agree
NO_BASELINE, UNCLEAR = "no ε = 0", "several networks at one ε"


@attrs.frozen
class Family:
    """Encoders that differ in ε.

    Attributes
    ----------
    label : str
        Architecture, for tables that hold several families.
    training : str
        Coordinate `training` of its first encoder.
    names : tuple of str
        Encoders, by ascending ε.
    epsilons : tuple of float
        Their budgets, L2 in raw [0, 1] pixels.
    problem : str
        Why nothing can be compared: `NO_BASELINE`, `UNCLEAR`, or "".
    """

    label: str
    training: str
    names: tuple[str, ...]
    epsilons: tuple[float, ...]
    problem: str = ""


def epsilons_of(ds: xr.Dataset | xr.DataArray) -> dict[str, float]:
    """Return ε of the encoders that have one; initial weights and other trainings have none."""
    names = [str(name) for name in ds["encoder"].values]
    found = along_encoder(ds, "epsilon") or [np.nan] * len(names)
    return {name: float(e) for name, e in zip(names, found, strict=True) if isinstance(e, float | int) and e >= 0}


def families(ds: xr.Dataset | xr.DataArray) -> list[Family]:
    """Group the encoders that have an ε by what else is known of them.

    A family agrees in architecture, data set, variant, seed and epoch, as far as results have them. Two encoders of
    one ε can't be told apart by these: then nothing is guessed, and the family's `problem` says so.
    """
    epsilon = epsilons_of(ds)
    names = [str(name) for name in ds["encoder"].values]
    columns = {c: dict(zip(names, v, strict=True)) for c in (*ALIKE, "training") if (v := along_encoder(ds, c))}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in epsilon:
        groups.setdefault(tuple(str(columns[c][name]) for c in ALIKE if c in columns), []).append(name)
    return [_family(sorted(members, key=lambda name: epsilon[name]), epsilon, columns) for members in groups.values()]


def _family(members: list[str], epsilon: dict[str, float], columns: dict[str, dict[str, object]]) -> Family:
    budgets = tuple(epsilon[name] for name in members)
    label, training = (str(columns[c][members[0]]) if c in columns else "" for c in ("architecture", "training"))
    problem = NO_BASELINE if budgets[0] else ""
    return Family(label, training, tuple(members), budgets, UNCLEAR if len({*budgets}) < len(budgets) else problem)
