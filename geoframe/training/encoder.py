"""`TrainedEncoder`: a classifier that geoframe trains itself, at one of its checkpoints. Imports no torch."""

from __future__ import annotations

from typing import Any

import attrs

from geoframe.encoder import Coord, Encoder, Network, Shape
from geoframe.encoders.model import Model, ModelEncoder
from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet
from geoframe.sources import source_of
from geoframe.spec import later
from geoframe.training.cache import TrainingCache
from geoframe.training.moments import Moment
from geoframe.training.recipe import Training


def _is_step(instance: Any, attribute: Any, value: Any) -> None:
    if value not in ("final", "init") and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadInput(f"TrainedEncoder: step={value!r} should be 'init', 'final' or the number of an epoch")


def _is_at_step(instance: Any, attribute: Any, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadInput(f"TrainedEncoder: at_step={value!r:.80} should be the number of an optimiser step")
    if value is not None and instance.step != "final":
        raise BadInput(f"TrainedEncoder: step={instance.step!r} and at_step={value} are two moments: give one")


@attrs.frozen(slots=False, eq=False)
class TrainedEncoder(ModelEncoder):
    """The network of a `Training`: trained on first use, read from the cache afterwards.

    Attributes
    ----------
    training : Training
        The recipe (may be given by position).
    step : {"final", "init"} or int
        The last epoch, the initial weights (no data and no training needed; of a pretrained model those it is
        fine-tuned from), or a kept epoch; 0 is "init".
    at_step : int, optional
        An optimiser step instead, one of the recipe's `checkpoint_steps` or the last of a kept epoch; 0 is "init".
    """

    training: Training = attrs.field(validator=attrs.validators.instance_of(Training))
    step: str | int = attrs.field(default="final", validator=_is_step, kw_only=True)
    at_step: int | None = later(default=None, validator=_is_at_step, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.moment is not None:
            self.training.check_kept(self.moment)

    @property
    def moment(self) -> Moment | None:
        """When its weights are from; None of initial ones."""
        if self.at_step is not None:
            return self.training.moment_at(self.at_step) if self.at_step else None
        epoch = {"final": self.training.epochs, "init": 0}.get(str(self.step), self.step)
        return Moment(int(epoch)) if epoch else None

    @property
    def steps(self) -> int | None:
        """Optimiser steps done; None where the training images can't be found."""
        if self.moment is None or self.moment.unit == "step":
            return self.at_step or 0
        per_epoch = self.training.steps_per_epoch
        return None if per_epoch is None else self.moment.steps(per_epoch)

    @property
    def epoch(self) -> int | float | None:
        """Epochs trained, a fraction within one; None where the training images can't be found."""
        if self.moment is None or self.moment.unit == "epoch":
            return 0 if self.moment is None else self.moment.number
        per_epoch = self.training.steps_per_epoch
        return None if per_epoch is None else self.moment.epochs(per_epoch)

    def default_name(self) -> str:
        """Name like mlp-mnist, mlp-mnist-random, mlp-mnist-epoch1, mlp-mnist-step391; resnet50-imagenette-init."""
        initial = "-random" if self._initial == "random" else "-init"
        known = {None: initial, Moment(self.training.epochs): ""}
        if self.at_step:
            return f"{self.training.label}-step{self.at_step}"
        return self.training.label + known.get(self.moment, f"-epoch{self.epoch}")

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, data set and what sets the training apart, epoch, optimiser steps, seed.

        `training` is what it was trained on, "random" of initial weights, of pretrained ones what these were.
        `labelling` is how the images that it is tested on are labelled, where their set says so: a study's `match`, as
        a network may be trained on random labels and tested on true ones.
        """
        training, trained = self.training, self.moment is not None
        return {
            "architecture": training.architecture,
            "training": training.dataset if trained else self._initial,
            "dataset": training.dataset,
            "variant": training.variant,
            "epoch": self.epoch,
            "step": self.steps,
            "seed": training.seed,
            **self._labelling(),
            **(training.loss.coords if trained else {}),
        }

    def _labelling(self) -> dict[str, Coord]:
        known = {} if self.training.test is None else self.training.test.coords
        return {"labelling": known["labelling"]} if "labelling" in known else {}

    @property
    def known_shape(self) -> Shape | None:
        """Shape of the model's images."""
        return self.input_shape or self.training.model.known_shape

    @property
    def training_set(self) -> ProbeSet | None:
        """The recipe's data."""
        return self.training.data

    @property
    def _initial(self) -> Coord:
        """What the initial weights are of: "random", or what pretrained ones were trained on, where the model says."""
        model = self.training.model
        known = model.coords.get("training")
        return known or ("random" if model.randomised().key == model.key else "pretrained")

    def randomised(self) -> Encoder:
        """Return the random initial weights, those of a pretrained model's random copy too, under this name."""
        return self.evolve(training=self.training.randomised(), step="init", at_step=None, name=self.label)

    def smoke(self) -> Encoder:
        """Return the network after the two steps of `Training.smoke`, or, of initial weights, before."""
        step = "final" if self.moment else "init"
        return self.evolve(training=self.training.smoke(), step=step, at_step=None, name=self.label)

    def source_digest(self) -> str | None:
        """Digest of the checkpoint's weights as the log has it; None where it isn't trained yet.

        It isn't, either, where files behind the recipe have changed since. Of initial weights: of the model's files.
        """
        if self.moment is None:
            return source_of(self.training.model)
        found = TrainingCache(self.training).checkpoint(self.moment)
        return None if found is None else str(found["weights"])

    def build(self) -> Network:
        """Build the network; train it where its checkpoint isn't in the cache."""
        network = super().build()
        network.training_set = self.training_set
        return network

    def build_model(self) -> Model:
        """Build the model with its initial weights; fill it with the checkpoint's."""
        model = self.training.seeded_model().build_model()
        source = f"initial weights, seed {self.training.seed}"
        if self.moment is not None:
            from geoframe.training.loop import weights_after

            module = model.module
            module.load_state_dict(weights_after(self.training, self.moment, module.state_dict()))
            source = f"training {self.training.key}, {self.moment}"
        return self.framed(model.module, model.input_shape, model.mean, model.std, source)
