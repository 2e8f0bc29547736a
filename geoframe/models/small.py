"""Small classifiers of 28×28 and 8×8 images, as plain sequences of layers (Neural Expansion, A.2).

Φ, what the last linear layer sees, is the output of the last ReLU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from geoframe.errors import BadInput


def mlp(inputs: int = 784, widths: Sequence[int] = (1024, 512), classes: int = 10) -> nn.Sequential:
    """Multi-layer perceptron with batch normalisation and ReLU: 784–1024–512–10 as in A.2.

    A plain chain of Flatten, Linear, BatchNorm1d and ReLU, so that rays through it can be searched exactly. The paper
    doesn't say where its batch normalisation stands; here it is between each hidden linear layer and its ReLU.

    Parameters
    ----------
    inputs : int
        Pixels of an image, all channels together; 64 for the 8×8 digits, 3072 for CIFAR.
    widths : sequence of int
        Hidden widths.
    classes : int
        Logits.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for width_in, width in zip((inputs, *widths), widths, strict=False):
        layers += [nn.Linear(width_in, width), nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear((inputs, *widths)[-1], classes))


def cnn(
    channels: int = 1,
    size: int = 28,
    widths: Sequence[int] = (16, 32),
    hidden: int = 128,
    classes: int = 10,
) -> nn.Sequential:
    """Convolutional network: 3×3 convolution, ReLU and 2×2 max pooling for each width, then two linear layers.

    The paper's "custom CNNs" aren't described; this one is ours: 16 and 32 channels, 128 hidden units, no batch
    normalisation, 206,922 parameters at 28×28.

    Parameters
    ----------
    channels, size : int
        Of the square images: 1 and 28 for MNIST, 1 and 8 for the digits, 3 and 32 for CIFAR.
    widths : sequence of int
        Channels of the convolutions; each halves the image.
    hidden, classes : int
        Hidden units, logits.
    """
    side = size // 2 ** len(widths)
    if side < 1:
        raise BadInput(f"cnn: {len(widths)} poolings leave nothing of a {size}×{size} image: give fewer widths")
    layers: list[nn.Module] = []
    for width_in, width in zip((channels, *widths), widths, strict=False):
        layers += [nn.Conv2d(width_in, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    flat = math.prod((widths[-1] if widths else channels, side, side))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, classes))
