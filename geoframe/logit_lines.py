"""Logits, their derivatives and the loss gradient of a loaded classifier at and around one image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from geoframe.errors import EncoderRefused
from geoframe.geometry.pushforward import Map, pushforward

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


def logits_along(
    encoder: LoadedEncoder, x: torch.Tensor, directions: torch.Tensor, steps: torch.Tensor
) -> torch.Tensor:
    """Logits at x + t·d, batch by batch.

    Parameters
    ----------
    encoder : LoadedEncoder
    x : torch.Tensor
        (1, channel, height, width), in the encoder's precision, like the directions.
    directions : torch.Tensor
        (ray, channel, height, width).
    steps : torch.Tensor
        t, (step,).

    Returns
    -------
    torch.Tensor
        (ray, step, class).

    Raises
    ------
    EncoderRefused
        Where logits are not finite.
    """
    place = [(ray, step) for ray in range(len(directions)) for step in range(len(steps))]
    parts = []
    for start in range(0, len(place), encoder.micro_batch):
        ray, step = torch.tensor(place[start : start + encoder.micro_batch], device=x.device).T
        parts.append(encoder.logits(torch.addcmul(x, directions[ray], steps[step].view(-1, 1, 1, 1))))
    logits = torch.cat(parts)
    if not logits.isfinite().all():
        raise EncoderRefused(
            f"encoder {encoder.label!r}: the logits aren't finite along a ray: check its weights and normalisation"
        )
    return logits.view(len(directions), len(steps), -1)


def changes_along(phi: Map, x: torch.Tensor, directions: torch.Tensor, batch: int) -> torch.Tensor:
    """J d, (direction, …), of features or logits, from directions (direction, channel, height, width) at one image."""
    blocks = torch.split(directions, max(1, batch // 2))
    return torch.cat([pushforward(phi, x.expand_as(v).contiguous(), v)[1] for v in blocks])


def loss_gradient(
    encoder: LoadedEncoder, x: torch.Tensor, predicted: int, label: int
) -> tuple[int, torch.Tensor, float]:
    """∇_x of the cross-entropy of one image with its label, or with the predicted class where that is no class of it.

    Returns
    -------
    loss_class : int
    gradient : torch.Tensor
        (1, channel, height, width).
    probability : float
        Of the class.
    """
    with torch.enable_grad():
        point = x.detach().clone().requires_grad_(True)
        logits = encoder.logits(point)
        loss_class = label if 0 <= label < logits.shape[1] else predicted
        log_probability = logits.log_softmax(1)[0, loss_class]
        gradient = torch.autograd.grad(-log_probability, point)[0]
    return loss_class, gradient, float(log_probability.detach().exp())
