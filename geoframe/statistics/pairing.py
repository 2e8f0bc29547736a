"""Which stored encoder is the random copy of which, and which belong to one network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.errors import BadInput

if TYPE_CHECKING:
    import xarray as xr

SAME = ("architecture", "dataset", "seed")  # coordinates by which results without `control` are paired
ABSENT, UNCLEAR = "no random copy", "random copy unclear"


@attrs.frozen
class Network:
    """Encoders of one network: its random copy and what was trained from it.

    Attributes
    ----------
    control : str
        The encoder with initial weights, "" where there is none.
    trained : tuple of str
        The others, in the results' order.
    problem : str
        Why the control isn't known: `ABSENT`, `UNCLEAR`, or "" where it is.
    """

    control: str
    trained: tuple[str, ...]
    problem: str = ""


def along_encoder(ds: xr.Dataset | xr.DataArray, name: str) -> list[Any] | None:
    """Return a coordinate over encoder, or None where the results don't have it."""
    for stored in (f"encoder_{name}", name):
        if stored in ds.coords and ds[stored].dims == ("encoder",):
            return list(ds[stored].values.tolist())
    return None


def numbers_of(ds: xr.Dataset | xr.DataArray, name: str) -> dict[str, float]:
    """Return a coordinate of each encoder as a number; NaN where results don't have it (whole ones say −1)."""
    found = along_encoder(ds, name) or [np.nan] * ds.sizes["encoder"]
    known = [float(v) if isinstance(v, int | float) and v >= 0 else np.nan for v in found]
    return dict(zip(map(str, ds["encoder"].values), known, strict=True))


def in_order(names: Iterable[str], when: Mapping[str, float]) -> list[str]:
    """Sort the checkpoints of one network by when they are from; as they come where that is known of none.

    Raises
    ------
    BadInput
        Where it is known of some.
    """
    listed = list(names)
    unknown = [name for name in listed if np.isnan(when[name])]
    if unknown and len(unknown) < len(listed):
        raise BadInput(
            f"how long {unknown[0]!r} was trained isn't known, so its place among the checkpoints of that network isn't"
        )
    return listed if unknown else sorted(listed, key=when.__getitem__)


def initial(ds: xr.Dataset | xr.DataArray) -> xr.DataArray:
    """Which encoders have their initial weights, (encoder,): they say so, or are another one's random copy."""
    import xarray as xr

    training = along_encoder(ds, "training") or [""] * ds.sizes["encoder"]
    claimed = set(along_encoder(ds, "control") or ()) - {""}
    names = [str(name) for name in ds["encoder"].values]
    found = [t == "random" or name in claimed for t, name in zip(training, names, strict=True)]
    return xr.DataArray(np.array(found, dtype=bool), dims="encoder", coords={"encoder": ds["encoder"].values})


def networks(ds: xr.Dataset | xr.DataArray) -> list[Network]:
    """Group the encoders of results by network.

    Results say exactly which encoder is whose random copy (coordinates `network` and `control`, from the encoders'
    identities). Older ones don't: there, encoders belong together that agree in architecture, data set and seed,
    as far as both have them, unless two of them can't be told apart by any coordinate. Then nothing is guessed, and
    the network's `problem` says so.
    """
    names = [str(name) for name in ds["encoder"].values]
    random = dict(zip(names, initial(ds).values.tolist(), strict=True))
    stored = along_encoder(ds, "network"), along_encoder(ds, "control")
    if stored[0] is None or stored[1] is None:
        return _guessed(ds, names, random)
    control = dict(zip(names, map(str, stored[1]), strict=True))
    return [_exact(members, random, control) for members in _groups(names, list(map(str, stored[0]))).values()]


def network_names(ds: xr.Dataset | xr.DataArray) -> list[str]:
    """Return a name of each encoder's network, "" where it stands alone or isn't known."""
    place: dict[str, str] = {}
    for network in networks(ds):
        members = [name for name in (network.control, *network.trained) if name]
        if len(members) > 1 and network.problem != UNCLEAR:
            place |= dict.fromkeys(members, members[0])
    return [place.get(str(name), "") for name in ds["encoder"].values]


def _groups(names: list[str], keys: list[Any]) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for name, key in zip(names, keys, strict=True):
        found.setdefault(key, []).append(name)
    return found


def _exact(members: list[str], random: dict[str, bool], control: dict[str, str]) -> Network:
    """A network whose control is stored; a control that a selection left out counts as absent."""
    trained = tuple(name for name in members if not random[name])
    named = {control[name] for name in trained} & set(random)
    copy = next(iter(named), "" if trained else members[0])
    return Network(copy, trained, "" if copy else ABSENT)


def _guessed(ds: xr.Dataset | xr.DataArray, names: list[str], random: dict[str, bool]) -> list[Network]:
    labels = {c: along_encoder(ds, c) for c in SAME}
    labels["architecture"] = labels["architecture"] or [""] * len(names)
    known = {c: dict(zip(names, values, strict=True)) for c, values in labels.items() if values is not None}
    groups = _groups(names, [known["architecture"][name] or f"alone: {name}" for name in names])
    split = [part for members in groups.values() for part in _by_labels(members, random, known)]
    return [_judged(ds, members, random) for members in split]


def _by_labels(members: list[str], random: dict[str, bool], known: dict[str, Any]) -> list[list[str]]:
    """Split encoders of one architecture: each random one with the trained ones that it doesn't contradict."""
    trained = [name for name in members if not random[name]]
    copies = [name for name in members if random[name]]

    def agree(one: str, other: str) -> bool:
        pairs = [(labels[one], labels[other]) for labels in known.values()]
        return all(a == b for a, b in pairs if _said(a) and _said(b))

    parts: dict[tuple[str, ...], list[str]] = {}
    for name in trained:
        mine = tuple(copy for copy in copies if agree(name, copy))
        key = mine or tuple(str(v[name]) for v in known.values())
        parts.setdefault(key, list(mine)).append(name)
    taken = {name for part in parts.values() for name in part}
    return [*parts.values(), *([name] for name in copies if name not in taken)]


def _said(value: Any) -> bool:
    """Whether a coordinate has a value for an encoder: "", −1 and NaN are fills."""
    return value not in ("", -1) and value == value


def _judged(ds: xr.Dataset | xr.DataArray, members: list[str], random: dict[str, bool]) -> Network:
    trained = tuple(name for name in members if not random[name])
    copies = [name for name in members if random[name]]
    if not trained:
        return Network(copies[0], ())
    if len(copies) > 1 or not _distinct(ds, trained):
        return Network("", trained, UNCLEAR)
    return Network(copies[0] if copies else "", trained, "" if copies else ABSENT)


def _distinct(ds: xr.Dataset | xr.DataArray, names: tuple[str, ...]) -> bool:
    """Whether the coordinates tell these encoders apart; if not, they may be of different networks."""
    coords = [c for c in ds.coords if ds[c].dims == ("encoder",) and c != "encoder"]
    told = {tuple(str(ds[c].sel(encoder=name).item()) for c in coords) for name in names}
    return len(told) == len(names)
