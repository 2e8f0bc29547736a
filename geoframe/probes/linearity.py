"""`LinearityProbe`: how far an encoder stays like its linearisation along singular vectors (§5.1.3, fig. 2b)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from geoframe.encoder import Shape
from geoframe.errors import BadInput, EncoderRefused
from geoframe.probe import Batch, Output
from geoframe.probes.searching import (
    DIRECTION,
    SCALED,
    SINGULAR_VALUE,
    Layer,
    Scale,
    SteppedProbe,
    count_field,
    in_units,
    layer_field,
    length_of,
    linearised_passes,
    scale_field,
)
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder


def _check_threshold(_probe: Any, _field: Any, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"threshold={value:g} should be a cosine between 0 and 1")


@attrs.frozen(kw_only=True)
class LinearityProbe(SteppedProbe):
    """Largest α up to which an encoder and its linearisation point the same way, along right singular vectors.

    Compared are φ(x₀ + αd) and φ(x₀) + αJ_φ d = φ(x₀) + αLσᵢuᵢ, the offset φ(x₀) included, for d = ±L vᵢ; in steps
    from α = 0, up to the first one whose cosine similarity is below the threshold. `alpha` is the step before it. In
    float64 where the encoder can.

    Attributes
    ----------
    threshold : float
        Least cosine similarity.
    reading : {"features", "logits"}
        What is compared: penultimate features (§5.1.3), or logits with f(x₀) + αWσᵢuᵢ (A.4). The paper gives both.
    n_directions : int or None
        That many right singular vectors, evenly spaced in the complete basis by descending value (the leading ones
        where an input has more than 4096 pixels); None takes the complete basis, null directions included.
    layer : {"post", "pre"}
        Whose singular vectors, and which features are compared: as the last linear layer sees them, or before their
        activation; see `JacobianProbe`.
    step, cap : float
        Resolution and largest α (both ours: the paper gives none), in units of the scaled direction.
    scale : {"diagonal", "unit"}
        L: the unit of α. √d, the diagonal of the input box, or 1, raw-pixel L2; see `GIProbe`.

    Notes
    -----
    The sign of a singular vector is arbitrary: use both signs. An α that reaches the cap is censored. The similarity
    of two zero vectors counts as 1, that of a zero vector and another one as 0.
    """

    version: ClassVar[str] = "2"
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 4
    outputs: ClassVar[Mapping[str, Output]] = {
        "direction": DIRECTION,
        "alpha": Output(("direction",), units=SCALED, long_name="linear up to this distance, along +v"),
        "alpha_negative": Output(("direction",), units=SCALED, long_name="linear up to this distance, along −v"),
        "distance": Output(("direction",), units="raw-pixel L2", long_name="the distance along +v in raw pixels"),
        "distance_negative": Output(
            ("direction",), units="raw-pixel L2", long_name="the distance along −v in raw pixels"
        ),
        "censored": Output(("direction",), dtype="bool", long_name="linear up to the cap, along +v"),
        "censored_negative": Output(("direction",), dtype="bool", long_name="linear up to the cap, along −v"),
        "singular_value": SINGULAR_VALUE,
    }

    threshold: float = attrs.field(default=0.95, converter=float, validator=_check_threshold)
    reading: Literal["features", "logits"] = attrs.field(
        default="features", validator=attrs.validators.in_(("features", "logits"))
    )
    n_directions: int | None = count_field(None)
    layer: Layer = layer_field()
    scale: Scale = scale_field()

    def default_name(self) -> str:
        """Return "linearity"."""
        return "linearity"

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs in the units of `scale`."""
        return in_units(self.outputs, self.scale)

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image, if no ray ended early."""
        return linearised_passes(self.n_directions, self.step, self.cap, shape)

    def smoke(self) -> LinearityProbe:
        """Return the same with four directions and a coarse step."""
        return self.evolve(n_directions=4, step=self.cap / 4)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.prelayer import at_layer
        from geoframe.spectra import chosen_at

        name = type(self).__name__
        if self.reading == "logits" and encoder.head is None:
            raise BadInput(f"{name}: logits are to be read, but encoder {encoder.label!r} has no head: give it one")
        features = at_layer(encoder, batch.images, self.layer)
        index, vectors, values = chosen_at(name, features, batch.images, self.n_directions)
        length = length_of(self.scale, batch.images[0].numel())
        directions = vectors.view(-1, *encoder.input_shape) * length
        alpha, censored = self._search(encoder, features, batch.images, directions)
        return {
            "direction": index,
            "alpha": alpha[:1],
            "alpha_negative": alpha[1:],
            "distance": alpha[:1] * length,
            "distance_negative": alpha[1:] * length,
            "censored": censored[:1],
            "censored_negative": censored[1:],
            "singular_value": values[None],
        }

    def _search(
        self, encoder: LoadedEncoder, features: LoadedEncoder, x: torch.Tensor, directions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """α and whether it is censored, (sign, direction)."""
        import torch

        from geoframe.classifier import fine_classifier
        from geoframe.geometry.linearity import first_unlike
        from geoframe.geometry.rays import NotFinite, steps_to
        from geoframe.logit_lines import changes_along

        fine = fine_classifier(encoder) if self.reading == "logits" else features.double() or features
        phi = fine.logits if self.reading == "logits" else fine.features
        x, directions = x.to(fine.dtype), directions.to(x.device, fine.dtype)
        changes = changes_along(phi, x, directions, encoder.micro_batch)
        steps = steps_to(self.cap, self.step)
        signed = torch.cat([directions, -directions]), torch.cat([changes, -changes])
        try:
            first = first_unlike(phi, x, *signed, steps.to(x), self.threshold, encoder.micro_batch).cpu()
        except NotFinite as error:
            raise EncoderRefused(f"encoder {encoder.label!r}: {error}: check its weights and normalisation") from error
        alpha = steps[(first - 1).clamp(min=0)]
        return alpha.view(2, -1), (first == len(steps)).view(2, -1)
