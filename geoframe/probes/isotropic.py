"""`IsotropicGIProbe`: distances to the class boundary along random directions, at one relative precision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.probe import Batch, Output, Probe
from geoframe.probes.searching import count_field

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder

PURPOSE = "isotropic-gi"  # of the draws: other directions than those that responses are measured along
_RAYS = ("direction", "sign")


@attrs.frozen(kw_only=True)
class IsotropicGIProbe(Probe):
    """Generalization intervals in raw L2 along isotropic directions ±u, on steps of equal ratio.

    GI = sup{t : the class predicted at x is kept on [0, t)} as in *Neural Expansion*. Its A.4 takes steps of equal
    length, which are coarse for near boundaries and many for far ones. Here (ours) a step is a constant factor, and
    the step on which the class first changes is halved, so that near and far distances have the same relative error.

    Attributes
    ----------
    n_directions : int
        Base directions; each is used with both signs. None of them is a direction of a `RatioProbe` or
        `ResponseProbe`, whatever the seeds: what is measured here and there shares no sampling error.
    nearest, cap : float
        First step and last, raw-pixel L2.
    per_decade : int
        Steps in a factor of ten.
    halvings : int
        Of the step on which the class changes.

    Notes
    -----
    A distance is the last point known to hold the class; up to the boundary it is off by at most a factor
    10^(2^−halvings / per_decade). What leaves the class and returns within one step is overlooked, as in A.4. A
    distance that reaches the cap is censored. In a half-space at distance b of dimension d, half of the rays never
    cross, and a quarter have crossed by about 1.48·b·√d.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 8
    outputs: ClassVar[Mapping[str, Output]] = {
        "distance": Output(_RAYS, units="raw-pixel L2", long_name="distance to the change of class along ±u"),
        "censored": Output(_RAYS, dtype="bool", long_name="class kept up to the cap"),
        "predicted": Output(dtype="int64", long_name="class predicted at the image"),
    }

    n_directions: int = count_field(32, 2)
    nearest: float = attrs.field(default=0.05, converter=float, validator=attrs.validators.gt(0))
    cap: float = attrs.field(default=100.0, converter=float)
    per_decade: int = count_field(12)
    halvings: int = count_field(4, 0)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not self.nearest < self.cap < float("inf"):
            raise ValueError(f"cap={self.cap:g} must be a number above nearest={self.nearest:g}")

    def default_name(self) -> str:
        """Return "isotropic-gi"."""
        return "isotropic-gi"

    @property
    def steps(self) -> tuple[float, ...]:
        """Distances at which the class is looked at."""
        count = math.ceil(math.log10(self.cap / self.nearest) * self.per_decade)
        return tuple(self.nearest * (self.cap / self.nearest) ** (k / count) for k in range(count + 1))

    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Return the signs of a direction."""
        return {"sign": (1, -1)}

    def forward_passes(self) -> float:
        """Planned cost of one image, if no ray ended early."""
        return float(2 * self.n_directions * (len(self.steps) + self.halvings))

    def smoke(self) -> IsotropicGIProbe:
        """Return the same with two directions and coarse steps."""
        return self.evolve(n_directions=2, per_decade=2, halvings=1)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        import torch

        from geoframe.geometry.directions import unit_directions
        from geoframe.lines import RayTable, ladder_intervals, predicted

        x, held = batch.images, predicted(encoder, batch.images)
        u = unit_directions(encoder.input_shape, self.seed, batch.ids[0], 0, self.n_directions, PURPOSE).to(x)
        signed = torch.stack([u, -u], 1).flatten(0, 1)
        rays = RayTable(x.expand_as(signed), signed, held.expand(len(signed)))
        found = ladder_intervals(encoder, rays, torch.tensor(self.steps, dtype=torch.float64), self.halvings)
        return {
            "distance": found.gi.view(1, -1, 2),
            "censored": found.censored.view(1, -1, 2),
            "predicted": held,
        }
