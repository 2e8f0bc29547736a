"""Images held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet, Record


def _float_array(value: Any) -> Any:
    """Copy a torch tensor or an array into a read-only float32 numpy array, so that nothing changes it later."""
    import numpy as np

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.floating):
        raise BadInput(f"TensorSet: x has dtype {array.dtype}: give floats in [0, 1] (8-bit values divided by 255)")
    array = np.array(array, dtype=np.float32, order="C")
    if array.ndim != 4 or 0 in array.shape:
        raise BadInput(f"TensorSet: x has shape {array.shape}: give (image, channel, height, width), not empty")
    least, most = array.min(), array.max()
    if not (np.isfinite(least) and np.isfinite(most)):
        raise BadInput("TensorSet: x holds NaN or infinite values")
    if least < 0 or most > 1:
        raise BadInput(f"TensorSet: x has values from {least:g} to {most:g}: give raw pixels, in [0, 1]")
    array.setflags(write=False)
    return array


def _labels(value: Any) -> tuple[int, ...]:
    value = value.tolist() if hasattr(value, "tolist") else value
    try:
        labels = tuple(int(label) for label in value)
        whole = all(label == given and abs(label) < 2**63 for label, given in zip(labels, value, strict=True))
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise BadInput(f"TensorSet: labels={value!r:.80} should be whole numbers, one an image")
    return labels


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in value)


@attrs.frozen(slots=False, eq=False)
class TensorSet(ProbeSet):
    """Images given as one tensor, keyed by its bytes; they must have the encoder's input shape.

    Attributes
    ----------
    x : torch.Tensor or numpy array
        (image, channel, height, width), floats in [0, 1] (may be given by position). Copied, as float32.
    labels : sequence of int or None
        One an image; None is −1 for all.
    ids : sequence of str or None
        One an image, unique; None is "0", "1", … An image's random directions are keyed by its id.
    """

    x: Any = attrs.field(converter=_float_array, repr=lambda x: f"<{'×'.join(map(str, x.shape))}>")
    labels: tuple[int, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(_labels), kw_only=True
    )
    ids: tuple[str, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(_ids), kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for field, values in (("labels", self.labels), ("ids", self.ids)):
            if values is not None and len(values) != len(self.x):
                raise BadInput(f"TensorSet: {len(values)} {field} for {len(self.x)} images")

    def default_name(self) -> str:
        """Return "tensor"."""
        return "tensor"

    def count(self) -> int:
        """Return the number of images."""
        return len(self.x)

    def classes(self) -> int | None:
        """Return the number of different labels."""
        return len(set(self.labels) - {-1}) if self.labels else None

    def records(self) -> Iterator[Record]:
        """Yield the images in order."""
        import torch

        ids = self.ids or tuple(str(i) for i in range(len(self.x)))
        labels = self.labels or (-1,) * len(self.x)
        for name, label, pixels in zip(ids, labels, self.x, strict=True):
            yield Record(name, label, torch.tensor(pixels))

    def smoke(self) -> ProbeSet:
        """Return the first image alone."""
        labels, ids = self.labels and self.labels[:1], self.ids and self.ids[:1]
        return self.evolve(x=self.x[:1], labels=labels, ids=ids, name=self.label)
