"""`Course`: a training under way, which can be stopped after any epoch and taken up again with the same bits."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from geoframe.errors import FAILURES, BadInput, EncoderRefused, GeoframeError
from geoframe.training.checks import cause_of, check_logits
from geoframe.training.data import Labelled

if TYPE_CHECKING:
    from geoframe.training.recipe import Training

State = dict[str, Any]


class Course:
    """Model, optimiser and random streams after `done` epochs.

    What is random in the model (dropout) comes from the global generators, which are the caller's to seed and put back.
    """

    def __init__(self, training: Training, module: nn.Module, data: Labelled) -> None:
        self.training = training
        self.module = module
        self.data = data
        self.done = 0
        self._order = torch.Generator().manual_seed(training.seed)
        self._criterion = nn.CrossEntropyLoss()
        self._optimiser = torch.optim.SGD(
            module.parameters(), lr=training.lr, momentum=training.momentum, weight_decay=training.weight_decay
        )

    def epoch(self) -> float:
        """Train for one epoch; return the mean loss of the images used.

        Raises
        ------
        BadInput
            Where the loss or the weights are no longer finite.
        EncoderRefused
            Where the model fails.
        """
        self.module.train()
        total, used = 0.0, 0
        for step, rows in enumerate(self._batches(), 1):
            loss = self._step(rows, step)
            if not math.isfinite(loss):
                raise self._diverged(f"step {step}", f"loss {loss:g}")
            total, used = total + loss * len(rows), used + len(rows)
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.module.parameters()):
            raise self._diverged(f"step {step}", "weights that aren't finite")
        self.done += 1
        return total / used

    def state(self) -> State:
        """Everything that the next epochs depend on."""
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - the generator that models may use
        return {
            "epoch": self.done,
            "model": self.module.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "order": self._order.get_state(),
            "torch": torch.get_rng_state(),
            "python": random.getstate(),
            "numpy": (str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest),
        }

    def restore(self, state: State) -> None:
        """Go on from where `state` was taken."""
        self.done = state["epoch"]
        self.module.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._order.set_state(state["order"])
        torch.set_rng_state(state["torch"])
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        kind, keys, *rest = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002

    def _batches(self) -> list[torch.Tensor]:
        batches = list(torch.split(torch.randperm(len(self.data.x), generator=self._order), self.training.batch))
        rest_is_one = len(batches) > 1 and len(batches[-1]) == 1 < self.training.batch
        return batches[:-1] if rest_is_one else batches  # batch normalisation has no variance of one image

    def _step(self, rows: torch.Tensor, step: int) -> float:
        label = self.training.label
        try:
            self._optimiser.zero_grad(set_to_none=True)
            logits = check_logits(label, self.module(self.data.x[rows]), len(rows))
            loss = self._criterion(logits, self.data.y[rows])
            loss.backward()
            self._optimiser.step()
            return float(loss.detach())
        except GeoframeError:
            raise
        except FAILURES as error:  # the user's code can raise anything
            raise EncoderRefused(
                f"training {label!r} failed in epoch {self.done + 1}, step {step}: "
                f"{type(error).__name__}: {cause_of(error)}; correct the model"
            ) from error

    def _diverged(self, where: str, what: str) -> BadInput:
        return BadInput(
            f"training {self.training.label!r} diverged in epoch {self.done + 1}, {where} ({what}): lower lr; "
            "the checkpoints before that stay"
        )
