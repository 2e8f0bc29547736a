"""`Probe`: one measurement, encoder × images → named, dimensioned arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import attrs

from geoframe.spec import Spec

if TYPE_CHECKING:
    import torch

    from geoframe.encoder import Shape
    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import Images, ProbeSet

P = TypeVar("P", bound="Probe")


def _names(dims: Sequence[str]) -> tuple[str, ...]:
    return (dims,) if isinstance(dims, str) else tuple(dims)


@attrs.frozen
class Output:
    """Declaration of one variable that a probe returns.

    Attributes
    ----------
    dims : tuple of str
        Dimensions after `image` (which is implied unless the probe is `per = "set"`).
    units, long_name : str
        Stored with the variable; the long name defaults to the variable's name.
    shared : bool
        The same for all images of a cell, without the `image` dimension, and so stored as a coordinate: a table of
        ids, say. One that is named like its only dimension numbers that dimension, and is what results are aligned
        by: `"direction": Output(("direction",), dtype="int64", shared=True)` says which of a thousand directions the
        sixteen measured ones are. (Labels that are known before anything is measured come from `Probe.coords`.)
    dtype : str
        numpy dtype in the store. Missing values are NaN, −1, False or "".
    """

    dims: tuple[str, ...] = attrs.field(default=(), converter=_names)
    units: str = attrs.field(default="1", kw_only=True)
    long_name: str = attrs.field(default="", kw_only=True)
    dtype: str = attrs.field(default="float64", kw_only=True)
    shared: bool = attrs.field(default=False, kw_only=True)


@attrs.define
class Batch:
    """The images that one call of `Probe.measure` sees.

    Attributes
    ----------
    images : torch.Tensor
        (image, channel, height, width), raw [0, 1] pixels, on the encoder's device.
    labels : torch.Tensor
        (image,), int64, −1 where unknown, on the encoder's device.
    ids : tuple of str
        Image ids.
    rng : tuple of torch.Generator
        One CPU stream an image, keyed by the probe's seed and the image's id.
    """

    images: torch.Tensor
    labels: torch.Tensor
    ids: tuple[str, ...]
    rng: tuple[torch.Generator, ...]


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Probe(Spec):
    """One measurement. A subclass declares `version` and `outputs`, and implements `measure`.

    `images_per_block` images are stored at a time, or fewer where `images_per_call` is given and each takes many of
    the planned passes (see `geoframe.measuring.blocks`).

    The base does batching, device, precision, seeds, labelling, checks and storage. Change `version`
    whenever the numbers change.

    Attributes
    ----------
    seed : int
        Seed of everything random in the measurement.
    """

    kind: ClassVar[str] = "probe"
    outputs: ClassVar[Mapping[str, Output]] = {}
    needs: ClassVar[frozenset[str] | set[str]] = frozenset()
    per: ClassVar[Literal["image", "set"]] = "image"
    images_per_call: ClassVar[int | None] = None
    images_per_block: ClassVar[int] = 64

    seed: int = attrs.field(default=0, validator=attrs.validators.instance_of(int))

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure a batch.

        Returns
        -------
        mapping of str to tensor or array
            For each declared output, shape (image, *dims), or (*dims) where it is shared or the probe is
            `per = "set"`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement measure()")

    def check_inputs(self, encoder: LoadedEncoder, images: Images) -> None:
        """Refuse, by `BadInput`, a whole set of images with which nothing could be measured; called for each block."""

    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Coordinates of the outputs' own dimensions; a dimension left out is numbered from 0."""
        return {}

    def declared(self) -> Mapping[str, Output]:
        """Return the outputs of this instance: `outputs`, unless fields decide about units, say, or what is stored."""
        return self.outputs

    def dims_of(self, output: str) -> tuple[str, ...]:
        """Return all dimensions of an output, `image` included where it has it."""
        declared = self.declared()[output]
        return declared.dims if self.per == "set" or declared.shared else ("image", *declared.dims)

    def forward_passes(self) -> float:
        """Return the planned cost, in forward passes, of one image (of the whole set where `per = "set"`).

        For progress and `--dry-run`: whatever an image really takes, it moves the progress by this much in the end.
        """
        return 1.0

    def planned_passes(self, shape: Shape | None, training_set: ProbeSet | None) -> float:
        """Return the same for an encoder of which input shape and training images are known, or None.

        Override this one where they decide about the cost.
        """
        return self.forward_passes()

    def timed(self) -> bool:
        """Whether batch size and derivatives are chosen by timing when a cell starts: last digits depend on it."""
        return False

    def smoke(self: P) -> P:
        """Return the smallest version of this measurement that runs all of its code (preset `smoke`)."""
        return self
