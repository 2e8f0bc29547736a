"""Wide residual networks for 32×32 images (Zagoruyko and Komodakis 2016), which neither timm nor torchvision has."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from geoframe.errors import BadInput
from geoframe.models.width import scaled


class _Block(nn.Module):
    """Normalisation and ReLU before each of two 3×3 convolutions; a 1×1 convolution where the shape changes."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(width_in)
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        same = stride == 1 and width_in == width
        self.shortcut = None if same else nn.Conv2d(width_in, width, 1, stride=stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = F.relu(self.bn1(x))
        out = self.conv2(F.relu(self.bn2(self.conv1(active))))
        return cast(torch.Tensor, out + (x if self.shortcut is None else self.shortcut(active)))


class WideResNet(nn.Module):
    """A 3×3 convolution, three stages of (depth − 4)/6 blocks, normalisation, ReLU, global average, one linear layer.

    16, then 16, 32, 64 times `widen` channels; no dropout. Initial weights as in the authors' code: normal with
    variance 2 / (kernel area × output channels) for convolutions.

    Parameters
    ----------
    depth : int
        6n + 4: 16, 22, 28, 40 …
    widen : float
        The paper's k.
    classes : int
        Logits.
    width : float
        Factor of all channels (ours), the first convolution's included.
    """

    def __init__(self, depth: int, widen: float, classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise BadInput(f"WideResNet: depth={depth!r} should be 6n + 4 with n blocks a stage: 16, 22, 28, 40 …")
        blocks = (depth - 4) // 6
        stem, *stages = (scaled(round(channels), width) for channels in (16, 16 * widen, 32 * widen, 64 * widen))
        self.conv1 = nn.Conv2d(3, stem, 3, padding=1, bias=False)
        self.layer1 = self._stage(stem, stages[0], blocks, 1)
        self.layer2 = self._stage(stages[0], stages[1], blocks, 2)
        self.layer3 = self._stage(stages[1], stages[2], blocks, 2)
        self.bn = nn.BatchNorm2d(stages[2])
        self.linear = nn.Linear(stages[2], classes)
        self.apply(self._initialise)

    @staticmethod
    def _stage(width_in: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        rest = [_Block(width, width, 1) for _ in range(blocks - 1)]
        return nn.Sequential(_Block(width_in, width, stride), *rest)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images (n, 3, height, width) to logits (n, classes)."""
        out = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return cast(torch.Tensor, self.linear(F.relu(self.bn(out)).mean(dim=(2, 3))))
