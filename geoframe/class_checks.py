"""Labels that are no classes of an encoder: a likely mistake, refused where nothing else could be meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from geoframe.errors import BadInput

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import Images


def class_count(encoder: LoadedEncoder) -> int:
    """Return the number of classes that a classifier's head has; found once, and no progress."""
    return encoder.derived(_class_count)


def _class_count(encoder: LoadedEncoder) -> int:
    middle = torch.full((1, *encoder.input_shape), 0.5, dtype=encoder.dtype, device=encoder.device)
    with encoder.counted_as(0):
        return encoder.logits(middle).shape[1]


def check_labels(probe: str, encoder: LoadedEncoder, images: Images) -> None:
    """Refuse test images none of whose labels is a class of the encoder; images without labels are fine.

    Some may be others: they count as wrong, and have no loss of their own.
    """
    known = [label for label in images.labels if label >= 0]
    if known and min(known) >= class_count(encoder):
        raise BadInput(
            f"{probe}: no test image has a class of encoder {encoder.label!r} ({_ranges(encoder, known)}): number "
            "the labels as the encoder does, from 0, or give -1 where they are of other classes"
        )


def check_reference(probe: str, encoder: LoadedEncoder, name: str, labels: Iterable[int]) -> None:
    """Refuse a reference set none of whose labels is a class of the encoder: no ray could be drawn."""
    known = sorted(labels)
    if known[0] >= class_count(encoder):
        raise BadInput(
            f"{probe}: no reference image of {name!r} has a class of encoder {encoder.label!r} "
            f"({_ranges(encoder, known)}): number the labels as the encoder does, from 0"
        )


def _ranges(encoder: LoadedEncoder, labels: list[int]) -> str:
    return f"labels {min(labels)} to {max(labels)}, classes 0 to {class_count(encoder) - 1}"
