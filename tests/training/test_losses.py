"""Losses: the attack against a loop written out, its constraints, and losses of others."""

from __future__ import annotations

import math

import attrs
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import geoframe as gf
from geoframe.training.ball import in_ball, point_of_ball, to_length
from geoframe.training.losses import AdversarialL2, CrossEntropy, LossSpec
from tests.training.recipes import small, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def setting():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))
    x, y = torch.rand(30, 1, 8, 8, generator=seeded(1)), torch.arange(30) % 10
    return lambda pixels: net((pixels - 0.5) / 0.5), net, x, y


def test_the_attack_is_the_plain_loop(setting):
    model, _, x, y = setting
    loss = AdversarialL2(0.8, steps=4, step_size=0.3, random_start=False)
    made = loss.attack(model, x, y, seeded())
    for one, label, found in zip(x, y, made, strict=True):
        moved = one.clone()
        for _ in range(4):
            moved.requires_grad_(True)
            (gradient,) = torch.autograd.grad(cross_entropy(model(moved[None]), label[None]), moved)
            step = moved.detach() + 0.3 * gradient / gradient.norm() - one
            if step.norm() > 0.8:
                step = 0.8 * step / step.norm()
            moved = (one + step).clamp(0, 1)
        torch.testing.assert_close(found, moved, atol=1e-5, rtol=0)


def test_the_attack_stays_in_ball_and_box_raises_the_loss_and_leaves_no_gradient(setting):
    model, net, x, y = setting
    before = x.clone()
    for epsilon in (0.1, 1.0, 5.0):
        made = AdversarialL2(epsilon).attack(model, x, y, seeded())
        assert float((made - x).flatten(1).norm(dim=1).max()) <= epsilon * (1 + 1e-5)
        assert 0 <= float(made.min()) <= float(made.max()) <= 1
        assert not made.requires_grad
        assert bool(cross_entropy(model(made), y) > cross_entropy(model(x), y))
    assert torch.equal(x, before)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_the_attack_uses_its_generator_alone(setting):
    model, _, x, y = setting
    state, loss = torch.get_rng_state(), AdversarialL2(0.5)
    first = loss.attack(model, x, y, seeded())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, loss.attack(model, x, y, seeded()))
    assert not torch.equal(first, loss.attack(model, x, y, seeded(1)))
    still = AdversarialL2(0.5, random_start=False)
    assert torch.equal(still.attack(model, x, y, seeded()), still.attack(model, x, y, seeded(1)))


def test_points_of_the_ball():
    points = point_of_ball(torch.zeros(4000, 1, 1, 3), 2.0, seeded()).flatten(1)
    radii = points.norm(dim=1)
    assert float(radii.max()) <= 2.0001
    shares = [(radii < r).double().mean().item() for r in (0.5, 1.0, 1.5)]
    assert shares == pytest.approx([(r / 2) ** 3 for r in (0.5, 1.0, 1.5)], abs=0.03)
    assert float(points.mean(0).abs().max()) < 0.1


@pytest.mark.parametrize("length", [0.5, 5.0, 1e6])
def test_zero_stays_zero_at_any_length(length):
    assert torch.equal(to_length(torch.zeros(2, 1, 3, 3), length), torch.zeros(2, 1, 3, 3))


def test_lengths():
    v = torch.tensor([[[[3.0, 4.0]]], [[[0.0, 0.0]]], [[[0.3, 0.4]]]])
    torch.testing.assert_close(to_length(v, 2.0).flatten(1).norm(dim=1), torch.tensor([2.0, 0.0, 2.0]))
    torch.testing.assert_close(in_ball(v, 1.0).flatten(1).norm(dim=1), torch.tensor([1.0, 0.0, 0.5]))


def test_no_radius_is_cross_entropy_to_the_bit(tmp_path):
    training = small(write_net(tmp_path))
    assert training.loss.key == CrossEntropy().key
    assert torch.equal(weights(training), weights(training.evolve(loss=AdversarialL2(0.0))))


