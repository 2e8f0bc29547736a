from __future__ import annotations

import torch

from geoframe.models.cifar_resnet import _Block, resnet20


def test_size_and_output():
    net = resnet20(classes=7).eval()
    assert sum(p.numel() for p in net.parameters()) == 269_722 + 65 * (7 - 10)
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 7)


def test_the_shortcut_has_no_parameters_and_pads_channels_on_both_sides():
    x = torch.rand(1, 4, 6, 6)
    out = _Block(4, 8, 2).shortcut(x)
    assert out.shape == (1, 8, 3, 3)
    assert torch.equal(out[:, 2:6], x[:, :, ::2, ::2])
    assert not out[:, :2].any()
    assert not out[:, 6:].any()
