"""Which encoder of a study is the random copy of which: known from the specs, and stored beside the results."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import xarray as xr

from geoframe.encoder import Encoder
from geoframe.errors import FAILURES

CONTROL, NETWORK = "control", "network"
_ABOUT = {
    CONTROL: "name of the encoder that is this one's random copy (empty: none in the study, or it is one itself)",
    NETWORK: "name of the first encoder of the same network: encoders that share their random copy",
}


@attrs.frozen
class _Known:
    """What the specs say of one encoder: its own key, that of its random copy, and whether it is one."""

    label: str
    copy: str
    is_copy: bool

    @classmethod
    def of(cls, encoder: Encoder) -> _Known:
        key = encoder.key
        try:
            copy = encoder.randomised().key
        except FAILURES:  # an encoder from elsewhere that has no random copy to offer has no control
            copy = key
        return cls(encoder.label, copy, copy == key or encoder.coords.get("training") == "random")


def networks_and_controls(encoders: Sequence[Encoder]) -> tuple[list[str], list[str]]:
    """Group encoders by identity.

    An encoder's random copy is the one whose key is that of its `randomised()`. Several may share a copy, such as the
    checkpoints of one training. Names, architectures and seeds play no part.

    Returns
    -------
    networks, controls : list of str
        For each encoder, the name of the first one of its network, and the name of its random copy ("" where it has
        none in the study or is one itself).
    """
    known = [_Known.of(encoder) for encoder in encoders]
    networks, controls = [], []
    for mine in known:
        family = [other for other in known if other.copy == mine.copy]
        copies = [other.label for other in family if other.is_copy]
        networks.append(family[0].label)
        controls.append(copies[0] if copies and not mine.is_copy else "")
    return networks, controls


def with_controls(node: xr.Dataset, encoders: Sequence[Encoder]) -> xr.Dataset:
    """Add the coordinates `control` and `network` over encoder; `encoder_` goes before a name that is taken."""
    for name, values in zip((NETWORK, CONTROL), networks_and_controls(encoders), strict=True):
        free = name if name not in node.variables else f"encoder_{name}"
        texts = xr.Variable("encoder", np.array(values, dtype=object), {"long_name": _ABOUT[name]})
        node = node.assign_coords({free: texts})
    return node
