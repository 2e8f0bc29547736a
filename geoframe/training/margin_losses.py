"""Losses that widen or narrow the region of a class around each training image (Neural Expansion, §5.2 and H.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from geoframe.encoder import Coord
from geoframe.training.losses import Logits, LossSpec
from geoframe.training.validators import SHARE, decimal

if TYPE_CHECKING:
    import torch


@attrs.frozen(kw_only=True, slots=False, eq=False)
class PerturbedMargin(LossSpec):
    """Base of `Expand` and `Restrict`: cross-entropy, and λ times a hinge of the margin at a displaced image.

    H.2 gives the two losses; it gives neither λ, τ and ε nor what u is. Ours: u is an isotropic random unit direction,
    drawn for each image in each step from the loss's own generator; ε is a length in raw [0, 1] pixel space, and
    nothing is clipped to that box. The margin is the logit of the true label minus the largest other one, so that it
    is negative where the label isn't predicted. The hinge is a mean over the batch. The displaced images are a batch
    of their own: batch normalisation uses their statistics for them, and its running ones see both. λ = 0 is
    `CrossEntropy`, to the bit: the displaced images aren't passed through the network.

    Attributes
    ----------
    weight : float
        λ, ours. Where the displacement changes nothing, `Restrict` and cross-entropy are at rest where the label has
        probability 1 − λ and the strongest other class λ. H.2 wants x itself classified right, so λ is below 0.5, at
        which the two tie; half of that is taken. (Tried at the tie first: on 8×8 digits 35 % of the test images were
        then right, where cross-entropy alone has 93 %.)
    margin : float
        τ in logits, ours.
    epsilon : float
        ε, L2 in raw pixels, ours: 1 is a tenth of the distance between two images of MNIST.
    """

    weight: float = attrs.field(default=0.25, converter=decimal, validator=SHARE)
    margin: float = attrs.field(default=1.0, converter=decimal, validator=SHARE)
    epsilon: float = attrs.field(default=1.0, converter=decimal, validator=SHARE)

    @property
    def coords(self) -> dict[str, Coord]:
        """λ, τ and ε."""
        return {"loss_weight": self.weight, "loss_margin": self.margin, "loss_epsilon": self.epsilon}

    def hinge(self, margin: torch.Tensor) -> torch.Tensor:
        """Return the penalty of each margin, (n,)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement hinge(margin)")

    def __call__(self, model: Logits, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the mean cross-entropy of the images, and λ times the mean penalty of the displaced ones."""
        from torch.nn.functional import cross_entropy

        plain = cross_entropy(model(x), y)
        if not self.weight:
            return plain
        return plain + self.weight * self.hinge(margins(model(self.displaced(x, generator)), y)).mean()

    def displaced(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return x + εu, (n, channel, height, width)."""
        import torch

        from geoframe.training.ball import to_length

        return x + to_length(torch.randn(x.shape, generator=generator).to(x), self.epsilon)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Expand(PerturbedMargin):
    """CE(x) + λ · mean ReLU(τ − margin(x + εu)): the displaced image is to be classified right, by a margin of τ (H.2).

    Fields and what is ours: see `PerturbedMargin`.
    """

    def hinge(self, margin: torch.Tensor) -> torch.Tensor:
        """ReLU(τ − margin)."""
        return (self.margin - margin).relu()


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Restrict(PerturbedMargin):
    """CE(x) + λ · mean ReLU(margin(x + εu) + τ): the displaced image is to be classified wrong, by τ (H.2).

    Fields and what is ours: see `PerturbedMargin`.
    """

    def hinge(self, margin: torch.Tensor) -> torch.Tensor:
        """ReLU(margin + τ)."""
        return (margin + self.margin).relu()


def margins(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Logit of the true label minus the largest other logit, (n,)."""
    own = y[:, None]
    return logits.gather(1, own)[:, 0] - logits.scatter(1, own, float("-inf")).amax(1)
