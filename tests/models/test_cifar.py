from __future__ import annotations

import pytest
import torch
import torchvision

import geoframe as gf
from geoframe.models.cifar import resnet18, resnet20, vgg16, wrn28_10
from geoframe.models.cifar_resnet import CifarResNet
from geoframe.models.wide_resnet import WideResNet
from geoframe.models.width import scaled

ALL = (resnet18, resnet20, vgg16, wrn28_10)


def parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("make", "published", "features"),
    [
        (resnet18, 11_173_962, 512),
        (resnet20, 269_722, 64),
        (vgg16, 14_728_266, 512),
        (wrn28_10, 36_479_194, 640),
    ],
)
def test_published_sizes(make, published, features):
    with torch.device("meta"):
        assert parameters(make()) == published
        assert parameters(make(classes=100)) == published + 90 * (features + 1)


@pytest.mark.parametrize("make", ALL)
def test_one_factor_for_all_channels(make):
    with torch.device("meta"):
        full, narrow, odd = (dict(make(width=width).named_parameters()) for width in (1, 0.25, 0.7))
    assert list(narrow) == list(full) == list(odd)
    for name, parameter in full.items():
        sizes = zip(parameter.shape[:2], narrow[name].shape[:2], odd[name].shape[:2], strict=True)
        for size, less, other in sizes:
            fixed = size in (3, 10)
            assert (less, other) == ((size, size) if fixed else (max(8, size // 4), round(0.7 * size))), name
        assert parameter.shape[2:] == narrow[name].shape[2:]


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("width", [0.01, 0.3])
def test_narrow_ones_take_images(make, width):
    assert make(classes=7, width=width).eval()(torch.rand(2, 3, 32, 32)).shape == (2, 7)


@pytest.mark.parametrize("width", [0, -1, float("nan"), float("inf")])
def test_a_width_that_is_none(width):
    with pytest.raises(gf.BadInput, match="factor of all channels"):
        scaled(64, width)


def test_the_cifar_stem_keeps_the_resolution():
    sides = {}
    net = resnet18(width=0.125).eval()
    for place in (1, 2, 3, 4):
        net.get_submodule(f"layer{place}").register_forward_hook(
            lambda _module, _inputs, made, place=place: sides.update({place: made.shape[2]})
        )
    net(torch.rand(1, 3, 32, 32))
    assert sides == {1: 32, 2: 16, 3: 8, 4: 4}


def test_beyond_the_stem_it_is_torchvisions_resnet18():
    ours, theirs = resnet18(), torchvision.models.resnet18(num_classes=10)
    state = {k: v for k, v in theirs.state_dict().items() if k != "conv1.weight"}
    assert ours.load_state_dict(state, strict=False).missing_keys == ["conv1.weight"]
    ours.conv1, ours.maxpool = theirs.conv1, theirs.maxpool
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(ours.eval()(x), theirs.eval()(x))


def test_a_narrow_resnet18_has_the_full_ones_layers():
    full, other = resnet18(), resnet18(width=1.0001)  # built by another path; the same channels
    other.load_state_dict(full.state_dict())
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(other.eval()(x), full.eval()(x))


def test_vgg_has_the_convolutions_of_torchvisions_vgg16_bn():
    with torch.device("meta"):
        theirs = torchvision.models.vgg16_bn().features.state_dict()
        ours = vgg16()[0].state_dict()
    assert {k: v.shape for k, v in ours.items()} == {k: v.shape for k, v in theirs.items()}


@pytest.mark.parametrize("make", ALL)
def test_initial_maps_keep_their_size(make):
    torch.manual_seed(0)
    net = make(width=0.25)
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            fans = module.weight[0].numel(), module.weight.shape[0] * module.weight[0, 0].numel()
            fan = fans[0] if isinstance(net, CifarResNet) else fans[1]
            assert float(module.weight.detach().square().mean() * fan) == pytest.approx(2, rel=0.2)


def test_a_wide_resnets_residual_starts_before_its_normalisation():
    net = WideResNet(10, 1).eval()
    first = net.layer1[0]
    assert first.shortcut is None
    x = torch.randn(1, 16, 8, 8)
    with torch.no_grad():
        first.conv2.weight.zero_()
        assert torch.equal(first(x), x)
    with pytest.raises(gf.BadInput, match="depth=12 should be 6n"):
        WideResNet(12, 1)


def test_the_narrowest_resnet20_subsamples_without_new_channels():
    net = resnet20(width=0.5)  # 8, 16, 32
    assert net.layer2[0].pad == 8
    narrow = resnet20(width=0.25)  # 8, 8, 16
    assert narrow.layer2[0].pad == 0
    assert narrow.layer2[0].shortcut(torch.rand(1, 8, 6, 6)).shape == (1, 8, 3, 3)
