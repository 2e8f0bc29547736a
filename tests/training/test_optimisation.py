"""Optimisers and schedules, against loops written out with torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.training.course import Course
from geoframe.training.schedules import log_steps, steps_per_epoch
from tests.training.recipes import small, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, weight_decay=0.1),
}


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_is_the_plain_loop(tmp_path, name, schedule):
    momentum = 0.0 if name == "adam" else 0.9
    training = small(
        write_net(tmp_path), optimiser=name, schedule=schedule, lr=0.01, momentum=momentum, weight_decay=0.1, seed=3
    )
    module = training.seeded_model().build_model().module.train()
    images = training.data.load((1, 8, 8))
    x, y = (images.pixels - 0.5) / 0.5, torch.tensor(images.labels)
    optimiser = OPTIMISERS[name](module.parameters())
    decay = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: (1 + math.cos(math.pi * t / 20)) / 2)
    order = torch.Generator().manual_seed(3)
    for _ in range(4):
        for rows in torch.randperm(101, generator=order)[:100].split(20):  # the 101st would be a batch of its own
            optimiser.zero_grad()
            nn.CrossEntropyLoss()(module(x[rows]), y[rows]).backward()
            optimiser.step()
            if schedule == "cosine":
                decay.step()
    assert torch.equal(weights(training), torch.cat([v.flatten().double() for v in module.state_dict().values()]))


def test_the_cosine_goes_to_zero_step_by_step(tmp_path, monkeypatch):
    seen = []
    real = Course._set_rate

    def set_rate(self, step):
        real(self, step)
        seen.append(self._optimiser.param_groups[0]["lr"])

    monkeypatch.setattr(Course, "_set_rate", set_rate)
    weights(small(write_net(tmp_path), schedule="cosine", lr=0.1, epochs=4))  # 5 steps an epoch
    assert len(seen) == 20
    assert (seen[0], seen[10]) == (0.1, pytest.approx(0.05))
    assert seen == pytest.approx([0.05 * (1 + math.cos(math.pi * t / 20)) for t in range(20)])
    assert seen == sorted(seen, reverse=True)
    assert 0 < seen[-1] < 0.001


def test_steps_are_those_of_the_paper():
    assert steps_per_epoch(50_000, 128) == 391
    model = gf.FactoryEncoder("geoframe.models.small:cnn", input_shape=(3, 32, 32))
    training = gf.Training(model=model, data=gf.TorchvisionSet("CIFAR10", split="train"), batch=128, epochs=100)
    assert (training.steps_per_epoch, training.steps) == (391, 39_100)


@pytest.mark.parametrize("n", range(1, 12))
@pytest.mark.parametrize("batch", [1, 2, 4, 20])
def test_steps_are_counted_as_batches_are_made(n, batch):
    sizes = [len(rows) for rows in torch.arange(n).split(batch)]
    single = len(sizes) > 1 and sizes[-1] == 1 < batch
    assert steps_per_epoch(n, batch) == len(sizes) - single


def test_images_that_cannot_be_counted_yet(tmp_path):
    training = small(write_net(tmp_path), data=gf.ImageFolder(tmp_path / "nowhere"))
    assert (training.steps_per_epoch, training.steps) == (None, None)


def test_log_steps():
    assert log_steps(1) == (1,)
    assert log_steps(2) == (1, 2)
    assert log_steps(1000, per_decade=1) == (1, 10, 100, 1000)
    steps = log_steps(39_100)
    assert steps == (1, 2, 3, 6, 10, 18, 32, 56, 100, 178, 316, 562, 1000, 1778, 3162, 5623, 10000, 17783, 31623, 39100)
    for total in (7, 10, 99, 100, 101):
        assert log_steps(total, 9)[-1] == total
        assert list(log_steps(total, 9)) == sorted(set(log_steps(total, 9)))
    with pytest.raises(gf.BadInput, match="should be whole numbers, 1 or more"):
        log_steps(0)
