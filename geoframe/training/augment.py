"""Random changes of training images: pure functions of a batch of raw pixels and a generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import pad

PAD = 4  # pixels on each side that the crop can move by
JITTER = 0.4  # largest relative change of brightness, contrast and saturation
_LUMA = (0.299, 0.587, 0.114)

Augmentation = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def crop_flip(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Crop at random after padding by 4 black pixels, and mirror half of the images left to right.

    What CIFAR networks are usually trained with; *Beyond Local Linearity* (A.2) names a random crop and a horizontal
    flip, without numbers. Each image has draws of its own.

    Parameters
    ----------
    x : torch.Tensor
        (n, channel, height, width), raw pixels in [0, 1].
    generator : torch.Generator
        On the CPU.

    Returns
    -------
    torch.Tensor
        Of the same shape.
    """
    n, channels, height, width = x.shape
    offsets = torch.randint(0, 2 * PAD + 1, (2, n, 1), generator=generator)
    mirrored = torch.rand((n, 1), generator=generator) < 0.5
    rows = offsets[0] + torch.arange(height)
    columns = offsets[1] + torch.where(mirrored, torch.arange(width - 1, -1, -1), torch.arange(width))
    image, channel = torch.arange(n)[:, None, None, None], torch.arange(channels)[None, :, None, None]
    return pad(x, (PAD,) * 4)[image, channel, rows[:, None, :, None], columns[:, None, None, :]]


def crop_flip_jitter(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Crop and flip as `crop_flip`, then change brightness, contrast and saturation, in that order.

    For Imagenette (*Neural Expansion*, A.3, as read here: crop, flip, jitter). Strengths are ours: factors uniform in
    [0.6, 1.4], one of each kind an image; no change of hue. Pixels are clipped to [0, 1] after each.

    Parameters
    ----------
    x, generator
        As for `crop_flip`.
    """
    x = crop_flip(x, generator)
    factors = 1 + JITTER * (2 * torch.rand((3, len(x), 1, 1, 1), generator=generator) - 1)
    x = (x * factors[0]).clamp(0, 1)
    x = _blend(x, _grey(x).mean((1, 2, 3), keepdim=True), factors[1])
    return _blend(x, _grey(x), factors[2])


def _grey(x: torch.Tensor) -> torch.Tensor:
    """Luminance (n, 1, height, width); of images that aren't RGB the mean of their channels."""
    if x.shape[1] != len(_LUMA):
        return x.mean(1, keepdim=True)
    return (x * torch.tensor(_LUMA)[:, None, None]).sum(1, keepdim=True)


def _blend(x: torch.Tensor, other: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Go from `other` to x and beyond."""
    return (other + share * (x - other)).clamp(0, 1)


AUGMENTATIONS: Mapping[str, Augmentation] = {"crop-flip": crop_flip, "crop-flip-jitter": crop_flip_jitter}
