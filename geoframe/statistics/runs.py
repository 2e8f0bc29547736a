"""Trainings behind stored results: the checkpoints of each in order, and the recipe that provenance has of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.statistics.pairing import UNCLEAR, along_encoder, in_order, networks, numbers_of
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

BATCH_NORM = {"geoframe.models.small:mlp": "yes", "geoframe.models.small:cnn": "no"}  # no field of a recipe says it
UNKNOWN = "?"


@attrs.frozen
class Run:
    """One training: its checkpoints, ascending in epoch, the initial weights first where they are there.

    Attributes
    ----------
    encoders : tuple of str
    epochs : tuple of float
        NaN where results don't have them.
    has_initial : bool
        Whether the first one has initial weights.
    """

    encoders: tuple[str, ...]
    epochs: tuple[float, ...]
    has_initial: bool

    @property
    def name(self) -> str:
        """The last checkpoint's."""
        return self.encoders[-1]

    @property
    def trained(self) -> tuple[str, ...]:
        """Checkpoints after the initial weights."""
        return self.encoders[1:] if self.has_initial else self.encoders


def runs(ds: xr.Dataset | xr.DataArray) -> list[Run]:
    """Return the trainings of stored results.

    Encoders of which it isn't clear which training they are of (see `networks`) are left out; initial weights of which
    nothing was trained are a run of their own.
    """
    epoch = numbers_of(ds, "epoch")
    listed = []
    for network in networks(ds):
        if network.problem != UNCLEAR:
            start = (network.control,) if network.control else ()
            names = (*start, *in_order(network.trained, epoch))
            listed.append(Run(names, tuple(epoch[name] for name in names), bool(start)))
    return listed


def accuracies(tree: xr.DataTree, encoders: xr.DataArray) -> xr.DataArray:
    """Test accuracy of each encoder, from the node `training`; NaN where it isn't known."""
    import xarray as xr

    unknown = xr.DataArray(np.full(encoders.size, np.nan), {"encoder": encoders.values}, "encoder")
    if "training" not in tree.children:
        return unknown
    found = stored_node(tree, "training")["test_accuracy"]
    return found.reindex(encoder=encoders.values) if len(found) else unknown


def recipe(ds: xr.Dataset, encoder: str) -> dict[str, Any]:
    """Fields of the training behind an encoder, as the node's provenance has them; nothing where it isn't known."""
    spec = json.loads(ds.attrs.get("encoders", "{}")).get(encoder, {})
    fields = spec.get("fields", {}).get("training", {}).get("fields", {})
    return {name: plain(value) for name, value in fields.items()}


def probe_fields(ds: xr.Dataset) -> dict[str, Any]:
    """Fields of the node's probe, as its provenance has them."""
    fields = json.loads(ds.attrs.get("probe", "{}")).get("fields", {})
    return {name: plain(value) for name, value in fields.items()}


def plain(value: Any) -> Any:
    """Return a number that provenance wrote in hexadecimal as a number; anything else as it is.

    >>> plain("0x1.8p+1"), plain("sgd")
    (3.0, 'sgd')
    """
    return float.fromhex(value) if isinstance(value, str) and value.startswith(("0x", "-0x")) else value


def batch_norm(fields: dict[str, Any]) -> str:
    """Whether the network of a recipe normalises batches: "yes", "no" or "?"."""
    return BATCH_NORM.get(str(fields.get("model", {}).get("fields", {}).get("factory")), UNKNOWN)


def optimiser(ds: xr.Dataset, encoder: str) -> str:
    """Name of a run's optimiser: of its recipe, or what the coordinate `variant` says; "?" where neither is known."""
    return str(recipe(ds, encoder).get("optimiser") or label(ds, encoder, "variant") or UNKNOWN)


def label(ds: xr.Dataset | xr.DataArray, encoder: str, coordinate: str) -> str:
    """One encoder's coordinate as text; "" where results don't have it."""
    found = along_encoder(ds, coordinate)
    if found is None:
        return ""
    place = [str(name) for name in ds["encoder"].values].index(encoder)
    return str(found[place])


def family(ds: xr.Dataset | xr.DataArray, encoder: str) -> str:
    """What runs that differ in their seed share: architecture, data set and variant; else the encoder's name."""
    parts = [label(ds, encoder, name) for name in ("architecture", "dataset", "variant")]
    return " ".join(filter(None, parts)) or encoder
