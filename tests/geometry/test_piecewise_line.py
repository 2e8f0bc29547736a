"""The exact search through convolutional networks against fine grids, the sweep, closed forms, and its own claims."""

from __future__ import annotations

import math

import attrs
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from geoframe.geometry import relu_line
from geoframe.geometry.enclosure import Bend, Enclosure, Map
from geoframe.geometry.piecewise_line import PiecewiseLinear, first_crossings
from geoframe.lines import exact_form
from geoframe.piecewise import piecewise_network
from tests.networks import loaded

SHAPE = (2, 8, 8)
CAP = 3.0
DOUBLE = torch.float64


def _conv() -> list[nn.Module]:
    return [nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten()]


def _normed() -> list[nn.Module]:
    return [
        nn.BatchNorm2d(2),
        nn.Conv2d(2, 4, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.LeakyReLU(0.1),
        nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2), nn.BatchNorm2d(4)),
        nn.ReLU6(),
        nn.Dropout(0.3),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(),
    ]


def _pooled() -> list[nn.Module]:
    return [
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2, 4, 3, padding="same"),
        nn.MaxPool2d(2, stride=1, ceil_mode=True),
        nn.Hardtanh(-0.5, 0.5),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 12),
        nn.ReLU(),
    ]


NETWORKS = {"conv": _conv, "normed": _normed, "pooled": _pooled}


