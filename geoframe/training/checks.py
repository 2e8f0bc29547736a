"""What can't be trained is refused in one line, before the first step."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from geoframe.errors import FAILURES, BadInput, EncoderRefused
from geoframe.training.data import Labelled


def check_trainable(training: str, module: nn.Module, data: Labelled, test: Labelled | None, batch: int) -> None:
    """Refuse a model that can't learn these labels from batches of that size, or draws at random in eval mode.

    Parameters
    ----------
    training : str
        Its name, for messages.
    module : torch.nn.Module
        The model; it is left in eval mode.
    data, test : Labelled
        Training images, and test images where there are some.
    batch : int

    Raises
    ------
    EncoderRefused, BadInput
        One line.
    """
    with torch.no_grad():
        images = data.normalised(data.pixels[:2])
        logits = _first_logits(training, module.eval(), images)
        if not torch.equal(logits, module(images)):
            raise EncoderRefused(
                f"training {training!r}: the model gives other logits for the same images in eval mode: "
                "something in it draws at random there, such as functional dropout without training=self.training"
            )
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise EncoderRefused(f"training {training!r}: the model has no parameters to train: give one that has")
    for images_of in (data, *([test] if test else ())):
        check_classes(training, images_of, logits.shape[1])
    single = min(batch, len(data.y)) == 1
    if single and any(isinstance(part, _BatchNorm) for part in module.modules()):
        what = "batch=1" if batch == 1 else f"the one image of probe set {data.label!r}"
        raise BadInput(
            f"training {training!r}: the model's batch normalisation knows no variance of a single image, and {what} "
            "gives it one at a time: use two or more"
        )


def check_classes(training: str, images: Labelled, classes: int) -> None:
    """Refuse labels for which a model has no logit."""
    largest = int(images.y.max())
    if largest >= classes:
        raise BadInput(
            f"training {training!r}: probe set {images.label!r} has labels up to {largest}, so the model needs "
            f"{largest + 1} classes, but it has {classes}: give the model more, or choose other images"
        )


def _first_logits(training: str, module: nn.Module, images: torch.Tensor) -> torch.Tensor:
    try:
        made = module(images)
    except FAILURES as error:  # the user's code can raise anything
        raise EncoderRefused(
            f"training {training!r}: the model fails on images of shape {tuple(images.shape[1:])}: {cause_of(error)}; "
            "correct the model or its input_shape"
        ) from error
    logits = check_logits(training, made, len(images))
    if not bool(torch.isfinite(logits).all()):
        raise EncoderRefused(
            f"training {training!r}: the untrained model returns NaN or infinite values: "
            "check its initial weights and its normalisation (mean, std)"
        )
    return logits


def check_logits(training: str, made: Any, n: int) -> torch.Tensor:
    """Return what a model made of n images if it is logits (n, class)."""
    if not isinstance(made, torch.Tensor):
        what = f"a {type(made).__name__}"
    elif made.ndim != 2 or len(made) != n or not made.is_floating_point():
        what = f"{str(made.dtype).removeprefix('torch.')} of shape {tuple(made.shape)} for {n} images"
    else:
        return made
    raise EncoderRefused(
        f"training {training!r}: the model returns {what}, not logits (image, class): "
        "wrap it in a module that returns those"
    )


def cause_of(error: BaseException) -> str:
    """First line of an error, or its type."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
