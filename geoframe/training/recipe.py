"""`Training`: the frozen recipe of a training, whose digest names its checkpoints. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import attrs

from geoframe.encoder import Coord
from geoframe.encoders.model import ModelEncoder
from geoframe.errors import BadInput, UnknownName, did_you_mean
from geoframe.probeset import ProbeSet
from geoframe.spec import Spec, unkeyed

OPTIMISERS = ("sgd",)


def _epochs(value: Any) -> Any:
    if isinstance(value, int):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) else value


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):  # the validator says what it should be
        return value


def _should_be(wanted: str, holds: Callable[[Any], bool]) -> Any:
    """Refuse what isn't wanted, by the field's name (an attrs validator)."""

    def validate(spec: Any, field: Any, value: Any) -> None:
        if not holds(value):
            raise BadInput(f"{type(spec).__name__}: {field.name}={value!r:.80} should be {wanted}")

    return validate


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


_COUNT = _should_be("a whole number, 1 or more", lambda value: _is_whole(value) and value > 0)
_SHARE = _should_be("a number, 0 or more", lambda value: _is_finite(value) and value >= 0)
_RATE = _should_be("a number above 0", lambda value: _is_finite(value) and value > 0)
_SEED = _should_be("a whole number of at most 64 bits", lambda value: _is_whole(value) and -(2**63) <= value < 2**63)
_EPOCHS = _should_be(
    "numbers of epochs, such as (1, 10)", lambda value: isinstance(value, tuple) and all(map(_is_whole, value))
)
_MODEL = _should_be(
    "an encoder that builds a whole model, such as FactoryEncoder(…)", lambda value: isinstance(value, ModelEncoder)
)
_IMAGES = _should_be("a probe set of labelled images", lambda value: isinstance(value, ProbeSet))


def _is_known(_spec: Any, _field: Any, value: Any) -> None:
    if value not in OPTIMISERS:
        raise UnknownName(f"Training: no optimiser {value!r:.80}{did_you_mean(str(value), OPTIMISERS)}")


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Training(Spec):
    """How a classifier is trained: cross-entropy, constant learning rate, no augmentation (Neural Expansion, A.3).

    Equal recipes give equal bits on the same machine with the same torch and number of threads: initial weights and
    what is random in the model (dropout) come from `seed`, the order of the data from a generator of its own. Another
    number of threads, or another processor, may change last bits, which training amplifies: the threads are recorded,
    and an interrupted training goes on with as many. Training runs on the CPU, in float32. It is done again where files
    behind the model or the data have changed.

    Attributes
    ----------
    model : ModelEncoder
        Architecture and normalisation, `FactoryEncoder("geoframe.models.small:mlp", …)` say; its seed is replaced.
    data : ProbeSet
        Labelled training images, held in memory.
    test : ProbeSet or None
        Labelled images on which each checkpoint's accuracy is told too.
    optimiser : {"sgd"}
    lr, momentum, weight_decay : float
        1e-2, 0 and 0: the paper's for MNIST (1e-3 is the other one that it gives).
    batch : int
        Images a step; the last, smaller batch of an epoch is used, unless it is a single image, of which batch
        normalisation knows no variance. The paper gives no batch size; ours.
    epochs : int
    seed : int
        Of the initial weights and of the order of the data.
    checkpoints : tuple of int
        Epochs after which the weights are kept, beside the last one.
    """

    version: ClassVar[str] = "2"
    kind: ClassVar[str] = "training"

    model: ModelEncoder = attrs.field(validator=_MODEL)
    data: ProbeSet = attrs.field(validator=_IMAGES)
    test: ProbeSet | None = unkeyed(default=None, validator=attrs.validators.optional(_IMAGES))
    optimiser: str = attrs.field(default="sgd", validator=_is_known)
    lr: float = attrs.field(default=1e-2, converter=_number, validator=_RATE)
    momentum: float = attrs.field(default=0.0, converter=_number, validator=_SHARE)
    weight_decay: float = attrs.field(default=0.0, converter=_number, validator=_SHARE)
    batch: int = attrs.field(default=64, validator=_COUNT)
    epochs: int = attrs.field(default=30, validator=_COUNT)
    seed: int = attrs.field(default=0, validator=_SEED)
    checkpoints: tuple[int, ...] = attrs.field(default=(), converter=_epochs, validator=_EPOCHS)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for epoch in self.checkpoints:
            if not 1 <= epoch <= self.epochs:
                raise BadInput(f"Training: no checkpoint after epoch {epoch!r}: training has epochs 1 to {self.epochs}")

    @property
    def kept(self) -> tuple[int, ...]:
        """Epochs whose weights are kept, ascending."""
        return tuple(sorted({*self.checkpoints, self.epochs}))

    def check_kept(self, epoch: int) -> None:
        """Refuse an epoch whose weights aren't kept."""
        if epoch not in self.kept:
            kept = ", ".join(map(str, self.kept))
            raise BadInput(f"training {self.label!r} keeps no epoch {epoch} (it keeps {kept}): add it to checkpoints")

    @property
    def dataset(self) -> str:
        """The training data's name, for coordinates."""
        return str(self.data.coords.get("dataset", self.data.label))

    @property
    def architecture(self) -> str:
        """The model's name, for coordinates."""
        return str(self.model.coords.get("architecture", self.model.label))

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, data set, seed."""
        return {"architecture": self.architecture, "dataset": self.dataset, "seed": self.seed}

    def default_name(self) -> str:
        """Return architecture and data set."""
        return f"{self.architecture}-{self.dataset.lower()}"

    def seeded_model(self) -> ModelEncoder:
        """Return the model with this training's seed."""
        fields = {field.name for field in attrs.fields(type(self.model))}
        return self.model.evolve(seed=self.seed) if "seed" in fields else self.model
