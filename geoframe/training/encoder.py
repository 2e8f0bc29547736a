"""`TrainedEncoder`: a classifier that geoframe trains itself, at one of its checkpoints. Imports no torch."""

from __future__ import annotations

from typing import Any

import attrs

from geoframe.encoder import Coord, Encoder, Network, Shape
from geoframe.encoders.model import Model, ModelEncoder
from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet
from geoframe.sources import source_of
from geoframe.training.cache import TrainingCache
from geoframe.training.recipe import Training


def _is_step(instance: Any, attribute: Any, value: Any) -> None:
    if value not in ("final", "init") and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise BadInput(f"TrainedEncoder: step={value!r} should be 'init', 'final' or the number of an epoch")


@attrs.frozen(slots=False, eq=False)
class TrainedEncoder(ModelEncoder):
    """The network of a `Training`: trained on first use, read from the cache afterwards.

    Attributes
    ----------
    training : Training
        The recipe (may be given by position).
    step : {"final", "init"} or int
        The last epoch, the initial weights (no data and no training needed), or a kept epoch; 0 is "init".
    """

    training: Training = attrs.field(validator=attrs.validators.instance_of(Training))
    step: str | int = attrs.field(default="final", validator=_is_step, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.epoch:
            self.training.check_kept(self.epoch)

    @property
    def epoch(self) -> int:
        """Epochs trained."""
        if isinstance(self.step, int):
            return self.step
        return self.training.epochs if self.step == "final" else 0

    def default_name(self) -> str:
        """Name like mlp-mnist, mlp-mnist-random, mlp-mnist-epoch1."""
        suffix = {0: "-random", self.training.epochs: ""}.get(self.epoch, f"-epoch{self.epoch}")
        return self.training.label + suffix

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, what it was trained on ("random": nothing yet), data set of the recipe, epoch, seed."""
        trained = self.training.dataset if self.epoch else "random"
        return {
            "architecture": self.training.architecture,
            "training": trained,
            "dataset": self.training.dataset,
            "epoch": self.epoch,
            "seed": self.training.seed,
        }

    @property
    def known_shape(self) -> Shape | None:
        """Shape of the model's images."""
        return self.input_shape or self.training.model.known_shape

    @property
    def training_set(self) -> ProbeSet | None:
        """The recipe's data."""
        return self.training.data

    def randomised(self) -> Encoder:
        """Return the initial weights, under this encoder's name."""
        return self.evolve(step="init", name=self.label)

    def source_digest(self) -> str | None:
        """Digest of the checkpoint's weights as the log has it; None where it isn't trained yet.

        It isn't, either, where files behind the recipe have changed since. Of initial weights: of the model's files.
        """
        if not self.epoch:
            return source_of(self.training.model)
        found = TrainingCache(self.training).checkpoint(self.epoch)
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
        if self.epoch:
            from geoframe.training.loop import weights_after

            module = model.module
            module.load_state_dict(weights_after(self.training, self.epoch, module.state_dict()))
            source = f"training {self.training.key}, epoch {self.epoch}"
        return self.framed(model.module, model.input_shape, model.mean, model.std, source)
