"""`LocalGeometryProbe`: what an image's derivatives alone say about the boundary and the response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.encoder import Shape
from geoframe.probe import Batch, Output, Probe
from geoframe.probes.searching import CLASSES, DOUBLE, FEATURES, JVP_PASSES, count_field
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder


@attrs.frozen(kw_only=True)
class LocalGeometryProbe(Probe):
    """Margin, trace of the pullback metric, and the distance at which the linearised classifier changes class.

    For the class y predicted at x and q_j = f^y − f^j, the linearised margin of class j is 0 at distance
    q_j / ‖J_φᵀ(W_y − W_j)‖ along its gradient; along a random direction, of which a step of length η goes about η/√d
    along any given one, at about

        η_J = min_j q_j √d / ‖J_φᵀ(W_y − W_j)‖.

    It is the null model of whatever finite measurement claims to know the boundary (ours; neither paper has it).

    Attributes
    ----------
    directions : int or None
        None takes the trace exactly, one pullback a feature. A number estimates it, as *Beyond Local Linearity* its
        linear prediction, along so many random unit directions: d · mean ‖J_φ u‖². For networks of many features.

    Notes
    -----
    J_φᵀ(W_y − W_j) is the gradient of f^y − f^j, so that the head need not be one matrix. All in float64 where the
    encoder can. In piecewise-linear networks all is exact up to the nearest kink.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 16
    outputs: ClassVar[Mapping[str, Output]] = {
        "q0": Output(units="logit", long_name="margin of the predicted class"),
        "eta_j": Output(
            units="raw-pixel L2", long_name="η_J, scale at which random steps cross the linearised boundary"
        ),
        "b_j": Output(units="raw-pixel L2", long_name="b_J = η_J / √d, distance to the nearest linearised boundary"),
        "rival": Output(dtype="int64", long_name="class whose linearised boundary is nearest"),
        "trace": Output(units="(feature L2 / raw-pixel L2)²", long_name="tr G of the features"),
        "norm": Output(units="raw-pixel L2", long_name="‖x‖"),
        "predicted": Output(dtype="int64", long_name="class predicted at the image"),
    }

    directions: int | None = count_field(None)

    def default_name(self) -> str:
        """Return "local-geometry"."""
        return "local-geometry"

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image; neither the number of features nor of classes is known before."""
        return DOUBLE * JVP_PASSES * ((self.directions or FEATURES) + CLASSES)

    def smoke(self) -> LocalGeometryProbe:
        """Return the same with the trace along two directions."""
        return self.evolve(directions=2)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.classifier import fine_classifier
        from geoframe.geometry.local import linear_crossings
        from geoframe.lines import predicted

        predicted(encoder, batch.images)  # refuses a single class, and NaN
        fine = fine_classifier(encoder)
        x = batch.images.to(fine.dtype)
        logits = fine.logits(x)[0]
        y = int(logits.argmax())
        size = max(1, encoder.micro_batch // 4)
        distances = linear_crossings(fine.logits, x, logits, y, size)
        return {
            "q0": [float((logits[y] - logits[distances.classes]).min())],
            "eta_j": [float(distances.values.min()) * x[0].numel() ** 0.5],
            "b_j": [float(distances.values.min())],
            "rival": [int(distances.classes[int(distances.values.argmin())])],
            "trace": [self._trace(fine, x, batch.ids[0], size)],
            "norm": [float(x.double().norm())],
            "predicted": [y],
        }

    def _trace(self, fine: LoadedEncoder, x: torch.Tensor, image_id: str, size: int) -> float:
        from geoframe.geometry.directions import unit_directions
        from geoframe.geometry.local import squared_jacobian
        from geoframe.geometry.pushforward import squared_norms
        from geoframe.logit_lines import changes_along

        if self.directions is None:
            return squared_jacobian(fine.features, x, size)
        u = unit_directions(fine.input_shape, self.seed, image_id, 0, self.directions).to(x)
        energy = squared_norms(changes_along(fine.features, x, u, 2 * size)).mean()
        return float(energy) * x[0].numel()
