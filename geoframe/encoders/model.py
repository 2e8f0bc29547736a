"""`ModelEncoder`: base of the encoders that build a whole model and split its classifier off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.encoder import Encoder, Network, PerChannel, Shape
from geoframe.errors import BadInput

if TYPE_CHECKING:
    import torch


@attrs.define(kw_only=True)
class Model:
    """A whole model on the CPU in float32, and how inputs reach it.

    Attributes
    ----------
    module : torch.nn.Module
        Normalised images (n, channel, height, width) to logits (n, class), or to features.
    input_shape : tuple of int
        (channel, height, width).
    mean, std : float or tuple of float
        Normalisation of raw [0, 1] pixels.
    source : str
        Where the weights come from.
    headless : bool
        The weights hold no classifier: the last linear layer is left out of the network.
    """

    module: torch.nn.Module
    input_shape: Shape
    mean: PerChannel = 0.0
    std: PerChannel = 1.0
    source: str = ""
    headless: bool = False


def as_dict(value: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a mapping of options, so that nobody else can change it (an attrs converter)."""
    return dict(value)


def _auto_or_none(_spec: object, _field: object, value: object) -> None:
    if value not in ("auto", None):
        raise BadInput(f"head is 'auto' (the last linear layer) or None (measure the output itself), not {value!r}")


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ModelEncoder(Encoder):
    """Base of the encoders that build a whole model; subclasses implement `build_model`.

    Attributes
    ----------
    head : "auto" or None
        "auto": features are what the last linear layer sees, and that layer is the head. A model without a
        classifier (`num_classes=0`) gives its output and no head. None: the output itself, whatever made it.
    """

    head: str | None = attrs.field(default="auto", validator=_auto_or_none)

    def build_model(self) -> Model:
        """Build the whole model; `input_shape`, `mean` and `std` of the spec are already applied."""
        raise NotImplementedError(f"{type(self).__name__} does not implement build_model()")

    def check_source(self) -> None:
        """Check names and local files without building: raise `BadInput`, or return quietly."""

    def expected_shape(self) -> Shape | None:
        """Shape of its images, asked of the library without building anything; None where only building tells."""
        return self.input_shape

    def build(self) -> Network:
        """Build the model and split it before its last linear layer: Φ is its input (*Beyond Local Linearity*, A.2)."""
        from geoframe.encoders.split import OUTPUT, Split, split_head

        model = self.build_model()
        module = model.module.float().eval()
        if self.head is None or getattr(module, "num_classes", None) == 0:
            parts = Split(module, None, OUTPUT)
        else:
            parts = split_head(module, model.input_shape, self.label)
        return Network(
            features=parts.features,
            head=None if model.headless else parts.head,
            input_shape=model.input_shape,
            mean=model.mean,
            std=model.std,
            source=model.source,
            layer=parts.layer,
        )

    def framed(self, module: torch.nn.Module, shape: Shape, mean: PerChannel, std: PerChannel, source: str) -> Model:
        """Return a `Model` whose shape and normalisation are this spec's, or else the library's."""
        return Model(
            module=module,
            input_shape=self.input_shape or shape,
            mean=mean if self.mean is None else self.mean,
            std=std if self.std is None else self.std,
            source=source,
        )
