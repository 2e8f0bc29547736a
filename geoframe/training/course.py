"""`Course`: a training under way, which can be stopped after any epoch and taken up again with the same bits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from geoframe.errors import FAILURES, BadInput, EncoderRefused, GeoframeError
from geoframe.geometry.directions import stream_key
from geoframe.spec import array_digest
from geoframe.training.augment import AUGMENTATIONS
from geoframe.training.checks import cause_of, check_logits
from geoframe.training.data import Labelled
from geoframe.training.losses import CrossEntropy
from geoframe.training.optimisers import optimiser_of
from geoframe.training.place import generator_of
from geoframe.training.schedules import learning_rate, steps_per_epoch

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

State = dict[str, Any]


class Course:
    """Model, optimiser and random streams after `done` epochs, and `steps` steps in all.

    `after_step` is called after each step with the mean loss since the epoch began; it leaves the module in train mode.
    What is random in the model (dropout) comes from the global generators, which are the caller's to seed and put back.
    The order of the data, the augmentation and what the loss draws come from generators on the CPU, so that they are
    the same on any device; batches go where the module is, `data.device`.
    """

    def __init__(self, training: Training, module: nn.Module, data: Labelled) -> None:
        self.training = training
        self.module = module
        self.data = data
        self.done = self.steps = 0
        self.after_step: Callable[[float], None] = lambda loss: None
        self._draws = {what: _generator(what, training.seed) for what in ("order", "augment", "loss")}
        if (own := generator_of(data.device)) is not None:
            self._draws["device"] = own
        self._optimiser = optimiser_of(training, module.parameters())
        self._unkept = _unkept_buffers(module)
        self.per_epoch = steps_per_epoch(len(data.y), training.batch)
        self.total = self.per_epoch * training.epochs

    def epoch(self) -> float:
        """Train for one epoch; return the mean loss of the images used.

        Raises
        ------
        BadInput
            Where the loss or the weights are no longer finite.
        EncoderRefused
            Where the model fails, or changes a buffer that no checkpoint has.
        """
        self.module.train()
        total, used = 0.0, 0
        for step, rows in enumerate(self._batches(), 1):
            loss = self._step(rows, step)
            if not math.isfinite(loss):
                raise self._diverged(f"step {step}", f"loss {loss:g}")
            total, used = total + loss * len(rows), used + len(rows)
            self.steps += 1
            if self.steps == 1:
                self.check_buffers()
            self.after_step(total / used)
        self.check_weights()
        self.check_buffers()
        self.done += 1
        return total / used

    def check_weights(self) -> None:
        """Refuse weights that are no longer finite."""
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.module.parameters()):
            raise self._diverged(f"step {self.steps - self.done * self.per_epoch}", "weights that aren't finite")

    def check_buffers(self) -> None:
        """Refuse a buffer that training has changed and no checkpoint has: what is kept would be another network."""
        now = _unkept_buffers(self.module)
        for name, before in self._unkept.items():
            if now.get(name) != before:
                raise EncoderRefused(
                    f"training {self.training.label!r}: the model's buffer {name!r} changes in training, but isn't in "
                    "its state_dict, so that checkpoints lack it: register it with persistent=True"
                )

    def state(self) -> State:
        """Everything that the next epochs depend on."""
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the generator that models may use
        return {
            "epoch": self.done,
            "model": self.module.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            **{what: generator.get_state() for what, generator in self._draws.items()},
            "torch": torch.get_rng_state(),
            "python": random.getstate(),
            "numpy": (str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest),
        }

    def restore(self, state: State) -> None:
        """Go on from where `state` was taken."""
        self.done = state["epoch"]
        self.steps = self.done * self.per_epoch
        self.module.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])
        for what in self._draws.keys() & state.keys():  # older ones have the order alone, and drew nothing else
            self._draws[what].set_state(state[what])
        torch.set_rng_state(state["torch"])
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        kind, keys, *rest = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002 - models may use it

    def _batches(self) -> list[torch.Tensor]:
        batches = torch.split(torch.randperm(len(self.data.y), generator=self._draws["order"]), self.training.batch)
        return list(batches[: self.per_epoch])  # batch normalisation has no variance of one image

    def _step(self, rows: torch.Tensor, step: int) -> float:
        label = self.training.label
        try:
            self._set_rate(self.steps)
            self._optimiser.zero_grad(set_to_none=True)
            x, y = (batch.to(self.data.device) for batch in (self._images(rows), self.data.y[rows]))
            loss = self.training.loss(self._logits, x, y, self._draws["loss"])
            loss.backward()  # type: ignore[no-untyped-call]  # untyped in torch
            self._check_gradient()
            self._optimiser.step()
            return float(loss.detach())
        except GeoframeError:
            raise
        except FAILURES as error:  # the user's code can raise anything
            raise EncoderRefused(
                f"training {label!r} failed in epoch {self.done + 1}, step {step}: "
                f"{type(error).__name__}: {cause_of(error)}; correct the model{self._or_loss}"
            ) from error

    def _images(self, rows: torch.Tensor) -> torch.Tensor:
        images, augment = self.data.pixels[rows], self.training.augment
        return images if augment is None else AUGMENTATIONS[augment](images, self._draws["augment"])

    def _logits(self, pixels: torch.Tensor) -> torch.Tensor:
        made = self.module(self.data.normalised(pixels))
        return check_logits(self.training.label, made, len(pixels))

    def _set_rate(self, step: int) -> None:
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate(self.training.schedule, self.training.lr, step, self.total)

    @property
    def _or_loss(self) -> str:
        return "" if isinstance(self.training.loss, CrossEntropy) else f" or the loss {self.training.loss.label!r}"

    def _check_gradient(self) -> None:
        """Refuse a loss that no weight has a part in: it would be trained on for nothing."""
        if not self.steps and all(parameter.grad is None for parameter in self.module.parameters()):
            raise EncoderRefused(
                f"training {self.training.label!r}: the loss {self.training.loss.label!r} has no gradient for any "
                "parameter of the model: correct it"
            )

    def _diverged(self, where: str, what: str) -> BadInput:
        advice = "lower lr; the checkpoints before that stay"
        if not self.steps:
            advice = f"before any change of the weights: look at the images, the normalisation{self._or_loss}"
        return BadInput(
            f"training {self.training.label!r} diverged in epoch {self.done + 1}, {where} ({what}): {advice}"
        )


def _unkept_buffers(module: nn.Module) -> dict[str, str]:
    """Digests of the buffers that aren't in a module's state_dict; sparse ones, which have no bytes, are left out."""
    kept = module.state_dict().keys()
    buffers = {name: buffer for name, buffer in module.named_buffers() if name not in kept}
    return {name: array_digest(buffer) for name, buffer in buffers.items() if buffer.layout is torch.strided}


def _generator(what: str, seed: int) -> torch.Generator:
    own = seed if what == "order" else stream_key("training", what, seed) & (2**63 - 1)
    return torch.Generator().manual_seed(own)
