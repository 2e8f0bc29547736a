"""`AlignmentProbe`: gradients, image differences and attacks on right singular vectors (§3.4, I.3, fig. 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import numpy as np

from geoframe.attacks import Attack
from geoframe.encoder import Shape
from geoframe.errors import BadInput
from geoframe.probe import Batch, Output, Probe
from geoframe.probes import attacked
from geoframe.probes.searching import DOUBLE, REFERENCE, REFERENCE_ID, count_field, jacobian_passes
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import Images

VECTORS = ("loss_gradient", "difference", "attack")
DRAWS = 100  # random vectors that a baseline is averaged over


@attrs.frozen(kw_only=True)
class AlignmentProbe(Probe):
    """Cumulative energy of vectors on the right singular vectors of the features' Jacobian, and |cos(v₁, ·)|.

    Energy is the sum of squared projections on the first k vectors, over the squared length. All in float64 where the
    encoder can.

    Attributes
    ----------
    vectors : {"loss_gradient", "difference", "attack"}
        ∇_x of the cross-entropy of the image with its label, or with the predicted class where there is no label or one
        that is no class of the encoder (labels that are all none are refused); or the differences to reference images
        of the class predicted for the image, as in coverage (the paper doesn't say which pairs it takes); or the way
        that an attack moves the image (ours). Singular vectors are always those at the image itself.
    reference : ProbeSet or None
        Labelled images, for differences. None: those that a `TrainedEncoder` was trained on.
    n_reference : int
        Differences an image, drawn for each image; fewer where the class has no more, and the rest is NaN.
    attack : Attack or None
        For `vectors="attack"`: see `RayCoverageProbe`. An image that stays where it is has NaN.

    Notes
    -----
    ∇_x L = J_φᵀ Wᵀ(p − e_y) lies in the row space of J_φ by construction, so its energy reaches 1 at the rank whatever
    the network. Baselines (ours): `baseline` is an isotropic random vector of the row space, k / rank in expectation;
    `baseline_pullback` is J_φᵀz for isotropic random z, the mean of 100, which large singular values alone pull to v₁.
    Components beyond the rank (numpy's rule) add nothing: their vectors are arbitrary. A gradient that is zero, the
    probability being 1 in float64, has NaN.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 8
    outputs: ClassVar[Mapping[str, Output]] = {
        "energy": Output(
            ("vector", "component"), long_name="share of squared length on the first right singular vectors"
        ),
        "cosine": Output(("vector",), long_name="|cos| of the angle to the first right singular vector"),
        "length": Output(("vector",), units="raw-pixel L2", long_name="length of the vector"),
        "baseline": Output(("component",), long_name="energy of an isotropic random vector of the row space"),
        "baseline_pullback": Output(("component",), long_name="mean energy of Jᵀz, z isotropic in feature space"),
        "singular_value": Output(
            ("component",), units="feature L2 / raw-pixel L2", long_name="singular value of the features' Jacobian"
        ),
        "rank": Output(dtype="int64", long_name="numerical rank of the Jacobian"),
        "reference": Output(("vector",), dtype="int64", long_name=REFERENCE),
        "reference_id": REFERENCE_ID,
        "loss_class": Output(dtype="int64", long_name="class of the loss: the label, else the predicted one"),
    }

    vectors: Literal["loss_gradient", "difference", "attack"] = attrs.field(
        default="loss_gradient", validator=attrs.validators.in_(VECTORS)
    )
    reference: ProbeSet | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ProbeSet))
    )
    n_reference: int = count_field(20)
    attack: Attack | None = attacked.attack_field()

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if (self.vectors == "attack") != (self.attack is not None):
            raise BadInput(
                f'AlignmentProbe: vectors={self.vectors!r}, attack={self.attack!r}: vectors="attack" and an attack go '
                "together"
            )

    def default_name(self) -> str:
        """Return "alignment", "alignment-difference" for image differences, "alignment-pgd" for an attack."""
        kind = "" if self.vectors == "loss_gradient" else f"-{self.attack.label if self.attack else self.vectors}"
        return f"alignment{kind}"

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs that these vectors have: reference images, a class of the loss, what an attack did."""
        if self.vectors == "difference":
            return {name: output for name, output in self.outputs.items() if name != "loss_class"}
        own = {name: output for name, output in self.outputs.items() if not name.startswith("reference")}
        if self.vectors == "attack":
            return {**own, **attacked.OUTPUTS}
        return {**own, "length": attrs.evolve(own["length"], units="nat / raw-pixel L2")}

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image."""
        return DOUBLE * jacobian_passes(shape) + (0.0 if self.attack is None else self.attack.passes())

    def smoke(self) -> AlignmentProbe:
        """Return the same with two references among 8×8 digits, which need no download."""
        if self.attack is not None:
            return self.evolve(attack=self.attack.smoke())
        if self.vectors == "loss_gradient":
            return self
        from geoframe.probesets.digits import Digits

        return self.evolve(reference=Digits(split="train"), n_reference=2)

    def check_inputs(self, encoder: LoadedEncoder, images: Images) -> None:
        """Refuse labels that are all no classes of the encoder."""
        from geoframe.class_checks import check_labels

        attacked.check_attack(self.attack)
        if self.vectors != "difference":
            check_labels(type(self).__name__, encoder, images)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        import torch

        from geoframe.geometry import alignment
        from geoframe.geometry.spectrum import rank_threshold
        from geoframe.spectra import spectrum_at

        vectors, origin = self._vectors(encoder, batch)
        found = spectrum_at(encoder, batch.images)
        values, right = found.values.cpu(), found.right.cpu()
        dtype = (encoder.double() or encoder).dtype
        rank = int((values > rank_threshold(values, max(len(found.left[0]), right.shape[1]), dtype)).sum())
        draws = torch.randn(DRAWS, len(values), generator=batch.rng[0], dtype=torch.float64)
        return {
            "energy": alignment.cumulative_energy(vectors, right, rank)[None],
            "cosine": alignment.cosine_to(vectors, right[0])[None],
            "length": vectors.norm(dim=1)[None],
            "baseline": alignment.isotropic_energy(len(values), rank)[None],
            "baseline_pullback": alignment.pulled_energy(values, rank, draws)[None],
            "singular_value": values[None],
            "rank": [rank],
            **origin,
        }

    def _vectors(self, encoder: LoadedEncoder, batch: Batch) -> tuple[torch.Tensor, dict[str, Any]]:
        """Vectors (vector, pixel) in float64, NaN where there are fewer; and the outputs that say what they are."""
        import torch

        from geoframe.classifier import fine_classifier
        from geoframe.lines import predicted
        from geoframe.logit_lines import loss_gradient
        from geoframe.references import same_class

        x = batch.images
        if self.attack is not None:
            moved = attacked.attacked(encoder, batch, self.attack)
            change = (moved.image.double() - x.double()).flatten(1).cpu()
            return change, {"loss_class": [moved.label], **attacked.described(moved)}
        if self.vectors == "loss_gradient":
            predicted(encoder, x)  # refuses a single class, and NaN
            fine = fine_classifier(encoder)
            point = x.to(fine.dtype)
            held = int(fine.logits(point).argmax())
            loss_class, gradient, _ = loss_gradient(fine, point, held, int(batch.labels[0]))
            return gradient.flatten(1).double().cpu(), {"loss_class": [loss_class]}
        references, _, chosen = same_class(type(self).__name__, self.reference, encoder, batch, self.n_reference)
        vectors = torch.full((self.n_reference, x[0].numel()), float("nan"), dtype=torch.float64)
        vectors[: len(chosen)] = (references.images.pixels[chosen].double() - x.cpu().double()).flatten(1)
        index = np.full(self.n_reference, -1)
        index[: len(chosen)] = chosen.numpy()
        return vectors, {"reference": index[None], "reference_id": references.ids}
