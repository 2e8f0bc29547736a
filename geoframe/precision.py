"""The precision ladder: each scale in the cheapest precision whose measured error is small beside the response (ours).

Large perturbations move the features so far that bfloat16 resolves them; small ones may be lost in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import torch

from geoframe.geometry.pushforward import Map, squared_norms
from geoframe.geometry.response import PairBatch

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

Precision = str  # "bfloat16", "float32" or "float64"
MARGIN = 0.5  # of the limit, for bfloat16: its error is an estimate from few pairs, and adds to every response
FINER = (torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps) ** 2


class Rounded(torch.nn.Module):
    """A network whose convolutions and matrix products run in bfloat16 (autocast)."""

    def __init__(self, network: torch.nn.Module, device: str) -> None:
        super().__init__()
        self.network, self.device_type = network, device

    def forward(self, x: torch.Tensor) -> Any:
        """Return the network's output in float32."""
        with torch.autocast(self.device_type, dtype=torch.bfloat16):
            features = self.network(x)
        return features.float() if isinstance(features, torch.Tensor) else features


def rounded(encoder: LoadedEncoder) -> LoadedEncoder:
    """Return a twin that computes in bfloat16, whose passes count for the encoder."""
    return encoder.twin(Rounded(encoder.network, encoder.device.type))


@attrs.frozen(eq=False)
class Ladder:
    """Which precision each scale is measured in.

    Attributes
    ----------
    precisions : list of str
        One a scale: "bfloat16", "float32" or "float64".
    errors : dict of int to float
        By scale number: the error where it was measured, as a share of the response.
    maps : dict of str to callable
        Φ in each precision.
    """

    precisions: list[Precision]
    errors: dict[int, float]
    maps: dict[Precision, Map]

    def rounding(self) -> np.ndarray:
        """Relative error that bfloat16 may make at each scale, as it was measured; 0 in other precisions."""
        return np.array([self.errors[k] if name == "bfloat16" else 0.0 for k, name in enumerate(self.precisions)])

    def groups(self, chosen: Sequence[int]) -> Iterator[tuple[Map, torch.dtype, list[int]]]:
        """Split scale numbers by precision: Φ, the dtype that it takes, and the numbers."""
        for name, phi in self.maps.items():
            members = [k for k in chosen if self.precisions[k] == name]
            if members:
                yield phi, torch.float64 if name == "float64" else torch.float32, members


def single(encoder: LoadedEncoder, scales: Sequence[float]) -> Ladder:
    """Return the ladder of one precision, float32: the paper's rule, which drops what it doesn't resolve."""
    return Ladder(["float32"] * len(scales), {}, {"float32": encoder.features})


def choose_ladder(
    encoder: LoadedEncoder, fast: LoadedEncoder, x: torch.Tensor, u: torch.Tensor, scales: Sequence[float], limit: float
) -> Ladder:
    """Choose a precision for every scale of one image.

    Parameters
    ----------
    encoder, fast : LoadedEncoder
        As it was loaded, which float64 is taken from, and as it is measured in float32.
    x, u : torch.Tensor
        The image (1, …) and the directions that are tried (pairs, …), float32.
    scales : sequence of float
        η, ascending.
    limit : float
        Largest error, as a share of the response.

    Notes
    -----
    bfloat16 (where timing found it faster) is compared with float32 from the largest scale downwards, float32 with
    float64 from the smallest upwards, until the first failure and the first success: errors fall with the scale.
    """
    ladder = single(fast, scales)
    if fast.bfloat16:
        low = fast.derived(rounded)
        ladder.maps["bfloat16"] = low.features
        for k in reversed(range(len(scales))):
            error = relative_error(low.features, fast.features, x, u, scales[k])
            if not error <= MARGIN * limit:
                break
            ladder.precisions[k], ladder.errors[k] = "bfloat16", error
    fine = encoder.double()
    if fine is not None:
        ladder.maps["float64"] = fine.features
        for k in range(len(scales)):
            error = relative_error(fast.features, fine.features, x, u, scales[k], torch.float64)
            if not error > limit:
                break
            ladder.precisions[k], ladder.errors[k] = "float64", error * FINER
    return ladder


def relative_error(
    phi: Map, reference: Map, x: torch.Tensor, u: torch.Tensor, scale: float, dtype: torch.dtype = torch.float32
) -> float:
    """Error of a displacement's energy, as a share of it: noise that adds to it, or a systematic difference.

    The larger of ‖error‖² and |‖Δ‖² − ‖Δ_reference‖²|, means over the pairs, over ‖Δ_reference‖². `dtype` is
    what the reference takes.
    """
    pairs = len(u)
    found = phi(PairBatch(x, pairs).at(u, scale)).double()
    exact = reference(PairBatch(x.to(dtype), pairs).at(u.to(dtype), scale)).double()
    moved, wanted = found[1:] - found[:1], exact[1:] - exact[:1]
    energy = float(squared_norms(wanted).mean())
    noise = float(squared_norms(moved - wanted).mean())
    shift = abs(float(squared_norms(moved).mean()) - energy)
    with np.errstate(all="ignore"):
        return float(np.float64(max(noise, shift)) / energy)
