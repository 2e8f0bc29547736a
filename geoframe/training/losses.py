"""What a training minimises: specs of loss functions, open to third parties. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import attrs

from geoframe.class_code import code_of
from geoframe.encoder import Coord
from geoframe.spec import Spec
from geoframe.training.validators import COUNT, RATE, SHARE, decimal

if TYPE_CHECKING:
    import torch

Logits: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


@attrs.frozen(kw_only=True, slots=False, eq=False)
class LossSpec(Spec):
    """What a training minimises. Subclasses implement `__call__`; their fields enter the training's key.

    A penalty on perturbed images is a subclass of a few lines::

        @attrs.frozen(kw_only=True, slots=False, eq=False)
        class Smooth(gf.LossSpec):
            weight: float = 0.1

            def __call__(self, model, x, y, generator):
                logits = model(x)
                moved = model(x + 0.1 * torch.randn(x.shape, generator=generator).to(x))
                distance = (moved - logits).square().mean()
                return torch.nn.functional.cross_entropy(logits, y) + self.weight * distance
    """

    kind: ClassVar[str] = "loss"

    @property
    def coords(self) -> dict[str, Coord]:
        """What stands beside the encoders trained with it in results (ε, say)."""
        return {}

    def source_files(self) -> dict[str, str]:
        """Digests of the code of a loss that isn't geoframe's: where it has changed, it is trained again."""
        return code_of(type(self))

    def __call__(self, model: Logits, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the loss of one batch.

        Parameters
        ----------
        model : callable
            Raw pixels (n, channel, height, width) to logits (n, class): the network in train mode, its normalisation
            included. It may be called several times; perturbations are in raw [0, 1] pixel space.
        x : torch.Tensor
            Raw pixels in [0, 1], augmented where the recipe says so, on the device that is trained on. Not to be
            changed in place.
        y : torch.Tensor
            Labels (n,), int64, on the same device.
        generator : torch.Generator
            On the CPU, whatever the device, for all that the loss draws: it is kept with the training, so that an
            interrupted one goes on with the same bits.

        Returns
        -------
        torch.Tensor
            A scalar.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement __call__(model, x, y, generator)")


@attrs.frozen(kw_only=True, slots=False, eq=False)
class CrossEntropy(LossSpec):
    """Mean cross-entropy of the images as they are."""

    def __call__(self, model: Logits, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the mean cross-entropy."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(model(x), y)


@attrs.frozen(slots=False, eq=False)
class AdversarialL2(LossSpec):
    """Mean cross-entropy of images moved by an L2 attack (PGD) in raw pixel space: adversarial training.

    *Beyond Local Linearity* (fig. 2a, the robust family) measures networks trained like this, by others; the choices
    are ours, after Madry et al. (2018). The attack starts at a point drawn uniformly from the ball (each image its
    own), makes `steps` steps of length `step_size` along its gradient of the cross-entropy with the true label, and
    after each goes back to the ball of radius ε around the image, then to pixels in [0, 1]. The network stays in train
    mode during the attack: batch normalisation uses the batch's statistics, and its running ones see the attack's
    passes too. Only the moved images are trained on. ε = 0 is `CrossEntropy`, to the bit.

    Attributes
    ----------
    epsilon : float
        Radius, L2 in raw [0, 1] pixels (may be given by position).
    steps : int
    step_size : float or None
        None: 2.5 ε / steps.
    random_start : bool
        False starts at the image.
    """

    epsilon: float = attrs.field(converter=decimal, validator=SHARE)
    steps: int = attrs.field(default=7, validator=COUNT, kw_only=True)
    step_size: float | None = attrs.field(
        default=None,
        converter=attrs.converters.optional(decimal),
        validator=attrs.validators.optional(RATE),
        kw_only=True,
    )
    random_start: bool = attrs.field(default=True, kw_only=True)

    @property
    def coords(self) -> dict[str, Coord]:
        """ε."""
        return {"epsilon": self.epsilon}

    def __call__(self, model: Logits, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the mean cross-entropy of the moved images."""
        from torch.nn.functional import cross_entropy

        moved = self.attack(model, x, y, generator) if self.epsilon else x
        return cross_entropy(model(moved), y)

    def attack(self, model: Logits, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the moved images: within ε of x, in [0, 1], without a graph."""
        import torch
        from torch.nn.functional import cross_entropy

        from geoframe.training.ball import in_ball, point_of_ball, to_length

        length = 2.5 * self.epsilon / self.steps if self.step_size is None else self.step_size
        start = point_of_ball(x, self.epsilon, generator) if self.random_start else torch.zeros_like(x)
        moved = (x + start).clamp(0, 1)
        for _ in range(self.steps):
            moved.requires_grad_(True)
            loss = cross_entropy(model(moved), y, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, moved)
            step = moved.detach() + to_length(gradient, length) - x
            moved = (x + in_ball(step, self.epsilon)).clamp(0, 1)
        return moved
