"""`RatioProbe`: the response ratio r_η(x) of Beyond Local Linearity, over a ladder of scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from geoframe.probe import Batch, Output, Probe

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder
    from geoframe.ratio_estimators import Measured

IMAGENET_SCALES: tuple[float, ...] = tuple(10 ** (-2 + k / 4) for k in range(17))
CIFAR_SCALES: tuple[float, ...] = tuple(10 ** (-2.85 + k / 4) for k in range(17))

NOISE_PAIRS = 2  # antipodal pairs whose displacements are repeated in float64
NOISE_ENOUGH = 0.1  # of the limit: below it, noise is carried along instead of measured
LEAST = 16  # directions below which the adaptive estimator has no variance to go by
PLANNED = 40  # pairs a scale that it is planned to need for 2 %
GAP_STEP = 1e-6  # raw-pixel L2, in float64


def _floats(values: Sequence[float] | float) -> tuple[float, ...]:
    return tuple(float(v) for v in values) if isinstance(values, Sequence) else (float(values),)


def _check_scales(_probe: Any, _field: Any, scales: tuple[float, ...]) -> None:
    if not scales or any(not 0 < s < float("inf") for s in scales):
        raise ValueError(f"scales must be positive numbers (raw-pixel L2), not {scales}")
    if list(scales) != sorted(set(scales)):
        raise ValueError(f"scales must rise strictly, not {scales}")


def _check_directions(_probe: Any, field: Any, value: int) -> None:
    if value < 4 or value % 2:
        raise ValueError(f"{field.name} must be an even number, 4 or more (each comes with its negative), not {value}")


@attrs.frozen(kw_only=True)
class RatioProbe(Probe):
    """Response ratio r_η(x): measured feature displacement over its local linear prediction (A, eq. 1).

    The defaults are the paper's protocol (A.2).

    Attributes
    ----------
    scales : tuple of float
        η, L2 in raw [0, 1] pixels; 17 log-spaced from 1e-2 to 1e2 (`CIFAR_SCALES` for 32 × 32 images).
    directions : int
        Unit directions a scale, both antipodes counted: 2048 are 1024 normalised Gaussian vectors and
        their negatives, from a per-image seed, the same at all scales.
    jvp_directions : int
        Jacobian–vector products of the prediction, on the first of the same directions; never more than
        directions / 2 are used. With exactly that, numerator and denominator share all pairs.
    noise_limit : float
        A rung whose floating-point noise exceeds this share of the measured energy is not valid.
    estimator : {"paper", "adaptive"}
        The paper's protocol, or ours: as many directions at each scale as its standard error needs, with a control
        variate; see `geoframe.geometry.controlled`. `directions` is the most at a scale then, `jvp_directions` unused.
    target_se : float
        Relative standard error of each ratio at which the adaptive estimator stops.

    Notes
    -----
    Nothing is clipped back to [0, 1]. Standard errors (ours) come from the antipodal pairs; see
    `geoframe.geometry.ratio.estimate_ratio`. Noise (the paper doesn't say how it estimates it) is
    measured: displacements of two pairs are repeated on a float64 copy of the encoder, rung by rung from
    the smallest; see `geoframe.geometry.noise.noise_fractions`. `derivative_gap` flags images that
    sit on a kink of Φ, where the prediction isn't the limit of the response.
    """

    version: ClassVar[str] = "2"
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 2
    outputs: ClassVar[Mapping[str, Output]] = {
        "ratio": Output(("scale",), long_name="response ratio r_η"),
        "ratio_se": Output(("scale",), long_name="standard error of the response ratio"),
        "response": Output(("scale",), units="squared feature L2 / η²", long_name="mean squared response m_η / η²"),
        "noise_fraction": Output(("scale",), long_name="floating-point noise over measured energy"),
        "valid": Output(("scale",), dtype="bool", long_name="noise within the limit and values finite"),
        "directions_used": Output(("scale",), dtype="int64", long_name="directions measured, both antipodes counted"),
        "prediction": Output(units="squared feature L2 / η²", long_name="linear prediction m̃_η / η²"),
        "prediction_se": Output(units="squared feature L2 / η²", long_name="standard error of the prediction"),
        "derivative_gap": Output(long_name="relative difference of derivative and one-sided differences at the image"),
    }

    scales: tuple[float, ...] = attrs.field(default=IMAGENET_SCALES, converter=_floats, validator=_check_scales)
    directions: int = attrs.field(default=2048, validator=[attrs.validators.instance_of(int), _check_directions])
    jvp_directions: int = attrs.field(
        default=256, validator=[attrs.validators.instance_of(int), attrs.validators.ge(2)]
    )
    noise_limit: float = attrs.field(default=0.05, converter=float, validator=attrs.validators.gt(0))
    estimator: Literal["paper", "adaptive"] = attrs.field(
        default="paper", validator=attrs.validators.in_(("paper", "adaptive"))
    )
    target_se: float = attrs.field(default=0.02, converter=float, validator=attrs.validators.gt(0))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.estimator == "adaptive" and self.directions < LEAST:
            raise ValueError(f"estimator='adaptive' needs directions={LEAST} or more, not {self.directions}")

    def default_name(self) -> str:
        """Return "ratio"."""
        return "ratio"

    @property
    def pairs(self) -> int:
        """Number of base directions, each used with both signs."""
        return self.directions // 2

    @property
    def jvps(self) -> int:
        """Number of Jacobian–vector products really used."""
        return min(self.jvp_directions, self.pairs)

    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Return the scales."""
        return {"scale": self.scales}

    def forward_passes(self) -> float:
        """Planned cost of one image: 17 · 2048 displacements and 256 Jacobian–vector products by default."""
        if self.estimator == "adaptive":
            pairs = min(self.pairs, PLANNED * max(0.5, (0.02 / self.target_se) ** 2))
            return float(len(self.scales) * 2 * pairs + 400)
        return float(len(self.scales) * self.directions + 3 * self.jvps)

    def timed(self) -> bool:
        """Only the adaptive estimator: the paper's has the same bits every time."""
        return self.estimator == "adaptive"

    def smoke(self) -> RatioProbe:
        """Return the same with 3 scales and 4 directions."""
        spread = (self.scales[0], self.scales[len(self.scales) // 2], self.scales[-1])
        least = 4 if self.estimator == "paper" else LEAST
        return self.evolve(scales=tuple(sorted(set(spread))), directions=least, jvp_directions=2)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure the images one by one; see `Probe.measure`."""
        import numpy as np

        rows = [self._measure_one(encoder, batch.images[i : i + 1], image_id) for i, image_id in enumerate(batch.ids)]
        return {name: np.stack([row[name] for row in rows]) for name in self.outputs}

    def _measure_one(self, encoder: LoadedEncoder, x: torch.Tensor, image_id: str) -> dict[str, Any]:
        import numpy as np

        from geoframe.geometry import noise

        found = self._estimate(encoder, x, image_id)
        energy = found.response * np.square(self.scales)
        meter = self._noise_meter(encoder, x, found.u)
        fractions = noise.noise_fractions(meter, self.scales, energy, found.level, self.noise_limit * NOISE_ENOUGH)
        valid = (fractions <= self.noise_limit) & np.isfinite(found.ratio) & (found.prediction > 0)
        return {
            "ratio": np.where(valid, found.ratio, np.nan),
            "ratio_se": np.where(valid, found.ratio_se, np.nan),
            "response": found.response,
            "noise_fraction": fractions,
            "valid": valid,
            "directions_used": found.directions,
            "prediction": found.prediction,
            "prediction_se": found.prediction_se,
            "derivative_gap": self._gap(encoder, x, found.u[:1]),
        }

    def _estimate(self, encoder: LoadedEncoder, x: torch.Tensor, image_id: str) -> Measured:
        from geoframe.ratio_estimators import ImageDirections, adaptive_estimate, paper_estimate

        encoder = self._fast(encoder)
        draw = ImageDirections(encoder, self.seed, image_id)
        if self.estimator == "adaptive":
            return adaptive_estimate(encoder, x, draw, self.scales, self.pairs, self.target_se)
        return paper_estimate(encoder, x, draw, self.scales, self.pairs, self.jvps)

    @staticmethod
    def _fast(encoder: LoadedEncoder) -> LoadedEncoder:
        """Return the encoder as it is measured: with convolutions and normalisations fused."""
        from geoframe.fusing import fused

        fast = encoder.derived(fused)
        fast.micro_batch, fast.derivative = encoder.micro_batch, encoder.derivative
        return fast

    def _noise_meter(self, encoder: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> Any:
        """Noise of what was measured, against the encoder in float64 as it was loaded."""
        from geoframe.geometry import noise

        used = min(NOISE_PAIRS, len(u))
        fast, fine = self._fast(encoder), encoder.double()
        if fine is None:
            return lambda scale: noise.noise_against_derivative(fast.features, x, u, scale, used)
        return lambda scale: noise.noise_against_float64(fast.features, fine.features, x, u, scale, used)

    @staticmethod
    def _gap(encoder: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> float:
        from geoframe.geometry.noise import derivative_gap

        fine = encoder.double()
        if fine is None:
            return float("nan")
        return derivative_gap(fine.features, x.to(fine.dtype), u.to(fine.dtype), GAP_STEP)
