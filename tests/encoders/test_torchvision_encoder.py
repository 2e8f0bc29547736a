from __future__ import annotations

import pytest
import torch
import torchvision

import geoframe as gf


def _random(model, **kwargs):
    return gf.TorchvisionEncoder(model, weights=None, **kwargs)


@pytest.mark.parametrize(
    ("model", "layer", "width"),
    [("resnet18", "fc", 512), ("mobilenet_v3_small", "classifier.3", 1024), ("regnet_y_400mf", "fc", 440)],
)
def test_split(model, layer, width):
    network = _random(model).build()
    x = torch.rand(2, 3, 64, 64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        whole = torchvision.models.get_model(model).eval()
    with torch.no_grad():
        features = network.features(x)
        assert torch.equal(network.head(features), whole(x))
    assert features.shape == (2, width)
    assert network.layer == layer
    assert network.input_shape == (3, 224, 224)
    assert network.mean == (0.485, 0.456, 0.406)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "layer", "width"),
    [
        ("resnet50", "fc", 2048),
        ("convnext_tiny", "classifier.2", 768),
        ("vit_b_16", "heads.head", 768),
        ("vgg16", "classifier.6", 4096),
        ("inception_v3", "fc", 2048),
        ("swin_t", "head", 768),
    ],
)
def test_split_of_large_models(model, layer, width):
    network = _random(model).build()
    with torch.no_grad():
        assert network.features(torch.rand(1, *network.input_shape)).shape == (1, width)
    assert network.layer == layer


def test_the_seed_decides_and_the_global_generator_does_not():
    before = torch.get_rng_state()
    first, again, other = (_random("resnet18", seed=seed).build().head.weight for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_names_coords_and_keys():
    trained = gf.TorchvisionEncoder("resnet50", weights="IMAGENET1K_V2")
    assert trained.label == "resnet50"
    assert trained.coords == {"architecture": "resnet50", "training": "imagenet", "weights": "IMAGENET1K_V2"}
    assert _random("resnet50").label == "resnet50-random"
    assert _random("resnet50").coords == {"architecture": "resnet50", "training": "random", "seed": 0}
    assert trained.randomised().label == "resnet50"
    assert trained.randomised().key == _random("resnet50").key != trained.key
    member = torchvision.models.ResNet50_Weights.IMAGENET1K_V2
    for weights in (member, "ResNet50_Weights.IMAGENET1K_V2"):
        assert gf.TorchvisionEncoder("resnet50", weights=weights).key == trained.key


@pytest.mark.parametrize(
    ("model", "weights", "message"),
    [
        ("resnt50", None, "no model 'resnt50'; did you mean 'resnet50'"),
        ("resnet50", "IMAGENET1K_V3", "no weights 'IMAGENET1K_V3' for resnet50; did you mean 'IMAGENET1K_V2'"),
    ],
)
def test_unknown_names(model, weights, message):
    with pytest.raises(gf.UnknownName, match=message):
        gf.TorchvisionEncoder(model, weights=weights).build()


@pytest.mark.parametrize("place", ["data/weights", "torch/hub/checkpoints"])
def test_weights_from_a_file(weights, tmp_path, place):
    name = "resnet18-f37072fd.pth"
    path = tmp_path / place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    state = torchvision.models.resnet18().state_dict()
    torch.save(state, path)
    encoder = gf.TorchvisionEncoder("resnet18")
    network = encoder.build()
    assert torch.equal(network.head.weight, state["fc.weight"])
    assert torch.equal(network.features.conv1.weight, state["conv1.weight"])
    assert network.source == str(path)
    assert (encoder.source_digest() is None) == (place == "torch/hub/checkpoints")


def test_weights_of_another_model(weights):
    torch.save({"fc.weight": torch.rand(2)}, weights / "resnet18-f37072fd.pth")
    with pytest.raises(gf.BadInput, match="torchvision can't build 'resnet18'") as caught:
        gf.TorchvisionEncoder("resnet18").build()
    assert "\n" not in str(caught.value)


def test_a_missing_download_says_where_the_file_belongs(weights, tmp_path, monkeypatch):
    def offline(*_args, **_kwargs):
        from urllib.error import URLError

        raise URLError("no route to host")

    monkeypatch.setattr("torch.hub.download_url_to_file", offline)
    with pytest.raises(gf.MissingFile, match="no route to host") as caught:
        gf.TorchvisionEncoder("resnet50", weights="IMAGENET1K_V2").build()
    message = str(caught.value)
    assert "https://download.pytorch.org/models/resnet50-11ad3fa6.pth" in message
    assert str(weights / "resnet50-11ad3fa6.pth") in message
    assert str(tmp_path / "torch/hub/checkpoints/resnet50-11ad3fa6.pth") in message
