"""Losses on the margin of displaced images: closed forms on linear models, gradients, streams, resumption."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import geoframe as gf
from geoframe.training.margin_losses import Expand, PerturbedMargin, Restrict, margins
from tests.training.recipes import checkpoint_bytes, small, stop_at, weights, write_net

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

BOTH = (Expand, Restrict)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def linear():
    """Three classes of six pixels: logits W x, in float64."""
    w = torch.randn(3, 6, generator=seeded(1), dtype=torch.float64)
    x, y = torch.rand(8, 1, 2, 3, generator=seeded(2), dtype=torch.float64), torch.arange(8) % 3
    return w, x, y


def test_margins():
    logits = torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [1.0, 1.0, 1.0]], requires_grad=True)
    found = margins(logits, torch.tensor([0, 2, 1]))
    assert found.tolist() == [1, -1, 0]
    found.sum().backward()
    assert logits.grad.tolist() == [[1, 0, -1], [-1, 0, 1], [-0.5, 1, -0.5]]


@pytest.mark.parametrize(
    "loss", [Expand(weight=0.7, margin=0.3, epsilon=2), Restrict(weight=0.7, margin=0.3, epsilon=2)]
)
def test_closed_form_of_a_linear_model(linear, loss):
    """The margin at x + εu is that at x, moved by ε times the product of u with a difference of rows of W."""
    w, x, y = linear
    found = loss(lambda pixels: pixels.flatten(1) @ w.T, x, y, seeded(3))
    directions = torch.randn(x.shape, generator=seeded(3)).flatten(1).double()
    directions /= directions.norm(dim=1, keepdim=True)
    total = 0.0
    for image, label, u in zip(x.flatten(1), y.tolist(), directions, strict=True):
        rows = [w[label] - w[other] for other in range(3) if other != label]
        margin = min(float(row @ image + 2 * row @ u) for row in rows)
        penalty = max(0.0, 0.3 - margin) if isinstance(loss, Expand) else max(0.0, margin + 0.3)
        total += float(cross_entropy((w @ image)[None], torch.tensor([label]))) + 0.7 * penalty
    assert float(found) == pytest.approx(total / 8, rel=1e-6)
    assert float(found) > float(cross_entropy(x.flatten(1) @ w.T, y)), "some image is penalised"


@pytest.mark.parametrize("kind", BOTH)
def test_gradients(kind, linear):
    w, x, y = linear
    loss = kind(weight=0.7, margin=0.3, epsilon=0.5)

    def value(rows):
        return loss(lambda pixels: pixels.flatten(1) @ rows.T, x, y, seeded(3))

    assert torch.autograd.gradcheck(value, (w.clone().requires_grad_(True),))


def test_slopes_at_an_undisplaced_image():
    """ε = 0, two classes: the slope in the margin is −(1 − p) ∓ λ; for `Restrict` it is zero at p = 1 − λ."""
    for kind, sign in ((Expand, -1), (Restrict, 1)):
        m = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)

        def two(pixels, m=m):
            return torch.stack([m, torch.zeros_like(m)])[None] + 0 * pixels.sum()

        loss = kind(weight=0.2, margin=1, epsilon=0)
        loss(two, torch.zeros(1, 1, 1, 1), torch.tensor([0]), seeded()).backward()
        assert float(m.grad) == pytest.approx(-(1 - float(m.detach().sigmoid())) + sign * 0.2)


def test_at_rest_the_label_keeps_one_minus_lambda_and_the_strongest_other_class_has_lambda():
    logits = torch.log(torch.tensor([[0.75, 0.25 - 2e-9, 1e-9, 1e-9]], dtype=torch.float64)).requires_grad_(True)
    loss = Restrict(weight=0.25, margin=1, epsilon=0)
    loss(lambda pixels: logits, torch.zeros(1, 1, 1, 1), torch.tensor([0]), seeded()).backward()
    assert float(logits.grad.abs().max()) < 1e-8
    assert Restrict().weight == Expand().weight == 0.25 < 0.5


def test_displacements_have_length_epsilon_are_isotropic_and_each_images_own():
    x = torch.full((3000, 1, 1, 3), 0.5)
    moved = Expand(epsilon=2).displaced(x, seeded()) - x
    torch.testing.assert_close(moved.flatten(1).norm(dim=1), torch.full((3000,), 2.0))
    unit = moved.flatten(1) / 2
    assert float(unit.mean(0).abs().max()) < 0.05
    torch.testing.assert_close(unit.T @ unit / 3000, torch.eye(3) / 3, atol=0.03, rtol=0)
    assert len({tuple(row) for row in unit.tolist()}) == 3000
    assert float((moved + x).max()) > 1, "nothing is clipped"


def test_the_loss_draws_from_its_generator_alone_and_anew_each_step(linear):
    _, x, _ = linear
    state, generator = torch.get_rng_state(), seeded()
    first, second = (Restrict().displaced(x, generator) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(first, second)
    assert torch.equal(first, Restrict().displaced(x, seeded()))


def _normalised(folder):
    path = folder / "normed.py"
    path.write_text(
        "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), "
        "nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 10))\n"
    )
    return gf.FactoryEncoder(f"{path}:net", input_shape=(1, 8, 8), mean=0.5, std=0.5)


@pytest.mark.parametrize("kind", BOTH)
def test_no_weight_is_cross_entropy_to_the_bit_with_batch_norm_and_dropout_too(kind, tmp_path):
    training = small(_normalised(tmp_path))
    control = weights(training)
    assert torch.equal(control, weights(training.evolve(loss=kind(weight=0.0))))
    assert not torch.equal(control, weights(training.evolve(loss=kind(weight=1e-3))))


def test_the_arms_are_three_trainings_with_one_order_of_the_data(tmp_path, monkeypatch):
    from geoframe.training.course import Course

    orders, real = [], Course._images
    monkeypatch.setattr(Course, "_images", lambda self, rows: orders.append(rows.tolist()) or real(self, rows))
    training = small(write_net(tmp_path))
    arms = [training, training.evolve(loss=Expand()), training.evolve(loss=Restrict())]
    found = [weights(arm) for arm in arms]
    assert len({arm.key for arm in arms}) == 3
    assert not torch.equal(found[1], found[2])
    third = len(orders) // 3
    assert orders[:third] == orders[third : 2 * third] == orders[2 * third :]


@pytest.mark.parametrize("kind", BOTH)
def test_an_interrupted_training_goes_on_to_the_same_bits(kind, tmp_path, elsewhere, monkeypatch):
    training = small(_normalised(tmp_path), checkpoints=(2,), data=gf.Digits(split="train", n=50), loss=kind())
    weights(training)
    whole = checkpoint_bytes(training)
    for epoch in (1, 3):
        elsewhere()
        with monkeypatch.context() as patch:
            stop_at(patch, epoch, 2, KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt):
                weights(training)
        torch.manual_seed(epoch)
        weights(training)
        assert checkpoint_bytes(training) == whole


def test_training_moves_the_margins_as_it_is_told_to(tmp_path):
    training = small(write_net(tmp_path), epochs=30)
    images = training.data.load((1, 8, 8))
    y = torch.tensor(images.labels)
    found = {}
    for kind in (None, *BOTH):
        loss = gf.CrossEntropy() if kind is None else kind(weight=0.5, margin=5, epsilon=0.3)
        logits = gf.TrainedEncoder(training.evolve(loss=loss)).load().logits
        found[kind] = float(margins(logits(Expand(epsilon=0.3).displaced(images.pixels, seeded())), y).mean())
    assert found[Restrict] < found[None] - 1
    assert found[None] + 0.5 < found[Expand]


@pytest.mark.parametrize("field", ["weight", "margin", "epsilon"])
@pytest.mark.parametrize("value", [-1, "large", float("nan")])
def test_bad_fields(field, value):
    with pytest.raises(gf.BadInput, match=f"Restrict: {field}=.* should be a number, 0 or more") as error:
        Restrict(**{field: value})
    assert "\n" not in str(error.value)


def test_what_stands_beside_the_encoders(tmp_path):
    training = small(write_net(tmp_path), loss=Restrict(weight=1, margin=2, epsilon=3))
    expected = {"loss_weight": 1, "loss_margin": 2, "loss_epsilon": 3}
    assert expected.items() <= gf.TrainedEncoder(training).coords.items()
    assert not expected.keys() & gf.TrainedEncoder(training, step="init").coords.keys()


def test_the_base_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"PerturbedMargin does not implement hinge\(margin\)"):
        PerturbedMargin()(nn.Flatten(), torch.zeros(1, 1, 1, 2), torch.tensor([0]), seeded())
