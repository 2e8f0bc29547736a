"""Arms of an experiment on training: what was measured of each network, by arm, seed and epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.pairing import along_encoder, initial
from geoframe.summaries.spectrum import both_signs
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

ARMS = ("control", "expand", "restrict")
DIMS = ("network", "arm", "seed", "epoch")
SETTINGS = {"λ": "weight", "τ": "margin", "ε": "epsilon"}  # coordinates loss_weight, … of the encoders
Place = tuple[str, str, int, float]


def arm_courses(tree: xr.DataTree, coverage: str, gi: str) -> xr.Dataset:
    """Return what the arms came to, (network, arm, seed, epoch).

    Parameters
    ----------
    tree : xarray.DataTree
        With the nodes `training`, `coverage` (a RayCoverageProbe's) and `gi` (a GIProbe's).

    Returns
    -------
    xarray.Dataset
        `train_accuracy`, `test_accuracy`, `coverage`, `elsewhere`, `reentry` (means over images, as shares), `gi` (mean
        over images, directions and signs, restricted at the cap) and `gi_censored`; NaN for what is missing. A network
        is an architecture and its data set. Encoders with initial weights, and other variants than the three arms, are
        left out; there may be none.

    Raises
    ------
    BadInput
        Where two encoders are the same arm, seed and epoch of a network.
    """
    import xarray as xr

    training, rays, intervals = (stored_node(tree, node) for node in ("training", coverage, gi))
    images = ("probeset", "image")  # with `match`, an encoder meets one probe set
    along = (*images, "direction")
    censored = (intervals["censored"] * 0.5 + intervals["censored_negative"] * 0.5).where(intervals["gi"].notnull())
    values = {
        **{name: training[name] for name in ("train_accuracy", "test_accuracy")},
        **{name: rays[name].mean(images) for name in ("coverage", "elsewhere", "reentry")},
        "gi": both_signs(intervals, "gi").mean(along),
        "gi_censored": censored.mean(along),
    }
    places = _places(training)
    labels = _labels(list(places.values()))
    by_encoder = {
        name: dict(zip(map(str, v["encoder"].values), v.values.tolist(), strict=True)) for name, v in values.items()
    }
    table = {name: (DIMS, _filled(column, places, labels)) for name, column in by_encoder.items()}
    return xr.Dataset(table, dict(zip(DIMS, labels, strict=True)))


def loss_settings(tree: xr.DataTree) -> str:
    """Write λ, τ and ε of the arms, as the results have them; "" where they don't.

    Several values, of several networks say, stand one after the other.
    """
    training = stored_node(tree, "training")
    columns = {s: along_encoder(training, f"loss_{name}") for s, name in SETTINGS.items()}
    known = {s: sorted({float(v) for v in values or () if np.isfinite(v)}) for s, values in columns.items()}
    return ", ".join(f"{s} = {' and '.join(f'{v:g}' for v in values)}" for s, values in known.items() if values)


def last_epoch(courses: xr.Dataset) -> xr.Dataset:
    """Return each network at the last epoch at which anything of it is known, (network, arm, seed)."""
    import xarray as xr

    parts = []
    for name in courses["network"].values:
        mine = courses.sel(network=name)
        known = np.any([v.notnull().any(("arm", "seed")).values for v in mine.data_vars.values()], axis=0)
        parts.append(mine.isel(epoch=int(known.nonzero()[0].max(initial=0))))
    return xr.concat(parts, "network", coords="different", compat="equals")  # each has an epoch of its own


def _places(training: xr.Dataset) -> dict[str, Place]:
    """Network, arm, seed and epoch of each encoder of an arm; of one under several names (preset smoke), the first."""
    random = dict(zip(map(str, training["encoder"].values), initial(training).values.tolist(), strict=True))
    names = ("architecture", "dataset", "variant", "seed", "epoch", "scores_key")
    columns = [along_encoder(training, name) or [""] * len(random) for name in names]
    found: dict[Place, tuple[str, str]] = {}
    for encoder, architecture, dataset, arm, seed, epoch, key in zip(random, *columns, strict=True):
        if arm in ARMS and not random[encoder]:
            place = (f"{architecture} on {dataset}", str(arm), int(seed), float(epoch))
            known = found.setdefault(place, (encoder, str(key)))
            if known[0] != encoder and (not key or known[1] != key):
                raise BadInput(
                    f"encoder {encoder!r} is another {arm} of {place[0]}, seed {seed}, epoch {epoch:g}: leave one out, "
                    "as arms are told apart by architecture, data set, variant, seed and epoch alone"
                )
    return {encoder: place for place, (encoder, _) in found.items()}


def _labels(places: Sequence[Place]) -> list[np.ndarray]:
    """Labels of the dimensions: networks as they come, arms in the order of `ARMS`, numbers ascending."""
    networks, arms, seeds, epochs = zip(*places, strict=True) if places else ((), (), (), ())
    return [
        np.array(list(dict.fromkeys(networks)), dtype=object),
        np.array([arm for arm in ARMS if arm in arms], dtype=object),
        np.array(sorted(set(seeds)), dtype=np.int64),
        np.array(sorted(set(epochs)), dtype=np.float64),
    ]


def _filled(values: dict[str, float], places: dict[str, Place], labels: list[np.ndarray]) -> np.ndarray:
    table = np.full([len(column) for column in labels], np.nan)
    index = [{label: i for i, label in enumerate(column.tolist())} for column in labels]
    for encoder, place in places.items():
        where = tuple(known[label] for known, label in zip(index, place, strict=True))
        table[where] = values.get(encoder, np.nan)
    return table
