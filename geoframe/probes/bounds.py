"""`BoundsProbe`: lower bounds of the generalization interval, checked ray by ray (Neural Expansion, §3.2–§3.5, D.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.encoder import Shape
from geoframe.probe import Batch, Output
from geoframe.probes.searching import (
    DIRECTION,
    SCALED,
    SINGULAR_VALUE,
    Scale,
    SteppedProbe,
    count_field,
    in_units,
    length_of,
    linearised_passes,
    scale_field,
)
from geoframe.probeset import ProbeSet

if TYPE_CHECKING:
    import torch

    from geoframe.geometry.bounds import RayBounds
    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import Images

ROUNDING = 1e3  # units of rounding of the largest number in a check that it may fail by
_RAY = ("direction", "sign")
_SLOPE = f"logit / {SCALED}"
_TO_CAP = "lower bound of the GI, δ to the cap (0: it says nothing)"


@attrs.frozen(kw_only=True)
class BoundsProbe(SteppedProbe):
    """Theorems 1 and 2 and eqs. 5–7 along right singular vectors, beside the interval that is measured there.

    For a direction d = ±L v_i and the class predicted at the image: GI ≥ min(T, (q₀ − δ(T)) / ‖J_f d‖₁) (Theorem 1),
    and ≥ min(T, (q₀ − δ(T)) / (C ‖W‖_op σ_i L)) (Theorem 2). The paper's step from ℓ1 to ℓ2 gives C = √c for c
    classes; C = √2 suffices (ours), since only two logits enter. All in float64 where the encoder can.

    Attributes
    ----------
    n_directions : int or None
        That many right singular vectors, evenly spaced in the complete basis by descending value (the leading ones
        where an input has more than 4096 pixels); None takes the complete basis.
    step, cap : float
        Distance of the points at which the ray is looked at, and T, in units of the scaled direction.
    scale : {"diagonal", "unit"}
        L; see `GIProbe`.

    Notes
    -----
    `violations` counts rays that change class at a step t with t·‖J_f d‖₁ + δ(t) < q₀, or the same with any other
    slope that is given here, δ measured on the ray up to that step; plus 1 where the gradient breaks (5). It is 0 or
    the program is wrong: undivided, the theorems are identities.

    With δ up to the cap the theorems mostly say nothing. `useful` is T* = sup{T : T·‖J_f d‖₁ + δ(T) < q₀} ≤ GI (ours).

    The change of class nearest on a ray is a perturbation Δ, of length `perturbation`. (6), ‖Δ‖ ≥ GI(Δ/‖Δ‖), is
    checked along Δ only: a least interval over some directions is an upper bound of the infimum over all. (7),
    ‖Δ‖ ≥ min(T, (q₀ − δ) / (C ‖W‖_op σ₁)), needs a δ that holds in all directions: `eq7` takes the ray's own, so it
    bounds changes of class along this ray, and certifies nothing in other directions.

    (5) is for the cross-entropy of the image with its label, or with the predicted class (`loss_class`) where there is
    no label or one that is no class of the encoder. Labels that are all none are refused.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 4
    outputs: ClassVar[Mapping[str, Output]] = {
        "direction": DIRECTION,
        "q0": Output(units="logit", long_name="margin of the predicted class"),
        "slope": Output(("direction",), units=_SLOPE, long_name="‖J_f d‖₁"),
        "slope_l2": Output(("direction",), units=_SLOPE, long_name="√2 ‖J_f d‖₂"),
        "slope_sharpest": Output(_RAY, units=_SLOPE, long_name="max_i [(J_f d)_i − (J_f d)_y]₊"),
        "residual": Output(_RAY, units="logit", long_name="δ (ℓ1) up to and including the first changed step"),
        "residual_cap": Output(_RAY, units="logit", long_name="δ (ℓ1) up to the cap"),
        "gi": Output(_RAY, units=SCALED, long_name="measured generalization interval"),
        "censored": Output(_RAY, dtype="bool", long_name="class kept up to the cap"),
        "theorem1": Output(_RAY, units=SCALED, long_name=f"Theorem 1, ‖J_f d‖₁: {_TO_CAP}"),
        "theorem1_l2": Output(_RAY, units=SCALED, long_name=f"Theorem 1, √2 ‖J_f d‖₂: {_TO_CAP}"),
        "theorem1_sharpest": Output(_RAY, units=SCALED, long_name=f"Theorem 1, sharpest slope: {_TO_CAP}"),
        "theorem2_sqrt_c": Output(_RAY, units=SCALED, long_name=f"Theorem 2, C = √c: {_TO_CAP}"),
        "theorem2": Output(_RAY, units=SCALED, long_name=f"Theorem 2, C = √2: {_TO_CAP}"),
        "useful": Output(_RAY, units=SCALED, long_name="T* = sup{T : T ‖J_f d‖₁ + δ(T) < q₀}"),
        "perturbation": Output(_RAY, units="raw-pixel L2", long_name="‖Δ‖, distance of the first changed step"),
        "eq7_sqrt_c": Output(_RAY, units="raw-pixel L2", long_name="(7), C = √c, with the δ of this ray only"),
        "eq7": Output(_RAY, units="raw-pixel L2", long_name="(7), C = √2, with the δ of this ray only"),
        "gradient_norm": Output(units="nat / raw-pixel L2", long_name="‖∇_x L‖ of the cross-entropy"),
        "gradient_bound": Output(units="nat / raw-pixel L2", long_name="(5): √2 (1 − p_y) ‖W‖_op σ₁"),
        "gradient_bound_loose": Output(units="nat / raw-pixel L2", long_name="(5): √2 ‖W‖_op σ₁"),
        "singular_value": SINGULAR_VALUE,
        "operator_norm": Output(units="logit / feature L2", long_name="‖W‖_op of the last layer"),
        "predicted": Output(dtype="int64", long_name="class predicted at the image"),
        "loss_class": Output(dtype="int64", long_name="class of the cross-entropy: the label, else the predicted one"),
        "violations": Output(dtype="int64", long_name="number of rays (and gradients) that break a bound"),
    }

    n_directions: int | None = count_field(32, optional=True)
    scale: Scale = scale_field()

    def default_name(self) -> str:
        """Return "bounds"."""
        return "bounds"

    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Return the signs of a direction."""
        return {"sign": (1, -1)}

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs in the units of `scale`."""
        return in_units(self.outputs, self.scale)

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Planned cost of one image."""
        return linearised_passes(self.n_directions, self.step, self.cap, shape)

    def smoke(self) -> BoundsProbe:
        """Return the same with three directions and a coarse step."""
        return self.evolve(n_directions=3, step=self.cap / 4)

    def check_inputs(self, encoder: LoadedEncoder, images: Images) -> None:
        """Refuse labels that are all no classes of the encoder."""
        from geoframe.class_checks import check_labels

        check_labels(type(self).__name__, encoder, images)

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        import torch

        from geoframe.classifier import fine_classifier, head_weight
        from geoframe.lines import predicted
        from geoframe.spectra import chosen_at

        predicted(encoder, batch.images)  # refuses a single class, and NaN
        fine = fine_classifier(encoder)
        x = batch.images.to(fine.dtype)
        operator_norm = float(torch.linalg.matrix_norm(head_weight(fine, x), 2))
        index, vectors, values = chosen_at(type(self).__name__, encoder, batch.images, self.n_directions)
        directions = vectors.to(x).view(-1, *encoder.input_shape) * length_of(self.scale, x[0].numel())
        y = int(fine.logits(x).argmax())
        slope, found = self._rays(fine, x, directions, values.cpu(), operator_norm, y)
        gradient = _gradient(fine, x, y, int(batch.labels[0]), operator_norm, float(values[0]))
        return {
            **self._by_ray(slope, found, length_of(self.scale, x[0].numel())),
            **{name: [value] for name, value in gradient.items()},
            "direction": index,
            "singular_value": values[None],
            "operator_norm": [operator_norm],
            "predicted": [y],
            "violations": [int(found.broken.sum()) + int(_breaks(gradient, torch.finfo(x.dtype).eps))],
        }

    def _rays(
        self,
        fine: LoadedEncoder,
        x: torch.Tensor,
        directions: torch.Tensor,
        values: torch.Tensor,
        operator_norm: float,
        y: int,
    ) -> tuple[torch.Tensor, RayBounds]:
        """Slopes (ray, 7) of Theorems 1 and 2 and of (7), and what they bound; rays (direction, sign) in a row."""
        import torch

        from geoframe.geometry.bounds import RayBounds, ray_bounds, slopes
        from geoframe.geometry.rays import steps_to
        from geoframe.logit_lines import changes_along, logits_along

        steps = steps_to(self.cap, self.step)
        signed = torch.stack([directions, -directions], 1).flatten(0, 1)
        change = changes_along(fine.logits, x, directions, fine.micro_batch).cpu().double()
        change = torch.stack([change, -change], 1).flatten(0, 1)
        constants = change.new_tensor([math.sqrt(change.shape[1]), math.sqrt(2)]) * operator_norm
        length = length_of(self.scale, x[0].numel())
        own = values.repeat_interleave(2)[:, None] * constants * length
        largest = (values[0] * constants * length).expand_as(own)
        slope = torch.cat([slopes(change, y), own, largest], 1)
        parts = []
        for ray in range(len(signed)):
            logits = logits_along(fine, x, signed[ray : ray + 1], steps.to(x)).cpu().double()
            size = float(logits.abs().max()) + self.cap * float(largest.max())
            tolerance = ROUNDING * torch.finfo(x.dtype).eps * size
            parts.append(ray_bounds(logits, change[ray : ray + 1], y, steps, slope[ray : ray + 1], tolerance))
        joined = [torch.cat([getattr(p, f.name) for p in parts]) for f in attrs.fields(RayBounds)]
        return slope, RayBounds(*joined)

    def _by_ray(self, slope: torch.Tensor, found: RayBounds, length: float) -> dict[str, Any]:
        names = ("theorem1", "theorem1_l2", "theorem1_sharpest", "theorem2_sqrt_c", "theorem2")
        rays = {
            "slope_sharpest": slope[:, 2],
            "residual": found.residual,
            "residual_cap": found.residual_cap,
            "gi": found.gi,
            "censored": found.censored,
            "useful": found.useful,
            "perturbation": found.crossing * length,
            **{name: found.lower[:, column] for column, name in enumerate(names)},
            "eq7_sqrt_c": found.lower[:, 5] * length,
            "eq7": found.lower[:, 6] * length,
        }
        return {
            **{name: value.view(1, -1, 2) for name, value in rays.items()},
            "slope": slope[None, ::2, 0],
            "slope_l2": slope[None, ::2, 1],
            "q0": found.margin[:1],
        }


def _gradient(
    fine: LoadedEncoder, x: torch.Tensor, y: int, label: int, operator_norm: float, sigma: float
) -> dict[str, Any]:
    """Norm of the loss gradient and its bounds (5)."""
    from geoframe.geometry.bounds import gradient_bound
    from geoframe.logit_lines import loss_gradient

    loss_class, gradient, probability = loss_gradient(fine, x, y, label)
    bound, loose = gradient_bound(probability, operator_norm, sigma)
    return {
        "gradient_norm": float(gradient.norm()),
        "gradient_bound": bound,
        "gradient_bound_loose": loose,
        "loss_class": loss_class,
    }


def _breaks(gradient: Mapping[str, float], eps: float) -> bool:
    allowed = gradient["gradient_bound"] + ROUNDING * eps * gradient["gradient_bound_loose"]
    return gradient["gradient_norm"] > allowed
