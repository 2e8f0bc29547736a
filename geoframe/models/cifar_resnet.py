"""ResNets for 32×32 images (He et al. 2015, §4.2), with parameter-free shortcuts ("option A").

Names of parameters are those of the public CIFAR-10 checkpoints (github.com/akamaster/pytorch_resnet_cifar10).
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from geoframe.models.width import scaled


class _Block(nn.Module):
    """Two 3×3 convolutions and a shortcut; between stages, it subsamples and pads channels with zeros."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride = stride
        self.pad = width - width_in

    def shortcut(self, x: torch.Tensor) -> torch.Tensor:
        if self.stride == 1 and not self.pad:
            return x
        before = self.pad // 2
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.pad - before))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class CifarResNet(nn.Module):
    """Three stages of `blocks` blocks, 16, 32, 64 channels times `width`; global average; one linear layer.

    Images (n, 3, 32, 32) to logits (n, classes); the last linear layer sees (n, 64) at `width=1`.
    """

    def __init__(self, blocks: int, classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        first, second, third = (scaled(channels, width) for channels in (16, 32, 64))
        self.conv1 = nn.Conv2d(3, first, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.layer1 = self._stage(first, first, blocks, 1)
        self.layer2 = self._stage(first, second, blocks, 2)
        self.layer3 = self._stage(second, third, blocks, 2)
        self.linear = nn.Linear(third, classes)
        self.apply(self._initialise)

    @staticmethod
    def _stage(width_in: int, width: int, blocks: int, stride: int) -> nn.Sequential:
        rest = [_Block(width, width, 1) for _ in range(blocks - 1)]
        return nn.Sequential(_Block(width_in, width, stride), *rest)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images (n, 3, height, width) to logits (n, classes)."""
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer3(self.layer2(self.layer1(out)))
        return cast(torch.Tensor, self.linear(out.mean(dim=(2, 3))))


def resnet20(classes: int = 10, width: float = 1.0) -> CifarResNet:
    """ResNet-20 for CIFAR: 269,722 parameters at 10 classes and `width=1`.

    Parameters
    ----------
    classes : int
        Logits.
    width : float
        Factor of all channels, rounded to at least 8 each; ours, so that a CPU can train the same shape smaller.
    """
    return CifarResNet(3, classes, width)
