"""How well a network does on labelled images: what is logged at each checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from geoframe.sources import source_of
from geoframe.training.data import Labelled

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

EVALUATED = 1000  # images a forward pass
Tested = list[str | None] | None


def loss_and_accuracy(module: nn.Module, data: Labelled) -> tuple[float, float]:
    """Mean cross-entropy, and the share of images whose largest logit is their label's.

    Of images as they are (no augmentation, no attack); the module has to be in eval mode.
    """
    loss, right = 0.0, 0
    with torch.no_grad():
        for images, labels in _parts(data):
            logits = module(data.normalised(images)).cpu()
            loss += float(cross_entropy(logits.double(), labels, reduction="sum"))
            right += int((logits.argmax(1) == labels).sum())
    return loss / len(data.y), right / len(data.y)


def _parts(data: Labelled) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return zip(torch.split(data.pixels, EVALUATED), torch.split(data.y, EVALUATED), strict=True)


def scores(tested: Tested, module: nn.Module, data: Labelled, test: Labelled | None) -> dict[str, Any]:
    """Return what the log says of a network in eval mode, and on which test set."""
    found: dict[str, Any] = {"test": tested, "test_images": None if test is None else len(test.y)}
    for split, images in (("train", data), ("test", test)):
        loss, accuracy = (None, None) if images is None else loss_and_accuracy(module, images)
        found |= {f"{split}_loss": loss, f"{split}_accuracy": accuracy}
    return found


def tested_on(training: Training) -> Tested:
    """Stand for the test set, which isn't in the training's key, and the files behind it; None without one."""
    return None if training.test is None else [training.test.key, source_of(training.test)]


def has_scores(row: Any, tested: Tested) -> bool:
    """Whether a line of the log has all scores, on that test set."""
    return isinstance(row, dict) and "train_loss" in row and "test" in row and row["test"] == tested