def network(kind: str, seed: int) -> tuple[nn.Sequential, PiecewiseLinear]:
    """A random network in float64 with its own head, and what the search makes of it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = nn.Sequential(*NETWORKS[kind]())
        for module in body.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                nn.init.normal_(module.weight)  # of both signs
                nn.init.normal_(module.bias)
        body.train()(torch.rand(64, *SHAPE))
        head = nn.Linear(body.eval()(torch.rand(1, *SHAPE)).shape[1], 4)
    encoder = loaded(body, SHAPE, head=head)
    return nn.Sequential(body, head).double(), piecewise_network(encoder)


def rays(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.rand(n, *SHAPE, generator=generator, dtype=DOUBLE),
        2 * torch.randn(n, *SHAPE, generator=generator, dtype=DOUBLE),
    )


def changed_at(
    model: nn.Module, start: torch.Tensor, direction: torch.Tensor, held: int, t: torch.Tensor
) -> list[bool]:
    with torch.no_grad():
        return (model(start + t.view(-1, 1, 1, 1) * direction).argmax(1) != held).tolist()


@pytest.mark.parametrize("kind", NETWORKS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_crossings_are_real_and_none_is_missed(kind: str, seed: int) -> None:
    (model, form), (start, direction) = network(kind, seed), rays(8, seed)
    with torch.no_grad():
        held = model(start).argmax(1)
        found = first_crossings(form, start, direction, held, CAP)
    grid = torch.linspace(0, CAP, 2001, dtype=DOUBLE)
    for ray, crossing in enumerate(found.tolist()):
        line = model, start[ray], direction[ray], int(held[ray])
        changed = changed_at(*line, grid)
        coarse = float(grid[changed.index(True)]) if any(changed) else math.inf
        assert crossing <= coarse + 1e-11
        if math.isfinite(crossing):
            assert changed_at(*line, crossing + torch.tensor([-1e-9, 1e-9], dtype=DOUBLE)) == [False, True]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), slope=st.sampled_from([0.0, 0.2]))
def test_it_agrees_with_the_sweep_of_an_mlp(seed: int, slope: float) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        kink = nn.LeakyReLU(slope) if slope else nn.ReLU()
        body = nn.Sequential(nn.Flatten(), nn.Linear(128, 40), kink, nn.Linear(40, 20), nn.BatchNorm1d(20), kink)
        encoder = loaded(body, SHAPE, head=nn.Linear(20, 4), mean=0.4, std=0.3)
    start, direction = rays(16, seed)
    with torch.no_grad():
        held = encoder.logits(start.float()).argmax(1)
        layers, form = exact_form(encoder), piecewise_network(encoder)
        assert isinstance(layers, list)
        swept = relu_line.first_crossings(layers, start.flatten(1), direction.flatten(1), held, CAP)
        found = first_crossings(form, start, direction, held, CAP)
    # a kink beside a crossing moves it by the bound of rounding errors over the slope
    torch.testing.assert_close(found, swept, rtol=0, atol=1e-8)


def affine(weight: torch.Tensor, bias: torch.Tensor) -> Map:
    return Map(lambda h: h @ weight.T, lambda e: e @ weight.abs().T, bias, weight.shape[1])


def bump(width: float, centre: float, height: float = 1.0) -> PiecewiseLinear:
    """Class 0 wherever the first coordinate is not near the centre: a tent of three ReLUs that has to pass 0.5."""
    knots = torch.tensor([centre - width, centre, centre + width], dtype=DOUBLE)
    tent = torch.tensor([[0.0, 0.0, 0.0], [1.0, -2.0, 1.0]], dtype=DOUBLE) * height / width
    first = affine(torch.ones(3, 1, dtype=DOUBLE), -knots)
    return PiecewiseLinear([first], [Bend(slope=0.0)], tent, torch.tensor([0.5, 0.0], dtype=DOUBLE))


def along_first_coordinate(form: PiecewiseLinear, cap: float, begin: float = 0.0, sign: float = 1.0) -> float:
    start, direction = torch.full((1, 1), begin, dtype=DOUBLE), torch.full((1, 1), sign, dtype=DOUBLE)
    return float(first_crossings(form, start, direction, torch.zeros(1, dtype=torch.int64), cap))


@pytest.mark.parametrize("width", [1e-1, 1e-4, 1e-6, 1e-9])
def test_a_narrow_excursion_is_found(width: float) -> None:
    """The tent rises from 0 at c − w to 1 at c: it passes 0.5 half way."""
    centre = math.pi / 3
    assert along_first_coordinate(bump(width, centre), 2.0) == pytest.approx(centre - width / 2, abs=1e-14)
    assert along_first_coordinate(bump(width, centre), 0.9) == math.inf
    assert along_first_coordinate(bump(width, centre), 2.0, sign=-1.0) == math.inf


def test_the_cap_and_the_start_belong_to_the_held_class_where_margins_are_zero() -> None:
    form = bump(0.5, 1.0)  # crosses 0.5 at 0.75 upwards, at 1.25 downwards
    assert along_first_coordinate(form, 0.75) == math.inf
    assert along_first_coordinate(form, 0.75 + 1e-12) == pytest.approx(0.75, abs=1e-15)
    assert along_first_coordinate(form, 1.0, begin=0.75) == pytest.approx(0.0, abs=1e-15)
    assert along_first_coordinate(form, 0.5, begin=1.25) == math.inf
    assert along_first_coordinate(form, 0.5, begin=1.0) == 0.0


@pytest.mark.parametrize("depth", [-1e-9, 0.0, 1e-9])
def test_a_margin_that_comes_near_zero_is_not_overtaken_and_one_that_just_passes_is(depth: float) -> None:
    """Where it touches zero exactly, rounding decides; the search ends there or goes on."""
    found = along_first_coordinate(bump(0.25, 1.0, height=0.5 + depth), 3.0)
    near = found == pytest.approx(1.0, abs=1e-9)
    assert (depth <= 0 and found == math.inf) or (depth >= 0 and near)


def test_a_narrow_excursion_behind_max_pooling_and_a_convolution() -> None:
    """Max pooling of (t − c, c − t) is |t − c|; the tent 1 − |t − c| / w is a convolution's and a ReLU's."""
    centre, width = math.pi / 3, 2.0**-20
    convolution, head = nn.Conv2d(1, 1, 1), nn.Linear(1, 2)
    for layer, weight, bias in ((convolution, [-1 / width], [1.0]), (head, [0.0, 1.0], [0.5, 0.0])):
        layer.weight.data.copy_(torch.tensor(weight).view_as(layer.weight))
        layer.bias.data.copy_(torch.tensor(bias))
    body = nn.Sequential(nn.MaxPool2d((1, 2)), convolution, nn.ReLU(), nn.Flatten())
    form = piecewise_network(loaded(body, (1, 1, 2), head=head))
    start = torch.tensor([-centre, centre], dtype=DOUBLE).view(1, 1, 1, 2)
    direction = torch.tensor([1.0, -1.0], dtype=DOUBLE).view(1, 1, 1, 2)
    with torch.no_grad():
        found = first_crossings(form, start, direction, torch.zeros(1, dtype=torch.int64), 2.0)
    assert float(found) == pytest.approx(centre - width / 2, abs=1e-14)


def test_flat_backgrounds_that_do_not_move_and_duplicated_channels() -> None:
    """Ties all over in max pooling, units that are 0 all along the ray, and the same unit twice."""
    (model, _), (start, direction) = network("conv", 3), rays(8, 3)
    first = model[0][0]
    with torch.no_grad():
        first.weight[2:], first.bias[:] = first.weight[:2].clone(), 0.0
        start[:, :, :5], direction[:, :, :5] = 0.0, 0.0
        held = model(start).argmax(1)
        form = piecewise_network(loaded(model[0].float(), SHAPE, head=model[1].float()))
        model.double()
        found = first_crossings(form, start, direction, held, CAP)
        assert int(found.isfinite().sum()) > 0
        for ray, crossing in enumerate(found.tolist()):
            line = model, start[ray], direction[ray], int(held[ray])
            if math.isfinite(crossing):
                assert changed_at(*line, crossing + torch.tensor([-1e-9, 1e-9], dtype=DOUBLE)) == [False, True]
            else:
                assert not any(changed_at(*line, torch.linspace(0, CAP, 2001, dtype=DOUBLE)))
        assert first_crossings(form, start, 0 * direction, held, CAP).isinf().all()


def test_classes_that_are_the_same_do_not_overtake_each_other() -> None:
    (model, form), (start, direction) = network("normed", 5), rays(8, 5)
    with torch.no_grad():
        held = model(start).argmax(1)
        twice = attrs.evolve(form, weight=form.weight.repeat(2, 1), bias=form.bias.repeat(2))
        once = first_crossings(form, start, direction, held, CAP)
        torch.testing.assert_close(first_crossings(twice, start, direction, held, CAP), once, rtol=0, atol=1e-12)
        assert (first_crossings(form, start, direction, (held + 1) % 4, CAP) == 0).all()
        assert first_crossings(form, start[:0], direction[:0], held[:0], CAP).shape == (0,)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), kind=st.sampled_from(list(NETWORKS)), block=st.integers(1, 5))
def test_a_ray_does_not_depend_on_the_others_of_its_batch(seed: int, kind: str, block: int) -> None:
    (model, form), (start, direction) = network(kind, seed), rays(8, seed)
    with torch.no_grad():
        held = model(start).argmax(1)
        parts = [t.split(block) for t in (start, direction, held)]
        apart = torch.cat([first_crossings(form, *part, CAP) for part in zip(*parts, strict=True)])
        torch.testing.assert_close(first_crossings(form, start, direction, held, CAP), apart, rtol=0, atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), slope=st.sampled_from([0.0, 0.3, 1.0]), pooled=st.booleans())
def test_a_bend_encloses_what_it_has_to(seed: int, slope: float, pooled: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    centre, tilt = torch.randn(2, 3, 2, 4, 4, generator=generator, dtype=DOUBLE)
    reach = torch.rand(3, 2, 4, 4, generator=generator, dtype=DOUBLE) * (seed % 3)
    bend = Bend(nn.MaxPool2d(2, return_indices=True) if pooled else None, slope)
    found = bend(Enclosure(centre, tilt, reach))
    for _ in range(20):
        tau, error = torch.rand(1, generator=generator) * 2 - 1, torch.rand(reach.shape, generator=generator) * 2 - 1
        value = centre + tau * tilt + error.sign() * reach
        value = nn.functional.max_pool2d(value, 2) if pooled else value
        value = torch.where(value > 0, value, slope * value)
        assert bool(((value - found.centre - tau * found.tilt).abs() <= found.reach + 1e-12).all())


def test_a_bend_is_exact_where_one_line_wins() -> None:
    lines = torch.tensor([[3.0, 1.0, 0.5, -1.0], [0.5, 0.2, -0.3, 0.4]], dtype=DOUBLE).view(2, 1, 1, 2, 2)
    found = Bend(nn.MaxPool2d(2, return_indices=True), 0.0)(Enclosure(*lines, torch.zeros(1, 1, 2, 2, dtype=DOUBLE)))
    assert (float(found.centre), float(found.tilt), float(found.reach)) == pytest.approx((3.0, 0.5, 0.0), abs=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_ties_along_whole_stretches_go_to_the_lower_class_whatever_rounding_says(seed: int) -> None:
    """Small whole numbers as weights and pixels: margins that are 0 for a while, kinks and crossings that coincide."""
    generator = torch.Generator().manual_seed(seed)
    layers = nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 3, 3), nn.LeakyReLU(0.5)
    body, head = nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 8), nn.ReLU()), nn.Linear(8, 3)
    for parameter in (*body.parameters(), *head.parameters()):
        kept = torch.rand(parameter.shape, generator=generator) < 0.5
        parameter.data = torch.randint(-2, 3, parameter.shape, generator=generator).float() * kept
    form = piecewise_network(loaded(body, SHAPE, head=head))
    start = torch.randint(0, 3, (8, *SHAPE), generator=generator).double() * (seed > 1)
    direction = torch.randint(-1, 2, (8, *SHAPE), generator=generator).double()
    model, grid = nn.Sequential(body, head).double(), torch.linspace(0, CAP, 193, dtype=DOUBLE)
    with torch.no_grad():
        held = model(start).argmax(1)
        found = first_crossings(form, start, direction, held, CAP)
        for ray, crossing in enumerate(found.tolist()):
            t = torch.cat([grid, torch.tensor([crossing + 1e-7], dtype=DOUBLE)])[: len(grid) + math.isfinite(crossing)]
            logits = model(start[ray] + t.view(-1, 1, 1, 1) * direction[ray])
            margin = logits[:, held[ray], None] - logits
            lower = torch.arange(3) < held[ray]
            overtaken = t[(margin < torch.where(lower, 1e-10, -1e-10)).any(1)]
            assert crossing <= min([math.inf, *overtaken.tolist()]) + 1e-10
            if math.isfinite(crossing):
                assert bool((margin[-1] < torch.where(lower, 1e-8, 0.0)).any())
