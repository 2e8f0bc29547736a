"""Fused networks are the same map; what can't be fused is left as it is."""

from __future__ import annotations

import pytest
import timm
import torch
import torchvision
from torch import nn

from geoframe.fusing import fused
from tests.networks import conv_net, loaded, relu_net

SHAPE = (3, 32, 32)


def trained_statistics(net: nn.Module) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                for tensor in (module.running_var, module.weight):
                    tensor.data.uniform_(0.5, 2)
                for tensor in (module.running_mean, module.bias):
                    tensor.data.normal_()
    return net.eval()


def norms(net: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in net.modules())


@pytest.mark.parametrize("library", ["torchvision", "timm", "sequence"])
def test_the_same_features_and_derivatives_with_fewer_layers(library: str) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if library == "torchvision":
            net: nn.Module = torchvision.models.resnet18(weights=None, num_classes=7)
        elif library == "timm":
            net = timm.create_model("efficientnet_lite0", pretrained=False, num_classes=7)
        else:
            net = conv_net()
    encoder = loaded(trained_statistics(net), shape=SHAPE)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    twin = fused(encoder)
    assert norms(twin.network) == 0 < norms(encoder.network)
    x, v = torch.rand(2, 3, *SHAPE)
    with torch.no_grad():
        for one, two in zip(encoder.pushforward(x, v), twin.pushforward(x, v), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5 * float(one.abs().max()))
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_passes_count_for_the_encoder() -> None:
    encoder = loaded(trained_statistics(conv_net()), shape=SHAPE)
    with torch.no_grad():
        fused(encoder).features(torch.rand(5, *SHAPE))
    assert encoder.passes == 5


class Reused(nn.Module):
    """The convolution's output is added to the normalised one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(x)
        return (h + self.norm(h)).flatten(1)


class Twice(Reused):
    """One normalisation for two convolutions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.norm(self.conv(x)) + self.norm(self.conv(x + 1))).flatten(1)


def hooked() -> nn.Module:
    net = conv_net()
    net[0].register_forward_hook(lambda _module, _inputs, output: 2 * output)
    return net


@pytest.mark.parametrize("make", [Reused, Twice, hooked, relu_net])
def test_what_cannot_be_fused_is_left(make: type[nn.Module]) -> None:
    shape = (1, 6, 6) if make is relu_net else SHAPE
    encoder = loaded(trained_statistics(make()), shape=shape)
    assert fused(encoder) is encoder


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_scripted_networks_are_left() -> None:
    encoder = loaded(torch.jit.script(trained_statistics(conv_net())), shape=SHAPE)
    assert fused(encoder) is encoder


class UsedElsewhere(Reused):
    """Only beyond the range of images does the other use show."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(x)
        return (torch.relu(self.norm(h)) + torch.relu(h - 40)).mean((2, 3))


class InPlace(Reused):
    """What is normalised is the convolution's output, changed in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(x)
        h += 1e-6 * h.square()
        return self.norm(h).flatten(1)


@pytest.mark.parametrize("make", [UsedElsewhere, InPlace])
def test_an_output_with_another_use_is_not_fused(make: type[nn.Module]) -> None:
    encoder = loaded(trained_statistics(make()), shape=SHAPE)
    assert fused(encoder) is encoder
