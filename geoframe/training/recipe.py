"""`Training`: the frozen recipe of a training, whose digest names its checkpoints. Imports no torch."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from geoframe.encoder import Coord
from geoframe.encoders.model import ModelEncoder
from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet
from geoframe.spec import Spec, unkeyed

OPTIMISERS = ("sgd",)


def _epochs(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _positive(kind: type | tuple[type, ...]) -> Any:
    return attrs.validators.and_(attrs.validators.instance_of(kind), attrs.validators.gt(0))


def _not_negative() -> Any:
    return attrs.validators.ge(0)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Training(Spec):
    """How a classifier is trained: cross-entropy, constant learning rate, no augmentation (Neural Expansion, A.3).

    Equal recipes give equal bits on the same machine with the same torch and number of threads: initial weights come
    from `seed`, the order of the data from a generator of its own. Another number of threads, or another processor, may
    change last bits, which training amplifies; the threads are recorded. Training runs on the CPU, in float32.

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
        Images a step; the last, smaller batch of an epoch is kept, unless it is a single image, of which batch
        normalisation knows no variance. The paper gives no batch size; ours.
    epochs : int
    seed : int
        Of the initial weights and of the order of the data.
    checkpoints : tuple of int
        Epochs after which the weights are kept, beside the last one.
    """

    kind: ClassVar[str] = "training"

    model: ModelEncoder = attrs.field(validator=attrs.validators.instance_of(ModelEncoder))
    data: ProbeSet = attrs.field(validator=attrs.validators.instance_of(ProbeSet))
    test: ProbeSet | None = unkeyed(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ProbeSet))
    )
    optimiser: str = attrs.field(default="sgd", validator=attrs.validators.in_(OPTIMISERS))
    lr: float = attrs.field(default=1e-2, converter=float, validator=_positive(float))
    momentum: float = attrs.field(default=0.0, converter=float, validator=_not_negative())
    weight_decay: float = attrs.field(default=0.0, converter=float, validator=_not_negative())
    batch: int = attrs.field(default=64, validator=_positive(int))
    epochs: int = attrs.field(default=30, validator=_positive(int))
    seed: int = attrs.field(default=0, validator=attrs.validators.instance_of(int))
    checkpoints: tuple[int, ...] = attrs.field(
        default=(), converter=_epochs, validator=attrs.validators.deep_iterable(attrs.validators.instance_of(int))
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for epoch in self.checkpoints:
            if not 1 <= epoch <= self.epochs:
                raise BadInput(f"Training: no checkpoint after epoch {epoch!r}: training has epochs 1 to {self.epochs}")

    @property
    def kept(self) -> tuple[int, ...]:
        """Epochs whose weights are kept, ascending."""
        return tuple(sorted({*self.checkpoints, self.epochs}))

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
