"""The precision ladder: each scale in the cheapest precision whose measured error is small beside the response (ours).

Large perturbations move the features so far that bfloat16 resolves them; small ones may be lost in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import torch

from geoframe.fusing import ALIKE, alike, trial_images
from geoframe.geometry.pushforward import squared_norms
from geoframe.geometry.response import Displacements
from geoframe.numerics import exact_numerics, with_fused_attention

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

Precision = str  # "bfloat16", "float32" or "float64"
MARGIN = 0.5  # of the limit, for bfloat16: its error is an estimate from few pairs, and adds to every response
COARSE = 0.05  # relative distance of features that rounding to bfloat16 may make
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
    moves : dict of str to Displacements
        Of the encoder at the image, in each precision.
    """

    precisions: list[Precision]
    errors: dict[int, float]
    moves: dict[Precision, Displacements]

    def rounding(self) -> np.ndarray:
        """Relative error that bfloat16 may make at each scale, as it was measured; 0 in other precisions."""
        return np.array([self.errors[k] if name == "bfloat16" else 0.0 for k, name in enumerate(self.precisions)])

    def groups(self, chosen: Sequence[int]) -> Iterator[tuple[Displacements, list[int]]]:
        """Split scale numbers by precision."""
        for name, moves in self.moves.items():
            members = [k for k in chosen if self.precisions[k] == name]
            if members:
                yield moves, members


def single(encoder: LoadedEncoder, x: torch.Tensor, scales: Sequence[float]) -> Ladder:
    """Return the ladder of one precision, float32: the paper's rule, which drops what it doesn't resolve."""
    return Ladder(["float32"] * len(scales), {}, {"float32": displacements(encoder, x)})


def displacements(encoder: LoadedEncoder, x: torch.Tensor) -> Displacements:
    """Displacements of an encoder's features at an image, by the fastest kernels: nothing is differentiated."""
    phi = with_fused_attention(encoder.features) if encoder.derived(attends_fused) else encoder.features
    return Displacements(phi, x.to(encoder.dtype))


def attends_fused(encoder: LoadedEncoder) -> bool:
    """Whether an encoder runs with fused attention, and gives the same features: its kernels refuse some masks."""
    images = trial_images(encoder)
    with exact_numerics():
        plain = encoder._forward(images)
        try:
            fused = with_fused_attention(encoder._forward)(images)
        except Exception:  # of any kind: the user's code can raise anything
            return False
    return alike(plain, fused, COARSE if isinstance(encoder.network, Rounded) else ALIKE)


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
    ladder = single(fast, x, scales)
    usual = ladder.moves["float32"]
    if fast.bfloat16:
        ladder.moves["bfloat16"] = low = displacements(fast.derived(rounded), x)
        for k in reversed(range(len(scales))):
            error, _ = relative_error(low, usual, u, scales[k])
            if not error <= MARGIN * limit:
                break
            ladder.precisions[k], ladder.errors[k] = "bfloat16", error
    fine = encoder.double()
    if fine is not None:
        ladder.moves["float64"] = exact = displacements(fine, x)
        lost: dict[int, float] = {}
        noise = 0.0
        for k in range(len(scales)):
            error, energy = relative_error(usual, exact, u, scales[k])
            noise = max(noise, error * energy)
            if error <= limit:
                break
            ladder.precisions[k], lost[k] = "float64", energy
        with np.errstate(all="ignore"):
            ladder.errors.update({k: float(np.float64(noise * FINER) / energy) for k, energy in lost.items()})
    return ladder


def relative_error(
    moves: Displacements, reference: Displacements, u: torch.Tensor, scale: float
) -> tuple[float, float]:
    """Error of a displacement's energy, as a share of it (noise that adds, or a systematic difference); and the energy.

    The larger of ‖error‖² and |‖Δ‖² − ‖Δ_reference‖²|, means over the pairs, over ‖Δ_reference‖².
    """
    moved, wanted = moves.along(u, scale).double(), reference.along(u, scale).double()
    energy = float(squared_norms(wanted).mean())
    noise = float(squared_norms(moved - wanted).mean())
    shift = abs(float(squared_norms(moved).mean()) - energy)
    with np.errstate(all="ignore"):
        return float(np.float64(max(noise, shift)) / energy), energy
