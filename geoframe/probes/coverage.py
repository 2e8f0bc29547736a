"""`RayCoverageProbe`: do rays between reference and test images keep their class? (Neural Expansion, §5.3, F.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import numpy as np

from geoframe.attacks import Attack
from geoframe.encoder import Shape
from geoframe.errors import BadInput
from geoframe.probe import Batch, Output
from geoframe.probes import attacked
from geoframe.probes.searching import (
    REFERENCE,
    REFERENCE_ID,
    Search,
    SteppedProbe,
    count_field,
    pool_size,
    search_field,
    search_passes,
)
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import Images
    from geoframe.references import References

WRONG_POOLS = 3  # F.1: rays go to three random wrong classes


@attrs.frozen(kw_only=True)
class RayCoverageProbe(SteppedProbe):
    """Share of rays between reference images and a test image on which the test image's predicted class is kept.

    `same`: rays start at reference images of the class predicted for the test image and run to it (§5.3).
    `different`: rays start at the test image and run to reference images of up to three random other classes (F.1).
    Either way the class held is the one predicted for the test image, and a ray is covered when GI ≥ 1. A ray whose
    start already has another class has GI 0.

    Attributes
    ----------
    reference : ProbeSet or None
        Labelled images; pools are by their labels. None: those that a `TrainedEncoder` was trained on.
    n_reference : int or None
        Rays a pool, drawn for each test image; None takes the whole pool.
    classes : {"same", "different"}
        Which pools.
    step, cap : float
        δ and the largest t of A.4, in hops from start to end; t = 1 is always tested.
    search : {"grid", "exact"}
        See `GIProbe`.
    attack : Attack or None
        Moves each test image before anything is measured (I.3); `predicted`, `correct` and the pools are then those of
        the attacked image. Its label is attacked; the predicted class where there is no label of the encoder.

    Notes
    -----
    Coverage doesn't depend on a ray's orientation, since the class is held on the whole segment. Uncovered rays are
    split (ours, after H.1): those that start in another class, and those that leave the class and come back
    (`reentry`; of `different` rays, those that leave before the end and end in the class).
    A test image whose class has no reference image has no rays: its coverage is NaN, `rays` 0. Refused is a set of
    reference or of test images none of whose labels is a class of the encoder; single ones of these count as wrong.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 32
    outputs: ClassVar[Mapping[str, Output]] = {
        "gi": Output(("ray",), units="hop", long_name="generalization interval of the ray"),
        "reference": Output(("ray",), dtype="int64", long_name=REFERENCE),
        "coverage": Output(long_name="share of rays with GI ≥ 1"),
        "coverage_se": Output(long_name="binomial standard error of the coverage"),
        "rays": Output(dtype="int64", long_name="number of rays"),
        "elsewhere": Output(long_name="share of rays that start in another class"),
        "reentry": Output(long_name="share of rays that leave the class and end in it"),
        "predicted": Output(dtype="int64", long_name="class predicted for the test image"),
        "correct": Output(dtype="bool", long_name="the prediction is the label (False without label)"),
        "reference_id": REFERENCE_ID,
    }

    reference: ProbeSet | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ProbeSet))
    )
    n_reference: int | None = count_field(100, optional=True)
    classes: Literal["same", "different"] = attrs.field(
        default="same", validator=attrs.validators.in_(("same", "different"))
    )
    cap: float = attrs.field(default=1.0, converter=float)
    search: Search = search_field()
    attack: Attack | None = attacked.attack_field()

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.cap < 1:
            raise ValueError(f"cap={self.cap:g} is below 1, the end of the ray: whether it is covered would stay open")

    def default_name(self) -> str:
        """Return "coverage", "coverage-different" for rays to other classes; "-pgd" appended for an attack."""
        name = "coverage" if self.classes == "same" else "coverage-different"
        return name if self.attack is None else f"{name}-{self.attack.label}"

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs; with an attack also how far it moved the image, and whether it succeeded."""
        return self.outputs if self.attack is None else {**self.outputs, **attacked.OUTPUTS}

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image, if no ray ended early."""
        pools = 1 if self.classes == "same" else WRONG_POOLS
        rays = pools * pool_size(self.reference or training_set, self.n_reference)
        moving = 0.0 if self.attack is None else self.attack.passes()
        return 1 + moving + rays * (1 + search_passes(self.search, self.step, self.cap))

    def smoke(self) -> RayCoverageProbe:
        """Return the same with three rays to 8×8 digits, which need no download, and a coarse step."""
        from geoframe.probesets.digits import Digits

        attack = None if self.attack is None else self.attack.smoke()
        return self.evolve(reference=Digits(split="train"), n_reference=3, step=0.25, attack=attack)

    def check_inputs(self, encoder: LoadedEncoder, images: Images) -> None:
        """Refuse labels that are all no classes of the encoder, and rays that have nowhere to go for any image."""
        from geoframe.class_checks import check_labels
        from geoframe.references import references_for

        name = type(self).__name__
        attacked.check_attack(self.attack)
        check_labels(name, encoder, images)
        if self.classes == "different" and self.attack is None:
            pools = references_for(name, self.reference, encoder).pools
            if len(pools) == 1 and _all_predicted(encoder, images, *pools):
                raise BadInput(
                    f"{name}: all reference images are of class {next(iter(pools))}, which encoder {encoder.label!r} "
                    "predicts for every test image: rays to different classes need reference images of others"
                )

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.lines import predicted
        from geoframe.references import check_distinct, references_for

        name = type(self).__name__
        moved = None if self.attack is None else attacked.attacked(encoder, batch, self.attack)
        image = batch.images if moved is None else moved.image
        references = references_for(name, self.reference, encoder)
        held = predicted(encoder, image)
        chosen, width = self._rays(references, int(held), batch.rng[0])
        ids, others = references.ids, references.images.pixels[chosen]
        check_distinct(name, image[0].cpu(), batch.ids[0], others, [ids[i] for i in chosen.tolist()])
        found = self._search(encoder, image, others.to(encoder.device), held)
        return {
            **({} if moved is None else attacked.described(moved)),
            **_summary(found, len(chosen)),
            "gi": _padded(found["gi"], width, np.nan),
            "reference": _padded(chosen.numpy(), width, -1),
            "rays": [len(chosen)],
            "predicted": held,
            "correct": held == batch.labels,
            "reference_id": ids,
        }

    def _rays(self, references: References, held: int, rng: torch.Generator) -> tuple[torch.Tensor, int]:
        """Indices of the reference images, and the number of rays an image may have."""
        import torch

        per_pool = self.n_reference or references.largest_pool()
        if self.classes == "same":
            return references.drawn(held, self.n_reference, rng), per_pool
        others = [label for label in references.pools if label != held]
        picked = [others[i] for i in torch.randperm(len(others), generator=rng)[:WRONG_POOLS].tolist()]
        drawn = [references.drawn(label, self.n_reference, rng) for label in picked]
        empty = torch.empty(0, dtype=torch.int64)
        return torch.cat([empty, *drawn]), WRONG_POOLS * per_pool

    def _search(
        self, encoder: LoadedEncoder, image: torch.Tensor, others: torch.Tensor, held: torch.Tensor
    ) -> dict[str, np.ndarray]:
        """GI of each ray, and whether its two ends have the held class."""
        from geoframe.lines import RayTable, intervals, predicted

        if not len(others):
            return {"gi": np.empty(0), "starts": np.empty(0, bool), "ends": np.empty(0, bool)}
        image = image.expand_as(others)
        start, end = (others, image) if self.classes == "same" else (image, others)
        rays = RayTable(start, end - start, held.expand(len(others)))
        gi = intervals(encoder, rays, self.search, self.step, self.cap, through=1.0).gi.numpy()
        other_ends = (predicted(encoder, others) == held).cpu().numpy()
        own = np.ones(len(others), dtype=bool)
        starts, ends = (other_ends, own) if self.classes == "same" else (own, other_ends)
        return {"gi": gi, "starts": starts, "ends": ends}


def _all_predicted(encoder: LoadedEncoder, images: Images, label: int) -> bool:
    """Whether one class is predicted for every image."""
    import torch

    from geoframe.lines import predicted

    with encoder.counted_as(0):  # a check is no progress
        parts = torch.split(images.pixels, encoder.micro_batch)
        return all(bool((predicted(encoder, part.to(encoder.device)) == label).all()) for part in parts)


def _summary(found: dict[str, np.ndarray], n: int) -> dict[str, Any]:
    """Shares over the rays of one image; NaN without rays."""
    if n == 0:
        return {name: [np.nan] for name in ("coverage", "coverage_se", "elsewhere", "reentry")}
    covered = found["gi"] >= 1
    share = float(covered.mean())
    left = ~covered & found["starts"] & found["ends"]
    return {
        "coverage": [share],
        "coverage_se": [float(np.sqrt(share * (1 - share) / n))],
        "elsewhere": [float((~found["starts"]).mean())],
        "reentry": [float(left.mean())],
    }


def _padded(values: np.ndarray, width: int, fill: float) -> np.ndarray:
    row = np.full((1, width), fill, dtype=np.asarray(values).dtype)
    row[0, : len(values)] = values
    return row
