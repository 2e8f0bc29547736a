"""`JacobianProbe`: singular values of the input → penultimate Jacobian (Neural Expansion, §3.1, A.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.encoder import Shape
from geoframe.probe import Batch, Output, Probe
from geoframe.probes.searching import DOUBLE, Layer, count_field, jacobian_passes, layer_field
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

PER_VALUE = 20.0  # passes that an iterative method is planned to need for each value


def _check_threshold(_probe: Any, field: Any, value: Any) -> None:
    if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
        raise ValueError(f"{field.name}={value!r:.80} should be a number, 0 or more")


def _check_share(_probe: Any, field: Any, value: float) -> None:
    if not 0 <= value < 1:  # no value is above the largest
        raise ValueError(f"{field.name}={value!r:.80} should be a share of the largest value, from 0 to below 1")


@attrs.frozen(kw_only=True)
class JacobianProbe(Probe):
    """Singular values of the Jacobian of the features at each image, and their number.

    J itself is decomposed in float64, never its Gram matrix; in float32 where an encoder can't run in float64.

    Attributes
    ----------
    top : int or None
        None takes all of the min(features, pixels) values. A number takes that many of the largest by an iterative
        method (Lanczos, scipy's) on products with J and Jᵀ: J is never formed. For large inputs.
    layer : {"post", "pre"}
        Features as the last linear layer sees them, or the input of the activation that makes them. The paper's "512
        non-zero singular values" (§5.1.2) are those before the ReLU: after it, units that are off have no gradient.
    rank_threshold : float or None
        A value counts for the rank if it is above this. None is numpy's rule (`numpy.linalg.matrix_rank`): the
        largest value × the larger side of J × the resolution of J's precision.
    significant : float
        A value is significant if it is above this share of the largest. The paper's "10–15 significantly non-zero"
        (§3.1) comes without a threshold: this one is ours.

    Notes
    -----
    With `top`, rank and number of significant values are of those computed: as large as `top`, they are lower bounds.
    """

    version: ClassVar[str] = "1"
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 8
    outputs: ClassVar[Mapping[str, Output]] = {
        "singular_value": Output(
            ("component",), units="feature L2 / raw-pixel L2", long_name="singular value of the features' Jacobian"
        ),
        "rank": Output(dtype="int64", long_name="number of singular values above the rank threshold"),
        "n_significant": Output(dtype="int64", long_name="number of singular values above a share of the largest"),
    }

    top: int | None = count_field(None)
    layer: Layer = layer_field()
    rank_threshold: float | None = attrs.field(default=None, validator=_check_threshold)
    significant: float = attrs.field(default=0.1, converter=float, validator=_check_share)

    def default_name(self) -> str:
        """Return "jacobian"."""
        return "jacobian"

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image."""
        return DOUBLE * (jacobian_passes(shape) if self.top is None else PER_VALUE * self.top)

    def smoke(self) -> JacobianProbe:
        """Return the same with the two largest values."""
        return self.evolve(top=2)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.geometry.spectrum import rank_threshold
        from geoframe.prelayer import at_layer
        from geoframe.spectra import leading_at, spectrum_at

        x = batch.images
        encoder = at_layer(encoder, x, self.layer)
        values = spectrum_at(encoder, x).values if self.top is None else leading_at(encoder, x, self.top)[1]
        threshold = self.rank_threshold
        if threshold is None:
            fine = encoder.double() or encoder
            larger = max(fine.features(x.to(fine.dtype)).shape[1], x[0].numel())
            threshold = rank_threshold(values, larger, fine.dtype)
        return {
            "singular_value": values[None],
            "rank": (values > threshold).sum()[None],
            "n_significant": (values > self.significant * values[0]).sum()[None],
        }
