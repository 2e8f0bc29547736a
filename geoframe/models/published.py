"""The classifiers of both papers as specifications for `Training`: untrained, or pretrained with a new head.

Imports no torch. What the papers leave open is ours, and said in the factories' docstrings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from geoframe.encoder import PerChannel, Shape
from geoframe.encoders.factory import FactoryEncoder
from geoframe.encoders.model import ModelEncoder
from geoframe.encoders.timm import TimmEncoder
from geoframe.encoders.torchvision import TorchvisionEncoder
from geoframe.errors import UnknownName, did_you_mean

#: Mean and standard deviation of CIFAR-10's training pixels. *Beyond Local Linearity* doesn't give its normalisation.
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

FACTORIES = {
    "mlp": "geoframe.models.small:mlp",
    "cnn": "geoframe.models.small:cnn",
    "vit": "geoframe.models.vit:vit",
    "resnet18": "geoframe.models.cifar:resnet18",
    "resnet20": "geoframe.models.cifar:resnet20",
    "vgg16": "geoframe.models.cifar:vgg16",
    "wrn28_10": "geoframe.models.cifar:wrn28_10",
}
_DIGITS: dict[str, dict[str, Any]] = {
    "mlp": {"inputs": 64, "widths": (128, 64)},
    "cnn": {"size": 8, "widths": (16, 32), "hidden": 64},
}
_MNIST: dict[str, dict[str, Any]] = {"mlp": {}, "cnn": {}, "vit": {}}
_CIFAR: dict[str, dict[str, Any]] = {
    "mlp": {"inputs": 3072, "widths": (2048, 1024)},
    "cnn": {"channels": 3, "size": 32, "widths": (32, 64, 128), "hidden": 256},
    "vit": {"channels": 3, "size": 32, "patch": 8, "dim": 192, "heads": 3},
    "resnet18": {},
    "resnet20": {},
    "vgg16": {},
    "wrn28_10": {},
}
_IMAGENETTE = ("resnet50", "vgg16", "vit_b_16", "deit_small_patch16_224")


def digits_model(architecture: str, **kwargs: Any) -> FactoryEncoder:
    """Return "mlp" or "cnn" for 8×8 digits (ours, for runs offline), inputs to [-1, 1]; `kwargs` go to the factory."""
    return _model(architecture, _DIGITS, kwargs, (1, 8, 8))


def mnist_model(architecture: str, **kwargs: Any) -> FactoryEncoder:
    """Return "mlp", "cnn" or "vit" for MNIST and Fashion-MNIST (*Neural Expansion*, A.2); `kwargs` go to the factory.

    784–1024–512–10; 16 and 32 channels (ours); patches of 7×7 and 64 dimensions. Inputs to [-1, 1] (A.3).
    """
    return _model(architecture, _MNIST, kwargs, (1, 28, 28))


def cifar_model(architecture: str, *, mean: PerChannel = 0.5, std: PerChannel = 0.5, **kwargs: Any) -> FactoryEncoder:
    """Return one of the papers' networks for CIFAR-10.

    Parameters
    ----------
    architecture : str
        "mlp" (3072–2048–1024–10), "cnn" (32, 64 and 128 channels, 256 hidden units: ours), "vit" (patches of 8×8, 192
        dimensions) and "resnet20" of *Neural Expansion*; "resnet18", "vgg16" and "wrn28_10" of *Beyond Local
        Linearity*.
    mean, std : float or tuple of float
        Normalisation: to [-1, 1], as in *Neural Expansion*, A.3; `CIFAR_MEAN` and `CIFAR_STD` are usual too.
    **kwargs
        Of the factory: `width=0.25`, say.
    """
    return _model(architecture, _CIFAR, kwargs, (3, 32, 32)).evolve(mean=mean, std=std)


def imagenette_model(architecture: str, *, pretrained: bool = True) -> ModelEncoder:
    """Return an ImageNet model with a new head of 10 classes, to be fine-tuned on Imagenette (*Neural Expansion*, A.2).

    The paper names architectures, not weights; these are ours: torchvision's IMAGENET1K_V1 ("resnet50", "vgg16",
    "vit_b_16") and timm's fb_in1k ("deit_small_patch16_224"). Shape and normalisation are those of the weights. The
    paper's ViT-B keeps its 1000 classes in I.3: that is `TorchvisionEncoder("vit_b_16", weights="IMAGENET1K_V1")`.

    Parameters
    ----------
    architecture : str
        "resnet50", "vgg16", "vit_b_16" or "deit_small_patch16_224".
    pretrained : bool
        False: the library's random initialisation.
    """
    _check(architecture, _IMAGENETTE)
    head = {"num_classes": 10}
    if architecture.startswith("deit"):
        return TimmEncoder(f"{architecture}.fb_in1k", pretrained=pretrained, model_kwargs=head)
    return TorchvisionEncoder(architecture, weights="IMAGENET1K_V1" if pretrained else None, model_kwargs=head)


def _model(
    architecture: str, known: Mapping[str, Mapping[str, Any]], kwargs: Mapping[str, Any], shape: Shape
) -> FactoryEncoder:
    _check(architecture, known)
    options = {**known[architecture], **kwargs}
    return FactoryEncoder(FACTORIES[architecture], kwargs=options, input_shape=shape, mean=0.5, std=0.5)


def _check(architecture: str, known: Iterable[str]) -> None:
    if architecture not in known:
        raise UnknownName(f"no architecture {architecture!r}{did_you_mean(str(architecture), known)}")
