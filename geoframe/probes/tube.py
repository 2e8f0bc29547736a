"""`TubeProbe`: how wide is the region around covered rays? (Neural Expansion, F.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.probe import Batch, Output
from geoframe.probes.searching import (
    REFERENCE,
    REFERENCE_ID,
    Search,
    SteppedProbe,
    count_field,
    search_field,
    search_passes,
)
from geoframe.probeset import ProbeSet
from geoframe.spec import unkeyed

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder
    from geoframe.references import References


TRIES = 10  # rays tried for each one that is asked for


@attrs.frozen(kw_only=True)
class TubeProbe(SteppedProbe):
    """Radius of the same-class tube around covered rays, as a fraction of the ray's hop (F.3).

    Rays run from reference images to test images of the class predicted for both labels and are covered (GI ≥ 1);
    they are found by a seeded search over test images and, for each, the reference images of its predicted
    class. At evenly spaced points, both ends included, directions exactly orthogonal to the ray are searched for
    the first change of class.

    Attributes
    ----------
    reference : ProbeSet or None
        Labelled images. None: those that a `TrainedEncoder` was trained on.
    rays, points, directions : int
        Rays, points a ray, directions a point; 100, 5 and 20 in the paper.
    step, cap : float
        δ and the largest radius, in hops.
    search : {"grid", "exact"}
        See `GIProbe`.
    allow_none : bool
        Whether finding no covered ray at all is a result, all NaN, and no error: for networks that know nothing.

    Notes
    -----
    The paper's Table 6 doesn't say how it aggregates: all radii are stored, with each ray's minimum and median. Where
    fewer covered rays are found than asked for, the rest is NaN, with image −1; at most `10 · rays` are tried (ours).
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    per: ClassVar[Literal["image", "set"]] = "set"
    outputs: ClassVar[Mapping[str, Output]] = {
        "radius": Output(("ray", "point", "direction"), units="hop", long_name="tube radius over hop distance"),
        "censored": Output(("ray", "point", "direction"), dtype="bool", long_name="class kept up to the cap"),
        "minimum": Output(("ray",), units="hop", long_name="least radius of the ray"),
        "median": Output(("ray",), units="hop", long_name="median radius of the ray"),
        "hop": Output(("ray",), units="raw-pixel L2", long_name="length of the ray"),
        "test_image": Output(("ray",), dtype="int64", long_name="test image, as an index into image_id (−1: none)"),
        "reference": Output(("ray",), dtype="int64", long_name=REFERENCE),
        "reference_id": REFERENCE_ID,
    }

    reference: ProbeSet | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ProbeSet))
    )
    rays: int = count_field(100)
    points: int = count_field(5)
    directions: int = count_field(20)
    search: Search = search_field()
    allow_none: bool = unkeyed(default=False)

    def default_name(self) -> str:
        """Return "tube"."""
        return "tube"

    def coords(self) -> Mapping[str, Any]:
        """Return the points' places along the ray: 0 at the reference image, 1 at the test image."""
        return {"point": np.linspace(0, 1, self.points)}

    def forward_passes(self) -> float:
        """Planned cost of the set, if no ray ended early and each one that was tried was covered."""
        covered = search_passes(self.search, min(self.step, 1.0), 1.0)
        return self.rays * (covered + self._tube_passes())

    def _tube_passes(self) -> float:
        return self.points * self.directions * search_passes(self.search, self.step, self.cap)

    def smoke(self) -> TubeProbe:
        """Return the same with two rays from 8×8 digits, which need no download, and a coarse step."""
        from geoframe.probesets.digits import Digits

        few = {"rays": 2, "points": 2, "directions": 2, "step": self.cap / 4}
        return self.evolve(reference=Digits(split="train"), allow_none=True, **few)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure the set; see `Probe.measure`."""
        from geoframe.references import references_for

        if batch.images[0].numel() < 2:
            raise BadInput("TubeProbe: an image of a single pixel has no direction orthogonal to a ray")
        references = references_for(type(self).__name__, self.reference, encoder)
        shape = (self.rays, self.points, self.directions)
        radius, censored = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        hop = np.full(self.rays, np.nan)
        ends = np.full((2, self.rays), -1, dtype=np.int64)
        for ray, (test, reference) in enumerate(self._covered(encoder, batch, references)):
            start, end = references.images.pixels[reference].to(encoder.device), batch.images[test]
            hop[ray] = float((end.double() - start.double()).norm())
            ends[:, ray] = test, reference
            with encoder.counted_as(self._tube_passes()):
                radius[ray], censored[ray] = self._tube(encoder, start, end, batch.rng[test])
        if (ends < 0).all() and not self.allow_none:
            origin = getattr(self.reference or encoder.training_set, "label", "")
            raise BadInput(f"TubeProbe: no covered ray from {origin!r} was found: there is no tube")
        return {
            "radius": radius,
            "censored": censored,
            "minimum": radius.min((1, 2)),
            "median": np.median(radius, (1, 2)),
            "hop": hop,
            "test_image": ends[0],
            "reference": ends[1],
            "reference_id": references.ids,
        }

    def _covered(self, encoder: LoadedEncoder, batch: Batch, references: References) -> Iterator[tuple[int, int]]:
        """Yield covered rays, as (test image, reference image): one a test image in turn, until there are enough."""
        import torch

        from geoframe.lines import RayTable, intervals, predicted

        held = predicted(encoder, batch.images)
        found = 0
        for test, reference in _candidates(self, held.tolist(), batch, references):
            start, end = references.images.pixels[reference].to(batch.images), batch.images[test]
            ray = RayTable(start[None], (end - start)[None], held[test : test + 1])
            gi = intervals(encoder, ray, self.search, min(self.step, 1.0), 1.0).gi
            if float(gi[0]) >= 1 and not torch.equal(start, end):
                found += 1
                yield test, reference
            if found == self.rays:
                return

    def _tube(
        self, encoder: LoadedEncoder, start: torch.Tensor, end: torch.Tensor, rng: torch.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Radii (point, direction) around one ray, in hops."""
        import torch

        from geoframe.geometry.directions import orthogonal_directions
        from geoframe.lines import RayTable, intervals, predicted

        along = (end - start).flatten().double().cpu()
        across = orthogonal_directions(along, self.points * self.directions, rng) * along.norm()
        v = across.to(start).view(-1, *start.shape)
        where = torch.linspace(0, 1, self.points, dtype=torch.float64).repeat_interleave(self.directions)
        origins = torch.addcmul(start, (end - start), where.to(start).view(-1, 1, 1, 1))
        held = predicted(encoder, end[None]).expand(len(v))
        found = intervals(encoder, RayTable(origins, v, held), self.search, self.step, self.cap)
        shape = (self.points, self.directions)
        return found.gi.numpy().reshape(shape), found.censored.numpy().reshape(shape)


def _candidates(probe: TubeProbe, held: list[int], batch: Batch, references: References) -> Iterator[tuple[int, int]]:
    """Yield rays to try: test images in a seeded order, again and again, each time with a new reference image."""
    order = np.random.default_rng(probe.seed).permutation(len(held)).tolist()
    pools = {i: references.drawn(held[i], TRIES * probe.rays, batch.rng[i]).tolist() for i in order}
    rounds = ((i, pools[i][k]) for k in range(TRIES * probe.rays) for i in order if k < len(pools[i]))
    return islice(rounds, TRIES * probe.rays)
