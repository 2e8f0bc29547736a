"""`GIProbe`: generalization intervals along singular vectors or random directions (Neural Expansion, §3, §5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from geoframe.encoder import Shape
from geoframe.probe import Batch, Output
from geoframe.probes.searching import (
    DIRECTION,
    DOUBLE,
    SCALED,
    SINGULAR_VALUE,
    Layer,
    Scale,
    Search,
    SteppedProbe,
    basis_size,
    count_field,
    in_units,
    jacobian_passes,
    layer_field,
    length_of,
    scale_field,
    search_field,
    search_passes,
)
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder

RANDOM = 100  # random directions where none were asked for


@attrs.frozen(kw_only=True)
class GIProbe(SteppedProbe):
    """Generalization interval: how far an image moves along a direction before its class changes.

    GI(f, x₀, d) = sup{t : the class predicted at x₀ is kept on [0, t)}, by A.4's step search or exactly.

    Attributes
    ----------
    along : {"rsv", "random"}
        Right singular vectors of the input → penultimate Jacobian, or isotropic random unit directions.
    n_directions : int or None
        Along "rsv": None is the complete basis of input space, null directions included, by descending singular
        value; a number takes that many of it, evenly spaced (of inputs with more than 4096 pixels: the leading
        ones). Along "random": how many, 100 where None.
    layer : {"post", "pre"}
        Whose singular vectors, along "rsv": of the features as the last linear layer sees them, or before their
        activation; see `JacobianProbe`.
    step, cap : float
        δ and the largest t of A.4, in units of the scaled direction. `step` plays no role in an exact search.
    scale : {"diagonal", "unit"}
        Length of a direction: √d, the diagonal of the input box [0, 1]^d (§5.1's 56 in [−1, 1] space), so that
        GI = 1 means all the way across; or 1, so that GI is a distance.
    search : {"grid", "exact"}
        Exact is for chains of linear layers, convolutions, batch normalisation, pooling, ReLU and LeakyReLU: the true
        crossing, with no step size.

    Notes
    -----
    The sign of a singular vector, and the basis of the null space, are arbitrary: use both signs, and aggregate beyond
    the rank. `direction` is the index in the complete basis, as `component` of a `JacobianProbe`, also where some of it
    are measured: results align by it. An interval that reaches the cap is censored; means follow the cap.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 4
    outputs: ClassVar[Mapping[str, Output]] = {
        "direction": DIRECTION,
        "gi": Output(("direction",), units=SCALED, long_name="generalization interval, along +d"),
        "gi_negative": Output(("direction",), units=SCALED, long_name="generalization interval, along −d"),
        "distance": Output(("direction",), units="raw-pixel L2", long_name="distance to the class change, along +d"),
        "distance_negative": Output(
            ("direction",), units="raw-pixel L2", long_name="distance to the class change, along −d"
        ),
        "censored": Output(("direction",), dtype="bool", long_name="class kept up to the cap, along +d"),
        "censored_negative": Output(("direction",), dtype="bool", long_name="class kept up to the cap, along −d"),
        "singular_value": SINGULAR_VALUE,
        "predicted": Output(dtype="int64", long_name="class predicted at the image"),
    }

    along: Literal["rsv", "random"] = attrs.field(default="rsv", validator=attrs.validators.in_(("rsv", "random")))
    n_directions: int | None = count_field(None)
    layer: Layer = layer_field()
    scale: Scale = scale_field()
    search: Search = search_field()

    def default_name(self) -> str:
        """Return "gi"."""
        return "gi"

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs in the units of `scale`."""
        return in_units(self.outputs, self.scale)

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image, if no ray ended early."""
        ray = search_passes(self.search, self.step, self.cap)
        if self.along == "random":
            return 2 * (self.n_directions or RANDOM) * ray
        return 2 * basis_size(self.n_directions, shape) * ray + DOUBLE * jacobian_passes(shape)

    def smoke(self) -> GIProbe:
        """Return the same with four directions and a coarse step."""
        return self.evolve(n_directions=4, step=self.cap / 4)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.lines import RayTable, intervals, predicted

        x, image_id = batch.images, batch.ids[0]
        held = predicted(encoder, x)
        index, directions, values = self._directions(encoder, x, image_id)
        length = length_of(self.scale, x[0].numel())
        scaled = directions.to(x) * length
        ahead, behind = (
            intervals(encoder, RayTable(x.expand_as(v), v, held.expand(len(v))), self.search, self.step, self.cap)
            for v in (scaled, -scaled)
        )
        return {
            "direction": index,
            "gi": ahead.gi[None],
            "gi_negative": behind.gi[None],
            "distance": ahead.gi[None] * length,
            "distance_negative": behind.gi[None] * length,
            "censored": ahead.censored[None],
            "censored_negative": behind.censored[None],
            "singular_value": values[None],
            "predicted": held,
        }

    def _directions(
        self, encoder: LoadedEncoder, x: torch.Tensor, image_id: str
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Indices, unit directions (direction, channel, height, width), and singular values (NaN for random ones)."""
        import torch

        if self.along == "random":
            from geoframe.geometry.directions import unit_directions

            drawn = unit_directions(encoder.input_shape, self.seed, image_id, 0, self.n_directions or RANDOM)
            return torch.arange(len(drawn)), drawn, torch.full((len(drawn),), float("nan"), dtype=torch.float64)
        from geoframe.prelayer import at_layer
        from geoframe.spectra import chosen_at

        layer = at_layer(encoder, x, self.layer)
        chosen = chosen_at(type(self).__name__, layer, x, self.n_directions)
        return chosen.place, chosen.vectors.view(-1, *encoder.input_shape), chosen.values
