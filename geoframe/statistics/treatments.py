"""Which stored encoder was trained on what: the controls of *Beyond Local Linearity* (fig. 2b, 2c), and their sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.statistics.pairing import along_encoder, in_order, initial, numbers_of

if TYPE_CHECKING:
    import xarray as xr

CLEAN, BLURS, RANDOMISED = "clean", ("blur1", "blur2"), ("random-labels", "random-data")
INITIAL = "initial"


@attrs.frozen
class Treated:
    """One architecture under several treatments of its training data.

    Attributes
    ----------
    label : str
        The architecture; with the seed where several seeds were trained.
    encoders : dict of str to str
        Encoder by treatment: `CLEAN`, `INITIAL`, and the variants' names.
    """

    label: str
    encoders: dict[str, str]

    def among(self, treatments: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return treatment and encoder of those of `treatments` that there are."""
        return [(name, self.encoders[name]) for name in treatments if name in self.encoders]


def treated(ds: xr.Dataset) -> list[Treated]:
    """Group the encoders that a training's `variant` is stored of, by architecture and seed.

    Of several checkpoints of one training, the last one counts.
    """
    names = [str(name) for name in ds["encoder"].values]
    variants = along_encoder(ds, "variant")
    if variants is None:
        return []
    keys = [tuple(map(str, key)) for key in zip(*(_column(ds, c) for c in ("architecture", "seed")), strict=True)]
    steps, first = numbers_of(ds, "step"), initial(ds).values
    groups: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for name, variant, key, is_first in zip(names, variants, keys, first, strict=True):
        treatment = INITIAL if is_first else str(variant) or CLEAN
        groups.setdefault(key, {}).setdefault(treatment, []).append(name)
    several = [key[0] for key in groups]
    return [
        Treated(
            key[0] if several.count(key[0]) == 1 else f"{key[0]}, seed {key[1]}",
            {t: in_order(found, steps)[-1] for t, found in g.items()},
        )
        for key, g in groups.items()
    ]


def blur_levels(ds: xr.Dataset) -> list[tuple[float, str]]:
    """Return σ and name of the probe sets that are blurs of one another's images, ascending; σ = 0 of the images.

    Empty where nothing is blurred. Two sets of other images have other ids; where several sets have blurs, those of
    the first one are taken.
    """
    sigmas = _along_probeset(ds, "sigma")
    names = [str(name) for name in ds["probeset"].values]
    blurred = [j for j, sigma in enumerate(sigmas) if sigma > 0]
    if not blurred or "image_id" not in ds.coords:
        return []
    ids = [list(row) for row in ds["image_id"].transpose("probeset", "image").values]
    alike = [j for j in range(len(names)) if ids[j] == ids[blurred[0]]]
    return sorted((max(sigmas[j], 0.0), names[j]) for j in alike)


def _along_probeset(ds: xr.Dataset, name: str) -> list[float]:
    for stored in (f"probeset_{name}", name):
        if stored in ds.coords and ds[stored].dims == ("probeset",):
            return [float(value) if np.isfinite(value) else 0.0 for value in ds[stored].values]
    return [0.0] * ds.sizes["probeset"]


def _column(ds: xr.Dataset, name: str) -> list[object]:
    return along_encoder(ds, name) or [""] * ds.sizes["encoder"]
