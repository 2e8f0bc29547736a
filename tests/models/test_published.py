from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import geoframe as gf
from geoframe.models import published
from geoframe.models.published import cifar_model, digits_model, imagenette_model, mnist_model


def parameters(model: gf.FactoryEncoder) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in model._function()(**model.kwargs).parameters())


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (mnist_model("mlp"), 1_336_842),
        (mnist_model("cnn"), 206_922),
        (mnist_model("vit"), 305_034),
        (cifar_model("mlp"), 8_408_074),
        (cifar_model("cnn"), 620_362),
        (cifar_model("vit"), 2_712_010),
        (cifar_model("resnet20"), 269_722),
        (cifar_model("resnet18"), 11_173_962),
        (cifar_model("vgg16"), 14_728_266),
        (cifar_model("wrn28_10"), 36_479_194),
    ],
)
def test_sizes_are_those_of_the_packages_table(model, expected):
    assert parameters(model) == expected
    assert f"{expected:,}" in sys.modules["geoframe.models"].__doc__


def test_arguments_and_normalisation():
    same = gf.FactoryEncoder("geoframe.models.small:mlp", input_shape=(1, 28, 28), mean=0.5, std=0.5)
    assert mnist_model("mlp").key == same.key
    narrow = cifar_model("resnet18", width=0.25, mean=published.CIFAR_MEAN, std=published.CIFAR_STD)
    assert narrow.kwargs == {"width": 0.25}
    assert (narrow.mean, narrow.std) == (published.CIFAR_MEAN, published.CIFAR_STD)
    assert cifar_model("mlp", classes=100).kwargs["classes"] == 100
    assert digits_model("mlp").build().features(torch.rand(2, 1, 8, 8)).shape == (2, 64)


@pytest.mark.parametrize("make", [digits_model, mnist_model, cifar_model, imagenette_model])
def test_unknown_architectures(make):
    with pytest.raises(gf.UnknownName, match="no architecture 'alexnet'; known: "):
        make("alexnet")


def test_imagenettes_models_say_which_weights():
    head = {"num_classes": 10}
    resnet = gf.TorchvisionEncoder("resnet50", weights="IMAGENET1K_V1", model_kwargs=head)
    assert imagenette_model("resnet50").key == resnet.key
    deit = gf.TimmEncoder("deit_small_patch16_224.fb_in1k", pretrained=False, model_kwargs=head)
    assert imagenette_model("deit_small_patch16_224", pretrained=False).key == deit.key
    for name in published._IMAGENETTE:
        imagenette_model(name).check_source()


def test_specifications_import_no_torch():
    code = "import sys, geoframe.models.published as p; p.cifar_model('vgg16'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
