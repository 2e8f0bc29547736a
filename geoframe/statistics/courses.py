"""Networks at several moments of their training, in the order of their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.pairing import UNCLEAR, along_encoder, in_order, networks, numbers_of

if TYPE_CHECKING:
    import xarray as xr


@attrs.frozen
class Course:
    """One network through its training.

    Attributes
    ----------
    label : str
        Its architecture, or, where that doesn't tell it from others, the name of its last encoder.
    names : tuple of str
        Encoders, by ascending step: initial weights first, where they were measured.
    steps : tuple of int
        Optimiser steps; 0 of initial weights. Of the last one: those of the whole training, as far as it was measured.
    """

    label: str
    names: tuple[str, ...]
    steps: tuple[int, ...]

    @property
    def has_initial(self) -> bool:
        """Whether the initial weights were measured."""
        return self.steps[0] == 0

    @property
    def trained(self) -> tuple[str, ...]:
        """The encoders with trained weights."""
        return self.names[int(self.has_initial) :]


def courses(ds: xr.Dataset) -> list[Course]:
    """Return the networks whose optimiser steps are known, in the results' order."""
    steps = numbers_of(ds, "step")
    architectures = dict(zip(map(str, ds["encoder"].values), along_encoder(ds, "architecture") or (), strict=False))
    found = []
    for network in networks(ds):
        names = [network.control, *network.trained] if network.control else [*network.trained]
        if network.problem == UNCLEAR or all(np.isnan(steps[name]) for name in names):
            continue
        if ordered := in_order(names, steps):
            found.append(Course(ordered[-1], tuple(ordered), tuple(int(steps[name]) for name in ordered)))
    kinds = [architectures.get(course.label, "") for course in found]
    return [
        attrs.evolve(course, label=kind) if kind and kinds.count(kind) == 1 else course
        for course, kind in zip(found, kinds, strict=True)
    ]
