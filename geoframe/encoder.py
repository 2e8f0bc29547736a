"""`Encoder`: the frozen specification of a map Φ from images to feature vectors. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.errors import BadInput
from geoframe.spec import Spec

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder
    from geoframe.probeset import ProbeSet

Coord = str | int | float | None
Shape = tuple[int, int, int]
PerChannel = float | tuple[float, ...]


@attrs.define(kw_only=True)
class Network:
    """What `Encoder.build` returns: modules on the CPU in float32, and how inputs reach them.

    Attributes
    ----------
    features : torch.nn.Module
        Normalised images (n, channel, height, width) to features (n, d): what the last linear layer sees.
    head : torch.nn.Module or None
        Features (n, d) to logits (n, class); None where there is no classifier.
    input_shape : tuple of int
        (channel, height, width) at which images are loaded.
    mean, std : float or tuple of float
        Normalisation of raw [0, 1] pixels, folded into Φ.
    source : str
        Where the weights come from, for provenance.
    layer : str
        Which layer's input Φ is, for provenance.
    training_set : ProbeSet or None
        The images it was trained on, where that is known: what probes take as reference if none is given.
    """

    features: torch.nn.Module
    head: torch.nn.Module | None = None
    input_shape: Shape
    mean: PerChannel = 0.0
    std: PerChannel = 1.0
    source: str = ""
    layer: str = ""
    training_set: ProbeSet | None = None


def as_shape(value: Any) -> Shape | None:
    """Return (channel, height, width) as a tuple of whole numbers, or None (an attrs converter)."""
    if value is None:
        return None
    sizes = tuple(value) if isinstance(value, Iterable) else ()
    if len(sizes) != 3 or any(not isinstance(size, Integral) or size < 1 for size in sizes):
        raise BadInput(f"shape {value!r:.80} should be (channel, height, width): three whole numbers, 1 or more")
    channel, height, width = map(int, sizes)
    return channel, height, width


def _per_channel(spec: Any, field: Any, value: Any) -> None:
    """Refuse a normalisation that isn't numbers (an attrs validator)."""
    values = value.tolist() if hasattr(value, "tolist") else value
    values = values if isinstance(values, tuple | list) else [values]
    if value is not None and not all(isinstance(v, Real) and math.isfinite(v) for v in values):
        raise BadInput(f"{type(spec).__name__}: {field.name}={value!r:.80} should be a number, or one for each channel")


def _positive(spec: Any, field: Any, value: Any) -> None:
    """Refuse a standard deviation that isn't positive (an attrs validator)."""
    values = value.tolist() if hasattr(value, "tolist") else value
    if value is not None and any(v <= 0 for v in (values if isinstance(values, tuple | list) else [values])):
        raise BadInput(f"{type(spec).__name__}: {field.name}={value!r:.80} should be above 0")


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Encoder(Spec):
    """How to build Φ: architecture, weights, input shape and normalisation.

    Subclasses implement `build`; everything else (device, precision, layout, preflight, derivatives)
    is done once, by `load`. Perturbations live in raw [0, 1] pixel space, before the normalisation.

    Attributes
    ----------
    input_shape : tuple of int or None
        (channel, height, width); None takes the model's own.
    mean, std : float, tuple of float, or None
        Normalisation per channel; None takes the model's own.
    """

    kind: ClassVar[str] = "encoder"
    in_process_only: ClassVar[bool] = False

    input_shape: Shape | None = attrs.field(default=None, converter=as_shape)
    mean: PerChannel | None = attrs.field(default=None, validator=_per_channel)
    std: PerChannel | None = attrs.field(default=None, validator=[_per_channel, _positive])

    @property
    def coords(self) -> dict[str, Coord]:
        """Labels that stand beside the encoder's name in the results (architecture, training, seed …)."""
        return {}

    @property
    def known_shape(self) -> Shape | None:
        """Shape of its images, where it is known without building it."""
        return self.input_shape

    @property
    def training_set(self) -> ProbeSet | None:
        """The images it was, or will be, trained on, where that is known."""
        return None

    def build(self) -> Network:
        """Build the network, on the CPU, in float32; raise `MissingFile` where weights are absent."""
        raise NotImplementedError(f"{type(self).__name__} does not implement build()")

    def source_digest(self) -> str | None:
        """Cheap digest of local weights, without building or downloading; None where there is none."""
        return None

    def missing(self) -> str:
        """Say what of the weights can't be found, without a download; "" where all is there, or that isn't known."""
        return ""

    def randomised(self) -> Encoder:
        """Return the same architecture with random weights, under the same name."""
        return self

    def smoke(self) -> Encoder:
        """Return what preset `smoke` measures: the copy with random weights, which needs no data and no download."""
        return self.randomised()

    def for_timing(self) -> Encoder | None:
        """Return what costs the same and can be built without a download, or None where nothing is known to."""
        if type(self).randomised is Encoder.randomised and not self.in_process_only:
            return None
        return self.randomised()

    def load(self, device: str = "cpu", **options: Any) -> LoadedEncoder:
        """Build the network and make it ready to measure on `device` (see `LoadedEncoder`)."""
        from geoframe.loaded import LoadedEncoder

        return LoadedEncoder.of(self, device=device, **options)
