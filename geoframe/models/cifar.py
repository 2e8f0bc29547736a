"""CIFAR-10's classifiers of *Beyond Local Linearity* (A.2), and ResNet-20 of *Neural Expansion*: 32×32 RGB images.

The paper names ResNet-18, VGG-16 and WRN-28-10 without their CIFAR variants; which ones these are is our choice and
stands in each docstring. `width` is ours: a factor of all channels, rounded to at least 8 each, so that a CPU can
train the same shape smaller; `width=1` is the published network. Φ, what the last linear layer sees, is the pooled map
after the last ReLU.
"""

from __future__ import annotations

from torch import nn
from torchvision.models.resnet import BasicBlock
from torchvision.models.resnet import resnet18 as imagenet_resnet18
from torchvision.models.vgg import make_layers

from geoframe.models.cifar_resnet import resnet20
from geoframe.models.wide_resnet import WideResNet
from geoframe.models.width import scaled

__all__ = ["resnet18", "resnet20", "vgg16", "wrn28_10"]

# channels of the convolutions, "M" for 2×2 max pooling (Simonyan and Zisserman 2015, table 1, D)
_VGG16 = (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M")


def resnet18(classes: int = 10, width: float = 1.0) -> nn.Module:
    """ResNet-18 with the usual CIFAR stem: 11,173,962 parameters at 10 classes and `width=1`; Φ has 512 numbers.

    torchvision's network and initialisation, where the first convolution is 3×3 with stride 1 and there is no max
    pooling, so that the four stages see 32, 16, 8 and 4 pixels a side.

    Parameters
    ----------
    classes : int
        Logits.
    width : float
        Factor of all channels.
    """
    net: nn.Module = imagenet_resnet18(num_classes=classes)
    sizes = [scaled(channels, width) for channels in (64, 128, 256, 512)]
    net.conv1 = nn.Conv2d(3, sizes[0], 3, padding=1, bias=False)
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
    net.maxpool = nn.Identity()
    if width != 1:
        net.bn1 = nn.BatchNorm2d(sizes[0])
        for place, (before, channels) in enumerate(zip(sizes[:1] + sizes, sizes, strict=False), 1):
            net.set_submodule(f"layer{place}", _stage(before, channels, 1 if place == 1 else 2))
        net.fc = nn.Linear(sizes[-1], classes)
    return net


def vgg16(classes: int = 10, width: float = 1.0) -> nn.Sequential:
    """VGG-16 with batch normalisation and one linear layer: 14,728,266 parameters at 10 classes and `width=1`.

    torchvision's `vgg16_bn` up to its last pooling, which leaves one pixel of a 32×32 image, with its initialisation;
    the two hidden layers of 4096, made for 224×224 images, are left out, so Φ has 512 numbers. A plain chain of layers,
    which the exact search reads too, but so deep that only its step search is quick.

    Parameters
    ----------
    classes : int
        Logits.
    width : float
        Factor of all channels.
    """
    layers = [size if isinstance(size, str) else scaled(size, width) for size in _VGG16]
    features: nn.Module = make_layers(layers, batch_norm=True)
    for module in features.modules():
        if isinstance(module, nn.Conv2d):
            _he(module)
            assert module.bias is not None
            nn.init.zeros_(module.bias)
    head = nn.Linear(scaled(512, width), classes)
    nn.init.normal_(head.weight, 0, 0.01)
    nn.init.zeros_(head.bias)
    return nn.Sequential(features, nn.Flatten(), head)


def wrn28_10(classes: int = 10, width: float = 1.0) -> WideResNet:
    """WRN-28-10 without dropout: 36,479,194 parameters at 10 classes and `width=1`; Φ has 640 numbers.

    Ours, after the authors' description: neither timm nor torchvision has wide ResNets for 32×32 images.

    Parameters
    ----------
    classes : int
        Logits.
    width : float
        Factor of all channels; 0.1 is WRN-28-1 with a first convolution of 8 instead of 16.
    """
    return WideResNet(28, 10, classes, width)


def _stage(before: int, channels: int, stride: int) -> nn.Sequential:
    """Two of torchvision's blocks, initialised as torchvision does."""
    same = stride == 1 and before == channels
    shortcut = (
        None if same else nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))
    )
    stage = nn.Sequential(BasicBlock(before, channels, stride, shortcut), BasicBlock(channels, channels))
    for module in stage.modules():
        if isinstance(module, nn.Conv2d):
            _he(module)
    return stage


def _he(convolution: nn.Conv2d) -> None:
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
