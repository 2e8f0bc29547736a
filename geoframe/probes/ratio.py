"""`RatioProbe`: the response ratio r_η(x) of Beyond Local Linearity, over a ladder of scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from geoframe.probe import Batch, Output, Probe

if TYPE_CHECKING:
    import numpy as np
    import torch

    from geoframe.loaded import LoadedEncoder
    from geoframe.precision import Ladder
    from geoframe.ratio_estimators import ImageDirections, Measured

IMAGENET_SCALES: tuple[float, ...] = tuple(10 ** (-2 + k / 4) for k in range(17))
CIFAR_SCALES: tuple[float, ...] = tuple(10 ** (-2.85 + k / 4) for k in range(17))

NOISE_PAIRS = 2  # antipodal pairs whose displacements are repeated in float64
LADDER_PAIRS = 4  # pairs that precisions are compared on
NOISE_ENOUGH = 0.1  # of the limit: below it, noise is carried along instead of measured
PILOT, PLANNED = 16, 40  # pairs a scale that are planned: at least (as in `geometry.adaptive`), and in addition for 2 %
LEAST = 2 * PILOT  # directions below which the adaptive estimator has too little to tell its error by
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


def _check_target(_probe: Any, field: Any, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(
            f"{field.name} must be above 0 and below 1, a relative standard error: 5 % is 0.05, not {value:g}"
        )


_WIDENED = Output(
    ("scale",), long_name="standard error of the response ratio, widened so that ±1.96 of it is a 95 % interval"
)


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
        variate; see `geoframe.geometry.controlled`. `directions` is the most at a scale then, in whole sixteens and 32
        at least, and `jvp_directions` unused.
    target_se : float
        Relative standard error of each ratio at which the adaptive estimator stops. The error is an estimate from the
        directions that were drawn: a strong feature that few of them reach (one in 20, say, where a response begins to
        rise) can stay unseen by the first 16 pairs, which then say too little; a smaller target draws more. What
        rounding adds (`noise_fraction`) is part of the adaptive `ratio_se`, and no number of directions lowers it.
    precision : {"float32", "ladder"}
        The paper's rule drops scales whose noise is too large in float32. A ladder measures them in float64, and, where
        that is faster, large scales in bfloat16: each scale in the cheapest precision whose error is below
        `noise_limit`, and below a quarter of `target_se` where the estimator is adaptive; see `geoframe.precision`.
    compile : bool
        Whether torch.compile is used for the finite responses in float32 (never for derivatives). It pays on a GPU.

    Notes
    -----
    Nothing is clipped back to [0, 1]. Standard errors (ours) come from the antipodal pairs; see
    `geoframe.geometry.ratio.estimate_ratio`. Noise (the paper doesn't say how it estimates it) is
    measured: displacements of two pairs are repeated on a float64 copy of the encoder, rung by rung from
    the smallest; see `geoframe.geometry.noise.noise_fractions`. `derivative_gap` flags images that
    sit on a kink of Φ, where the prediction isn't the limit of the response.
    """

    version: ClassVar[str] = "5"
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 2
    outputs: ClassVar[Mapping[str, Output]] = {
        "ratio": Output(("scale",), long_name="response ratio r_η"),
        "ratio_se": Output(("scale",), long_name="standard error of the response ratio"),
        "response": Output(("scale",), units="squared feature L2 / η²", long_name="mean squared response m_η / η²"),
        "noise_fraction": Output(("scale",), long_name="floating-point noise over measured energy"),
        "valid": Output(("scale",), dtype="bool", long_name="noise within the limit and values finite"),
        "precision": Output(("scale",), dtype="str", long_name="precision of the forward passes"),
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
    target_se: float = attrs.field(default=0.02, converter=float, validator=_check_target)
    precision: Literal["float32", "ladder"] = attrs.field(
        default="float32", validator=attrs.validators.in_(("float32", "ladder"))
    )

    compile: bool = attrs.field(default=False, validator=attrs.validators.instance_of(bool))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.estimator == "adaptive" and self.directions < LEAST:
            raise ValueError(f"estimator='adaptive' needs directions={LEAST} or more, not {self.directions}")

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs; `ratio_se` says what it is for this estimator."""
        return self.outputs if self.estimator == "paper" else {**self.outputs, "ratio_se": _WIDENED}

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
            pairs = min(self.pairs, PILOT + PLANNED * (0.02 / max(self.target_se, 1e-9)) ** 2)
            return float(len(self.scales) * 2 * pairs + 400)
        return float(len(self.scales) * self.directions + 3 * self.jvps)

    def timed(self) -> bool:
        """Not for the paper's estimator in float32, which has the same bits every time."""
        return self.estimator == "adaptive" or self.precision == "ladder"

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

        from geoframe.ratio_estimators import ImageDirections, first_block

        fast, draw = self._fast(encoder), ImageDirections(encoder, self.seed, image_id)
        u = first_block(fast, draw, self.pairs if self.estimator == "paper" else LEAST // 2)
        ladder = self._ladder(encoder, fast, x, u[:LADDER_PAIRS])
        found = self._estimate(fast, ladder, x, draw)
        fractions = self._noise_fractions(encoder, fast, ladder, x, u, found)
        valid = (fractions <= self.noise_limit) & np.isfinite(found.ratio) & (found.prediction > 0)
        ratio = np.where(valid, found.ratio, np.nan)
        rounding = fractions if self.estimator == "adaptive" else ladder.rounding()
        return {
            "ratio": ratio,
            "ratio_se": np.where(valid, np.hypot(found.ratio_se, rounding * ratio), np.nan),
            "response": found.response,
            "noise_fraction": fractions,
            "valid": valid,
            "precision": np.array(ladder.precisions, dtype=object),
            "directions_used": found.directions,
            "prediction": found.prediction,
            "prediction_se": found.prediction_se,
            "derivative_gap": self._gap(encoder, x, u[:1]),
        }

    @staticmethod
    def _fast(encoder: LoadedEncoder) -> LoadedEncoder:
        """Return the encoder as it is measured: with convolutions and normalisations fused."""
        from geoframe.fusing import fused
        from geoframe.settings import FIXED

        fast = encoder.derived(fused)
        for name in FIXED:
            setattr(fast, name, getattr(encoder, name))
        return fast

    def _ladder(self, encoder: LoadedEncoder, fast: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> Ladder:
        from geoframe import precision

        if self.compile:
            from geoframe.compiling import compiled

            fast = fast.derived(compiled)
        if self.precision == "float32":
            return precision.single(fast, x, self.scales)
        limit = self.noise_limit if self.estimator == "paper" else min(self.noise_limit, self.target_se / 4)
        return precision.choose_ladder(encoder, fast, x, u, self.scales, limit)

    def _estimate(self, fast: LoadedEncoder, ladder: Ladder, x: torch.Tensor, draw: ImageDirections) -> Measured:
        from geoframe.ratio_estimators import adaptive_estimate, paper_estimate

        if self.estimator == "adaptive":
            return adaptive_estimate(fast, ladder, x, draw, self.scales, self.pairs, self.target_se)
        return paper_estimate(fast, ladder, x, draw, self.scales, self.pairs, self.jvps)

    def _noise_fractions(
        self,
        encoder: LoadedEncoder,
        fast: LoadedEncoder,
        ladder: Ladder,
        x: torch.Tensor,
        u: torch.Tensor,
        found: Measured,
    ) -> np.ndarray:
        """Noise of what was measured, against the encoder in float64 as it was loaded; as the ladder has it else."""
        import numpy as np

        from geoframe.geometry import noise
        from geoframe.geometry.response import Displacements

        used, fine, moves = min(NOISE_PAIRS, len(u)), encoder.double(), ladder.moves["float32"]
        exact = None if fine is None else Displacements(fine.features, x.to(fine.dtype))

        def meter(scale: float) -> float:
            if exact is None:
                return noise.noise_against_derivative(moves, fast.features, u, scale, used)
            return noise.noise_against_float64(moves, exact, u, scale, used)

        fractions = np.array([ladder.errors.get(k, np.nan) for k in range(len(self.scales))])
        rest = [k for k in range(len(self.scales)) if k not in ladder.errors]
        energy, enough = found.response * np.square(self.scales), self.noise_limit * NOISE_ENOUGH
        scales = [self.scales[k] for k in rest]
        fractions[rest] = noise.noise_fractions(meter, scales, energy[rest], found.level[rest], enough)
        return fractions

    @staticmethod
    def _gap(encoder: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> float:
        from geoframe.geometry.noise import derivative_gap

        fine = encoder.double()
        if fine is None:
            return float("nan")
        return derivative_gap(fine.features, x.to(fine.dtype), u.to(fine.dtype), GAP_STEP)
