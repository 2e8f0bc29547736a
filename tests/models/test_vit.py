from __future__ import annotations

import pytest
import torch

import geoframe as gf
from geoframe.models.vit import vit


@pytest.mark.parametrize(
    ("kwargs", "shape", "parameters", "tokens"),
    [
        ({}, (1, 28, 28), 305_034, 17),
        ({"channels": 3, "size": 32, "patch": 8, "dim": 192, "heads": 3}, (3, 32, 32), 2_712_010, 17),
    ],
)
def test_the_papers_patches_and_dimensions(kwargs, shape, parameters, tokens):
    net = vit(**kwargs).eval()
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert net.pos_embed.shape == (1, tokens, kwargs.get("dim", 64))
    assert net.patch_embed.proj.kernel_size == (kwargs.get("patch", 7),) * 2
    with torch.no_grad():
        assert net(torch.rand(2, *shape)).shape == (2, 10)


def test_nothing_is_random_while_it_trains():
    net = vit(dim=16, depth=1, heads=2, classes=3).train()
    x = torch.rand(2, 1, 28, 28)
    assert torch.equal(net(x), net(x))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"patch": 8}, "8×8 don't tile a 28×28 image"), ({"dim": 65}, "4 heads don't divide dim=65")],
)
def test_what_does_not_fit(kwargs, message):
    with pytest.raises(gf.BadInput, match=message):
        vit(**kwargs)
