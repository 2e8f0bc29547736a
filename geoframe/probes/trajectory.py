"""`TrajectoryProbe`: class and logits along train → test paths (Neural Expansion, appendix G)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from geoframe.encoder import Shape
from geoframe.probe import Batch, Output, Probe
from geoframe.probes.searching import REFERENCE, REFERENCE_ID, count_field, pool_size
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import Images


@attrs.frozen(kw_only=True)
class TrajectoryProbe(Probe):
    """Class and logits at evenly spaced points from reference images to a test image.

    The reference images are of the class predicted for the test image, as in coverage.

    Attributes
    ----------
    reference : ProbeSet or None
        Labelled images. None: those that a `TrainedEncoder` was trained on.
    n_reference : int
        Paths a test image; fewer where the class has no more reference images, and the rest is NaN, with class −1.
    points : int
        Points a path, both ends included: 0 is the reference image, 1 the test image.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 16
    outputs: ClassVar[Mapping[str, Output]] = {
        "path_class": Output(("ray", "point"), dtype="int64", long_name="class along the path"),
        "path_logits": Output(("ray", "point", "class"), units="logit", long_name="logits along the path"),
        "changes": Output(("ray",), dtype="int64", long_name="number of class changes along the path"),
        "hop": Output(("ray",), units="raw-pixel L2", long_name="length of the path"),
        "reference": Output(("ray",), dtype="int64", long_name=REFERENCE),
        "rays": Output(dtype="int64", long_name="number of paths"),
        "predicted": Output(dtype="int64", long_name="class predicted for the test image"),
        "correct": Output(dtype="bool", long_name="the prediction is the label (False without label)"),
        "reference_id": REFERENCE_ID,
    }

    reference: ProbeSet | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ProbeSet))
    )
    n_reference: int = count_field(5)
    points: int = count_field(101, least=2)

    def default_name(self) -> str:
        """Return "trajectory"."""
        return "trajectory"

    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Return the points' places along the path."""
        return {"point": np.linspace(0, 1, self.points).tolist()}

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image."""
        return 1 + pool_size(self.reference or training_set, self.n_reference) * self.points

    def smoke(self) -> TrajectoryProbe:
        """Return the same with two paths from 8×8 digits, which need no download, of three points."""
        from geoframe.probesets.digits import Digits

        return self.evolve(reference=Digits(split="train"), n_reference=2, points=3)

    def check_inputs(self, encoder: LoadedEncoder, images: Images) -> None:
        """Refuse labels that are all no classes of the encoder."""
        from geoframe.class_checks import check_labels

        check_labels(type(self).__name__, encoder, images)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.references import same_class

        references, held, chosen = same_class(type(self).__name__, self.reference, encoder, batch, self.n_reference)
        logits = self._logits(encoder, batch, references.images.pixels[chosen])
        classes, n = logits.argmax(2), len(chosen)
        hops = (references.images.pixels[chosen].double() - batch.images.cpu().double()).flatten(1).norm(dim=1)
        return {
            "path_class": self._padded(classes, -1),
            "path_logits": self._padded(logits, np.nan),
            "changes": self._padded((classes[:, 1:] != classes[:, :-1]).sum(1), -1),
            "hop": self._padded(hops.numpy(), np.nan),
            "reference": self._padded(chosen.numpy(), -1),
            "rays": [n],
            "predicted": held,
            "correct": held == batch.labels,
            "reference_id": references.ids,
        }

    def _logits(self, encoder: LoadedEncoder, batch: Batch, others: Any) -> np.ndarray:
        """Logits (ray, point, class); walked from the test image, so that its end is exact."""
        import torch

        from geoframe.logit_lines import logits_along

        x = batch.images
        if not len(others):
            return np.empty((0, self.points, encoder.logits(x).shape[1]))
        back = torch.from_numpy(1 - np.linspace(0, 1, self.points)).to(x)
        return logits_along(encoder, x, others.to(x) - x, back).double().cpu().numpy()

    def _padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """With a row for each path that was asked for, and the image's dimension in front."""
        rows = np.full((1, self.n_reference, *values.shape[1:]), fill, dtype=values.dtype)
        rows[0, : len(values)] = values
        return rows