def test_adversarial_training_resists_more():
    kwargs = {"inputs": 64, "widths": (64, 32)}  # smaller networks haven't the capacity
    model = gf.FactoryEncoder("geoframe.models.small:mlp", kwargs=kwargs, input_shape=(1, 8, 8), mean=0.5, std=0.5)
    clean = small(model, epochs=60)
    robust = clean.evolve(loss=AdversarialL2(0.5, steps=3))
    images = clean.data.load((1, 8, 8))
    y, accuracy = torch.tensor(images.labels), []
    for training in (clean, robust):
        logits = gf.TrainedEncoder(training).load().logits
        attacked = AdversarialL2(0.5, steps=10).attack(_with_gradients(training), images.pixels, y, seeded())
        accuracy.append(float((logits(attacked).argmax(1) == y).double().mean()))
    assert accuracy[1] > accuracy[0] + 0.2


def _with_gradients(training):
    module = gf.TrainedEncoder(training).build_model().module.eval()
    return lambda pixels: module((pixels - 0.5) / 0.5)


def test_the_loss_sees_raw_augmented_pixels_and_a_network_in_train_mode(tmp_path):
    seen = []

    @attrs.frozen(kw_only=True, slots=False, eq=False)
    class Watching(LossSpec):
        def __call__(self, model, x, y, generator):
            logits = model(x)
            seen.append((float(x.min()), float(x.max()), tuple(logits.shape), len(y)))
            return cross_entropy(logits, y) + 0 * torch.rand((), generator=generator)

    training = small(write_net(tmp_path), loss=Watching(), epochs=1)
    assert torch.equal(weights(training), weights(small(write_net(tmp_path), epochs=1)))
    assert [(low, high) for low, high, _, _ in seen] == [(0.0, 1.0)] * 5
    assert {shape for *_, shape, _ in seen} == {(20, 10)}


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Broken(LossSpec):
    how: str = "raises"

    def __call__(self, model, x, y, generator):
        if self.how == "raises":
            raise ZeroDivisionError("no loss")
        free = torch.ones((), requires_grad=True)
        return {"vector": model(x).sum(1), "number": 3.0, "nan": model(x).sum() * math.nan, "constant": free}[self.how]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises", r"failed in epoch 1, step 1: ZeroDivisionError: no loss; correct the model or the loss 'broken'"),
        ("vector", r"failed in epoch 1, step 1: .*correct the model or the loss 'broken'"),
        ("number", r"failed in epoch 1, step 1: .*correct the model or the loss 'broken'"),
        ("nan", r"\(loss nan\): before any change .*: look at the images, the normalisation or the loss 'broken'"),
        ("constant", r"the loss 'broken' has no gradient for any parameter of the model"),
    ],
)
def test_a_loss_that_fails_is_one_line(tmp_path, how, said):
    with pytest.raises(gf.BadInput, match=said) as error:
        weights(small(write_net(tmp_path), loss=Broken(how=how)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"epsilon": -1}, "epsilon=-1.0 should be a number, 0 or more"),
        ({"epsilon": "large"}, "epsilon='large' should be a number"),
        ({"epsilon": 1, "steps": 0}, "steps=0 should be a whole number, 1 or more"),
        ({"epsilon": 1, "step_size": 0}, "step_size=0.0 should be a number above 0"),
        ({"epsilon": 1, "random_start": 3}, "random_start=3 should be True or False"),
        ({"epsilon": 1, "step": 3}, "no field 'step'; did you mean 'steps'"),
    ],
)
def test_bad_losses(fields, said):
    with pytest.raises(gf.BadInput, match=said):
        AdversarialL2(**fields)


def test_a_loss_is_part_of_the_key(tmp_path):
    model = write_net(tmp_path)
    losses = [CrossEntropy(), AdversarialL2(0.5), AdversarialL2(0.25), AdversarialL2(0.5, steps=3), Broken()]
    assert len({small(model, loss=loss).key for loss in losses}) == 5
    with pytest.raises(gf.BadInput, match="Training: loss='cross-entropy' should be a loss, such as CrossEntropy"):
        small(model, loss="cross-entropy")
