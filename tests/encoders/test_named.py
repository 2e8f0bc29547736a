"""What a name on the command line stands for; nothing is built."""

from __future__ import annotations

import pytest

import geoframe as gf
from geoframe.encoders import named
from geoframe.encoders.named import named_encoder
from geoframe.errors import BadInput, UnknownName


@pytest.mark.parametrize(
    ("model", "options", "expected", "origin"),
    [
        (
            "resnet50",
            {},
            gf.TorchvisionEncoder("resnet50", weights="IMAGENET1K_V2"),
            "torchvision's, IMAGENET1K_V2 (timm has one of that name too: --from timm)",
        ),
        ("resnet50", {"library": "timm"}, gf.TimmEncoder("resnet50"), "timm's, pretrained"),
        ("resnet50.a1_in1k", {}, gf.TimmEncoder("resnet50.a1_in1k"), "timm's, pretrained"),
        ("vit_b_16", {}, gf.TorchvisionEncoder("vit_b_16", weights="IMAGENET1K_V1"), "torchvision's, IMAGENET1K_V1"),
        ("vit_small_patch16_224", {}, gf.TimmEncoder("vit_small_patch16_224"), "timm's, pretrained"),
        (
            "convnext_tiny",
            {"library": "torchvision", "random": True, "seed": 4},
            gf.TorchvisionEncoder("convnext_tiny", weights=None, seed=4),
            "torchvision's, random",
        ),
        ("resnet18d", {"random": True}, gf.TimmEncoder("resnet18d", pretrained=False), "timm's, random"),
        ("efficientnet_lite0", {"random": True}, gf.EfficientNetLite0(pretrained=False), "random"),
        ("efficientnet_lite0", {"library": "timm"}, gf.TimmEncoder("efficientnet_lite0"), "timm's, pretrained"),
        (
            "geoframe.models.small:mlp",
            {"input_shape": (1, 28, 28), "mean": 0.5},
            gf.FactoryEncoder("geoframe.models.small:mlp", input_shape=(1, 28, 28), mean=0.5),
            "built by geoframe.models.small:mlp",
        ),
    ],
)
def test_what_is_taken(model, options, expected, origin):
    encoder, said = named_encoder(model, **options)
    assert encoder.identity() == expected.identity()
    assert encoder.label == expected.label
    assert said == origin


@pytest.mark.parametrize("installed", [True, False])
def test_lite0_is_the_package_where_it_is_installed(installed, monkeypatch):
    monkeypatch.setattr(named, "weights_installed", lambda: installed)
    monkeypatch.setattr(gf.EfficientNetLite0, "check_source", lambda self: None)
    encoder, origin = named_encoder("efficientnet_lite0")
    assert type(encoder) is (gf.EfficientNetLite0 if installed else gf.TimmEncoder)
    assert ("package" in origin) == installed


def test_unknown_names_have_near_ones_of_both_libraries():
    with pytest.raises(UnknownName, match="did you mean 'vit_b_16'"):
        named_encoder("vit_b_166")
    with pytest.raises(UnknownName, match="did you mean 'resnet18d'"):
        named_encoder("resnet18dd")
    with pytest.raises(UnknownName, match="torchvision has no model 'resnet18d'"):
        named_encoder("resnet18d", "torchvision")


def test_a_factory_needs_a_shape():
    with pytest.raises(BadInput, match="--input-shape 3x32x32"):
        named_encoder("geoframe.models.small:mlp")


@pytest.mark.parametrize(
    ("encoder", "shape"),
    [
        (gf.TimmEncoder("resnet50"), (3, 224, 224)),
        (gf.TimmEncoder("vit_small_patch16_384"), (3, 384, 384)),
        (gf.TimmEncoder("hf-hub:somebody/net"), None),
        (gf.TimmEncoder("resnet50", input_shape=(3, 64, 64)), (3, 64, 64)),
        (gf.TorchvisionEncoder("inception_v3"), (3, 299, 299)),
        (gf.TorchvisionEncoder("resnet50", weights=None, input_shape=(3, 32, 32)), (3, 32, 32)),
        (gf.EfficientNetLite0(), (3, 224, 224)),
        (gf.EfficientNetLite0(input_shape=(3, 96, 96)), (3, 96, 96)),
        (gf.FactoryEncoder("a:b", input_shape=(1, 8, 8)), (1, 8, 8)),
    ],
)
def test_expected_shapes(encoder, shape):
    assert encoder.expected_shape() == shape
