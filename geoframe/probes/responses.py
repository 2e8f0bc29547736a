"""`ResponseProbe`: mean squared response of features, logits and margin over a ladder of scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.probe import Batch, Output, Probe

if TYPE_CHECKING:
    import numpy as np
    import torch

    from geoframe.geometry.joint import JointMap, JointResponses
    from geoframe.geometry.response import Displacements
    from geoframe.loaded import LoadedEncoder

OUTPUTS = ("features", "logits", "margin")
FINE_SCALES: tuple[float, ...] = tuple(10 ** (-2 + k / 8) for k in range(33))
NOISE_PAIRS = 2  # antipodal pairs whose displacements are repeated in float64
NOISE_ENOUGH = 0.1  # of the limit: below it, noise is carried along instead of measured
LEVEL_OF_MARGIN = OUTPUTS.index("logits")  # a small difference of large logits rounds as they do
_UNITS = "squared output L2 / η²"


def _floats(values: Sequence[float] | float) -> tuple[float, ...]:
    return tuple(float(v) for v in values) if isinstance(values, Sequence) else (float(values),)


def _check_scales(_probe: Any, _field: Any, scales: tuple[float, ...]) -> None:
    if not scales or any(not 0 < s < float("inf") for s in scales) or list(scales) != sorted(set(scales)):
        raise ValueError(f"scales must be positive numbers that rise strictly (raw-pixel L2), not {scales!r:.80}")


def _check_directions(_probe: Any, _field: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 4 or value % 2:
        raise ValueError(f"directions={value!r:.80} must be an even number, 4 or more (each comes with its negative)")


@attrs.frozen(kw_only=True)
class ResponseProbe(Probe):
    """Mean squared response m_η / η² of a classifier's features, logits and margin, from the same forward passes.

    m_η(x) = E_u ‖f(x + ηu) − f(x)‖² as in *Beyond Local Linearity*, A.1, for three maps f: the features (the paper's),
    the logits, and the margin of the class y predicted at x, f^y − max_{i≠y} f^i, which is 0 on y's boundary (ours).
    Directions are those of a `RatioProbe` with the same seed, antipodal.

    Attributes
    ----------
    scales : tuple of float
        η, L2 in raw [0, 1] pixels; 33 log-spaced from 1e-2 to 1e2: the paper's ladder, twice as fine. Of 32 × 32
        images too, where the paper's ends at 14: logits and margins may peak beyond that.
    directions : int
        Unit directions a scale, both antipodes counted, the same at all scales.
    noise_limit : float
        A rung whose floating-point noise exceeds this share of the measured energy is not valid.

    Notes
    -----
    The ratio r_η is m_η / η² over a number that doesn't depend on η, so it peaks where m_η / η² does: no derivative is
    taken. `response_half` has the first and the second half of the pairs, for the reliability of whatever is made of
    them. Noise is measured as `RatioProbe` does; the margin's is carried along relative to the logits.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 8
    outputs: ClassVar[Mapping[str, Output]] = {
        "response": Output(("output", "scale"), units=_UNITS, long_name="mean squared response m_η / η²"),
        "response_se": Output(("output", "scale"), units=_UNITS, long_name="standard error of the mean response"),
        "response_half": Output(
            ("half", "output", "scale"), units=_UNITS, long_name="mean squared response over half of the directions"
        ),
        "noise_fraction": Output(("output", "scale"), long_name="floating-point noise over measured energy"),
        "valid": Output(("output", "scale"), dtype="bool", long_name="noise within the limit and values finite"),
        "predicted": Output(dtype="int64", long_name="class predicted at the image"),
    }

    scales: tuple[float, ...] = attrs.field(default=FINE_SCALES, converter=_floats, validator=_check_scales)
    directions: int = attrs.field(default=256, validator=_check_directions)
    noise_limit: float = attrs.field(default=0.05, converter=float, validator=attrs.validators.gt(0))

    def default_name(self) -> str:
        """Return "response"."""
        return "response"

    @property
    def pairs(self) -> int:
        """Number of base directions, each used with both signs."""
        return self.directions // 2

    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Return the outputs, the halves and the scales."""
        return {"output": OUTPUTS, "half": ("first", "second"), "scale": self.scales}

    def forward_passes(self) -> float:
        """Planned cost of one image."""
        return float(len(self.scales) * self.directions)

    def smoke(self) -> ResponseProbe:
        """Return the same with five scales and 4 directions."""
        spread = {self.scales[k * (len(self.scales) - 1) // 4] for k in range(5)}
        return self.evolve(scales=tuple(sorted(spread)), directions=4)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        import numpy as np

        from geoframe.fusing import fused
        from geoframe.geometry.joint import joint_responses
        from geoframe.geometry.response import even_blocks, pairs_within
        from geoframe.lines import predicted
        from geoframe.ratio_estimators import ImageDirections

        x, held = batch.images, predicted(encoder, batch.images)
        phi = _outputs(encoder.derived(fused), encoder, int(held))
        draw = ImageDirections(encoder, self.seed, batch.ids[0])
        block = even_blocks(self.pairs, pairs_within(encoder.micro_batch))
        found = joint_responses(phi, x, draw, self.pairs, self.scales, block)
        fractions = self._noise(encoder, phi, x, draw(0, min(NOISE_PAIRS, self.pairs)), found, int(held))
        energy = found.energy.numpy()
        response = energy.mean(1)
        halves = energy[:, : self.pairs // 2], energy[:, self.pairs // 2 :]
        return {
            "response": response[None],
            "response_se": (energy.std(1, ddof=1) / np.sqrt(self.pairs))[None],
            "response_half": np.stack([half.mean(1) for half in halves])[None],
            "noise_fraction": fractions[None],
            "valid": ((fractions <= self.noise_limit) & np.isfinite(response) & (response > 0))[None],
            "predicted": held,
        }

    def _noise(
        self,
        encoder: LoadedEncoder,
        phi: JointMap,
        x: torch.Tensor,
        u: torch.Tensor,
        found: JointResponses,
        held: int,
    ) -> np.ndarray:
        """Share of noise (output, scale), against the network in float64 where it can run so."""
        import numpy as np

        from geoframe.classifier import fine_classifier
        from geoframe.geometry import noise

        fine = fine_classifier(encoder)
        moves = _displacements(phi, x)
        exact = [] if fine is encoder else _displacements(_outputs(fine, fine, held), x.double())

        def meter(place: int, scale: float) -> float:
            if not exact:
                return noise.noise_against_derivative(moves[place], moves[place].phi, u, scale, len(u))
            return noise.noise_against_float64(moves[place], exact[place], u, scale, len(u))

        energy = found.energy.mean(1).numpy() * np.square(self.scales)
        level = found.level.numpy().copy()
        level[OUTPUTS.index("margin")] = level[LEVEL_OF_MARGIN]
        enough = self.noise_limit * NOISE_ENOUGH
        return np.stack(
            [
                noise.noise_fractions(partial(meter, k), self.scales, energy[k], level[k], enough)
                for k in range(len(OUTPUTS))
            ]
        )


def _displacements(phi: JointMap, x: torch.Tensor) -> list[Displacements]:
    """Displacements of each output by itself."""
    from geoframe.geometry.joint import part
    from geoframe.geometry.response import Displacements

    return [Displacements(part(phi, k), x) for k in range(len(OUTPUTS))]


def _outputs(network: LoadedEncoder, head: LoadedEncoder, held: int) -> JointMap:
    """Features of one encoder, logits of them by another one's head, and the margin of the held class."""
    from geoframe.geometry.bounds import margin

    def outputs(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features = network.features(x)
        logits = head.classify(features.clone())  # a head may work in place
        return features, logits, margin(logits, held)[:, None]

    return outputs
