"""`LocalComplexityProbe`: activation boundaries that cross a small neighbourhood of an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import geoframe as gf

if TYPE_CHECKING:
    import torch


@attrs.frozen(kw_only=True)
class LocalComplexityProbe(gf.Probe):
    """Local complexity after Humayun, Balestriero and Baraniuk (2024) [1]_.

    A cross-polytope of radius r, with a random orthonormal frame, is centred at the image. Its vertices go
    through the network, and for each layer the neurons are counted whose pre-activation doesn't have the
    same sign at all vertices: the boundary between two linear regions of that neuron crosses the
    polytope. Below the first layer this is exact; deeper it is their approximation, since the layers
    before bend the polytope.

    Attributes
    ----------
    radius : float
        r, L2 in raw [0, 1] pixels, before the encoder's normalisation.
    n_directions : int
        Vectors in the frame, P; the polytope has 2 P vertices. At most the dimension of the input.

    Notes
    -----
    A layer is one call of an `nn.ReLU`, `nn.LeakyReLU` or `nn.ReLU6` module within Φ, numbered in the order
    of the calls; a module that is called several times counts each time. `nn.ReLU6` has two boundaries, at 0 and at 6.
    A functional `torch.relu(x)` isn't seen, nor is a smooth activation; an encoder without any module that can be
    counted is refused. The frame is keyed by the seed and the image's id. Counting leaky and capped units, and
    the defaults, are ours; the method is the paper's.

    References
    ----------
    .. [1] A. I. Humayun, R. Balestriero, R. Baraniuk. Deep Networks Always Grok and Here is Why. ICML 2024.
    """

    version: ClassVar[str] = "1"
    images_per_call: ClassVar[int | None] = 1
    outputs: ClassVar[Mapping[str, gf.Output]] = {
        "complexity": gf.Output(
            ("layer",), units="boundaries", dtype="int64", long_name="activation boundaries crossed, by layer"
        ),
        "total": gf.Output(units="boundaries", dtype="int64", long_name="activation boundaries crossed"),
    }

    radius: float = attrs.field(default=0.005, converter=float, validator=attrs.validators.gt(0))
    n_directions: int = attrs.field(default=25, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)])

    def default_name(self) -> str:
        """Return "local-complexity"."""
        return "local-complexity"

    def forward_passes(self) -> float:
        """Planned cost of one image: one pass a vertex."""
        return 2.0 * self.n_directions

    def smoke(self) -> LocalComplexityProbe:
        """Return the same with two directions."""
        return self.evolve(n_directions=min(2, self.n_directions))

    def measure(self, encoder: gf.LoadedEncoder, batch: gf.Batch) -> Mapping[str, Any]:
        """Measure the images one by one; see `geoframe.Probe.measure`."""
        import torch

        counts = torch.tensor(
            [self._count(encoder, x, rng) for x, rng in zip(batch.images, batch.rng, strict=True)], dtype=torch.int64
        )
        return {"complexity": counts, "total": counts.sum(dim=1)}

    def _count(self, encoder: gf.LoadedEncoder, x: torch.Tensor, rng: torch.Generator) -> list[int]:
        from geoframe_local_complexity.boundaries import watched
        from geoframe_local_complexity.polytope import orthonormal_frame, vertices

        if self.n_directions > x.numel():
            raise gf.BadInput(
                f"LocalComplexityProbe: {self.n_directions} orthogonal directions don't fit into {x.numel()} "
                f"dimensions of encoder {encoder.label!r}: lower n_directions"
            )
        points = vertices(x, orthonormal_frame(x.numel(), self.n_directions, rng), self.radius)
        with watched(encoder.network) as sides:
            for chunk in _equal_chunks(points, encoder.micro_batch):
                sides.start_pass()
                encoder.features(chunk)
        counts = sides.crossed()
        if not counts:
            raise gf.EncoderRefused(
                f"encoder {encoder.label!r} calls no nn.ReLU, nn.LeakyReLU or nn.ReLU6 module, so there are no "
                "boundaries to count: use modules in place of torch.relu, or leave this encoder out"
            )
        return counts


def _equal_chunks(points: torch.Tensor, size: int) -> list[torch.Tensor]:
    """Split into chunks of one size; the last repeats its last vertex, which changes no count."""
    import torch

    size = max(1, min(size, len(points)))
    missing = -len(points) % size
    padded = torch.cat([points, points[-1:].expand(missing, *points.shape[1:])])
    return [padded[start : start + size] for start in range(0, len(padded), size)]
