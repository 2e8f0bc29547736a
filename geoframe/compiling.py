"""torch.compile around a network, for forward passes only: compiled derivatives may drop a network's own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from geoframe.errors import EncoderRefused
from geoframe.numerics import exact_numerics

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


def compiled(encoder: LoadedEncoder) -> LoadedEncoder:
    """Return a twin whose network is compiled, and whose passes count for the encoder; it takes a while.

    Raises
    ------
    EncoderRefused
        Where torch can't compile it here.
    """
    try:
        network: Any = torch.compile(encoder.network)
        twin = encoder.twin(network)
        with exact_numerics():
            twin._forward(torch.full((3, *encoder.input_shape), 0.5, device=encoder.device))
    except Exception as error:  # of any kind: no compiler, an operation it doesn't know
        said = next(iter(str(error).strip().splitlines()), "")
        raise EncoderRefused(
            f"encoder {encoder.label!r}: torch.compile failed with {type(error).__name__}: {said}: "
            "leave out compile=True"
        ) from error
    return twin
