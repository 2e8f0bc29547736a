"""`Training`: the frozen recipe of a training, whose digest names its checkpoints. Imports no torch."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import attrs

from geoframe.encoder import Coord
from geoframe.encoders.model import ModelEncoder
from geoframe.errors import BadInput, GeoframeError
from geoframe.probeset import ProbeSet
from geoframe.probesets.labelled_noise import LabelledNoise
from geoframe.spec import Spec, later, unkeyed
from geoframe.training import validators as valid
from geoframe.training.losses import CrossEntropy, LossSpec
from geoframe.training.moments import Moment
from geoframe.training.schedules import SCHEDULES, steps_per_epoch

OPTIMISERS = ("sgd", "adam", "rmsprop")
AUGMENTATIONS = ("crop-flip", "crop-flip-jitter")
_LOSS = valid.should_be(
    "a loss, such as CrossEntropy() or AdversarialL2(0.5)", lambda value: isinstance(value, LossSpec)
)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Training(Spec):
    """How a classifier is trained; by default as in *Neural Expansion*, A.3: SGD at a constant learning rate.

    Equal recipes give equal bits on the same machine with the same torch and number of threads: initial weights and
    what is random in the model (dropout) come from `seed`; the order of the data, the augmentation and what the loss
    draws come from generators of their own, so that none of them changes the others. Another number of threads, or
    another processor, may change last bits, which training amplifies: the threads are recorded, and an interrupted
    training goes on with as many. Training runs in float32, on the device of what needs it first (`geoframe run
    --device`), which isn't part of the key but recorded; GPUs give other bits than the CPU, and an interrupted training
    goes on where it began, or starts again where no such device is there. It is done again where files behind the model
    or the data have changed. `training_curve` tells loss and accuracy at each checkpoint.

    Attributes
    ----------
    model : ModelEncoder
        Architecture and normalisation, `FactoryEncoder("geoframe.models.small:mlp", …)` say; its seed is replaced, and
        so not part of the key. What it changes in training has to be in its state_dict: a buffer that isn't is refused,
        and plain attributes (a counter in Python) aren't kept, neither in checkpoints nor where training is taken up.
    data : ProbeSet
        Labelled training images, held in memory.
    test : ProbeSet or None
        Labelled images on which each checkpoint's loss and accuracy are told too; not part of the key.
    optimiser : {"sgd", "adam", "rmsprop"}
        torch's, with torch's other defaults. Adam has no momentum to set.
    lr, momentum, weight_decay : float
        1e-2, 0 and 0: the paper's for MNIST (1e-3 is the other one that it gives). Decay is an L2 term of the gradient.
    schedule : {"constant", "cosine"}
        Cosine: from `lr` to zero, per step over all steps (*Beyond Local Linearity*, A.2: lr 0.1, momentum 0.9,
        decay 5e-4, batches of 128, 100 epochs).
    augment : {"crop-flip", "crop-flip-jitter"} or None
        Random changes of each training image in each epoch; see `geoframe.training.augment`.
    loss : LossSpec
        What is minimised: `CrossEntropy()`, `AdversarialL2(epsilon)`, or a subclass of yours.
    batch : int
        Images a step; the last, smaller batch of an epoch is used, unless it is a single image, of which batch
        normalisation knows no variance. The paper gives no batch size; ours.
    epochs : int
    seed : int
        Of the initial weights, and of all that is random in training.
    checkpoints : tuple of int
        Epochs after which the weights are kept, beside the last one; in any order.
    checkpoint_steps : tuple of int
        Optimiser steps after which the weights are kept too: `log_steps(total)` is a logarithmic schedule. Beyond the
        last step is refused, before training where the images are there.
    variant : str
        What sets this training apart from others, in your words ("random labels"): a label in results and names, not
        part of the key.
    """

    version: ClassVar[str] = "2"
    kind: ClassVar[str] = "training"

    model: ModelEncoder = attrs.field(validator=valid.MODEL)
    data: ProbeSet = attrs.field(validator=valid.IMAGES)
    test: ProbeSet | None = unkeyed(default=None, validator=attrs.validators.optional(valid.IMAGES))
    optimiser: str = attrs.field(default="sgd", validator=valid.one_of(OPTIMISERS))
    lr: float = attrs.field(default=1e-2, converter=valid.decimal, validator=valid.RATE)
    momentum: float = attrs.field(default=0.0, converter=valid.decimal, validator=valid.SHARE)
    weight_decay: float = attrs.field(default=0.0, converter=valid.decimal, validator=valid.SHARE)
    schedule: str = later(default="constant", validator=valid.one_of(SCHEDULES))
    augment: str | None = later(default=None, validator=valid.one_of(AUGMENTATIONS, or_none=True))
    loss: LossSpec = later(default=CrossEntropy(), validator=_LOSS)
    batch: int = attrs.field(default=64, validator=valid.COUNT)
    epochs: int = attrs.field(default=30, validator=valid.COUNT)
    seed: int = attrs.field(default=0, validator=valid.SEED)
    checkpoints: tuple[int, ...] = attrs.field(default=(), converter=valid.numbers, validator=valid.EPOCHS)
    checkpoint_steps: tuple[int, ...] = later(default=(), converter=valid.numbers, validator=valid.STEPS)
    variant: str = unkeyed(default="")

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.optimiser == "adam" and self.momentum:
            raise BadInput(f"Training: Adam has no momentum, but momentum={self.momentum:g}: leave it out")
        for epoch in self.checkpoints:
            if not 1 <= epoch <= self.epochs:
                raise BadInput(f"Training: no checkpoint after epoch {epoch!r}: training has epochs 1 to {self.epochs}")
        if self.checkpoint_steps:
            self.check_steps(self.steps)

    def identity(self) -> dict[str, Any]:
        """Everything that determines weights: without the model's own seed, order and repeats of checkpoints.

        Sorted checkpoints and a default seed have the keys that they had when all of these counted. So has the last
        epoch where it is named among the checkpoints, as in many caches.
        """
        made = super().identity()
        fields, seed = made["fields"], attrs.fields_dict(type(self.model)).get("seed")
        if seed is not None and isinstance(seed.default, int):
            fields["model"] = self.model.evolve(seed=seed.default).identity()
        for name in fields.keys() & {"checkpoints", "checkpoint_steps"}:
            fields[name] = sorted(set(fields[name]))
        return made

    @cached_property
    def steps_per_epoch(self) -> int | None:
        """Optimiser steps an epoch; None where the images can't be found."""
        try:
            images = self.data.count()
            if images is None:  # known once labels are read: of a long-tailed set, say
                images = len(self.data.listing().labels)
        except (GeoframeError, OSError):
            return None
        return steps_per_epoch(images, self.batch)

    @property
    def steps(self) -> int | None:
        """Optimiser steps of the whole training, if they are known."""
        return None if self.steps_per_epoch is None else self.epochs * self.steps_per_epoch

    @property
    def kept(self) -> tuple[int, ...]:
        """Epochs whose weights are kept, ascending."""
        return tuple(sorted({*self.checkpoints, self.epochs}))

    @property
    def moments(self) -> tuple[Moment, ...]:
        """All moments whose weights are kept."""
        steps = sorted({*self.checkpoint_steps})
        return (*map(Moment, self.kept), *(Moment(step, "step") for step in steps))

    def moment_at(self, step: int) -> Moment:
        """Return the moment after an optimiser step, the end of a kept epoch included; refuse one that isn't kept."""
        moment = Moment(step, "step")
        epoch, rest = divmod(step, self.steps_per_epoch or step + 1)
        if moment not in self.moments and epoch in self.kept and not rest:
            return Moment(epoch)
        self.check_kept(moment)
        return moment

    def check_kept(self, when: int | Moment) -> None:
        """Refuse an epoch, or another moment, whose weights aren't kept."""
        moment = Moment.of(when)
        if moment not in self.moments:
            if moment.unit == "step" and self.steps is not None and moment.number > self.steps:
                raise BadInput(f"training {self.label!r} has no {moment}: it ends with step {self.steps}")
            kept = ", ".join(str(known.number) for known in self.moments if known.unit == moment.unit) or "none"
            add_to = "checkpoints" if moment.unit == "epoch" else "checkpoint_steps"
            raise BadInput(f"training {self.label!r} keeps no {moment} (it keeps {kept}): add it to {add_to}")

    def check_steps(self, total: int | None) -> None:
        """Refuse checkpoints at steps that a training of so many never reaches (None: not known yet)."""
        for step in self.checkpoint_steps:
            if step < 1 or (total is not None and step > total):
                has = "counts steps from 1" if total is None else f"has steps 1 to {total}"
                raise BadInput(f"Training: no checkpoint after step {step}: training {has}")

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
        """Architecture, data set, variant, seed."""
        return {
            "architecture": self.architecture,
            "dataset": self.dataset,
            "variant": self.variant,
            "seed": self.seed,
        }

    def default_name(self) -> str:
        """Return architecture, data set and variant."""
        return "-".join(filter(None, (self.architecture, self.dataset.lower(), *self.variant.lower().split())))

    def randomised(self) -> Training:
        """Return the same of a model with random weights, which needs no download."""
        return self.evolve(model=self.model.randomised(), name=self.label)

    def smoke(self) -> Training:
        """Return what preset `smoke` trains, under the same name: two steps on noise, with all else as it is.

        Of a model with random weights: it needs no data and no download. Loss, optimiser, schedule and augmentation
        are this training's; the number of classes is that of its data where that is known without reading them.
        """
        return self.randomised().evolve(
            data=LabelledNoise.in_place_of(self.data),
            test=None if self.test is None else LabelledNoise.in_place_of(self.test, seed=1),
            batch=2,
            epochs=1,
            checkpoints=(),
            checkpoint_steps=(),
        )

    def seeded_model(self) -> ModelEncoder:
        """Return the model with this training's seed."""
        fields = {field.name for field in attrs.fields(type(self.model))}
        return self.model.evolve(seed=self.seed) if "seed" in fields else self.model
