"""The exact search against closed forms, fine grids, and its own claims."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoframe.geometry.relu_line import Affine, Kink, Layers, first_crossings


def network(widths: list[int], slope: float, seed: int) -> Layers:
    generator = torch.Generator().manual_seed(seed)
    layers: list[Affine | Kink] = []
    for fan_in, fan_out in pairwise(widths):
        if layers:
            layers.append(Kink(slope))
        weight = torch.randn(fan_out, fan_in, generator=generator, dtype=torch.float64) * math.sqrt(2 / fan_in)
        layers.append(Affine(weight, 0.1 * torch.randn(fan_out, generator=generator, dtype=torch.float64)))
    return layers


def logits(layers: Layers, x: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        x = layer(x) if isinstance(layer, Kink) else torch.nn.functional.linear(x, layer.weight, layer.bias)
    return x


def rays(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(2, n, 16, generator=generator, dtype=torch.float64))  # type: ignore[return-value]


WIDTHS = [[16, 5], [16, 20, 5], [16, 70, 20, 5], [16, 40, 30, 20, 5], [16, 20, 20, 20, 20, 3]]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("slope", [0.0, 0.2])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_crossings_are_real_and_none_is_missed(widths: list[int], slope: float, seed: int) -> None:
    layers, (start, direction), cap = network(widths, slope, seed), rays(12, seed), 4.0
    held = logits(layers, start).argmax(1)
    found = first_crossings(layers, start, direction, held, cap)
    grid = torch.linspace(0, cap, 4001, dtype=torch.float64)
    for ray, crossing in enumerate(found.tolist()):
        points = start[ray] + grid[:, None] * direction[ray]
        changed = logits(layers, points).argmax(1) != held[ray]
        coarse = float(grid[changed.int().argmax()]) if changed.any() else math.inf
        assert crossing <= coarse + 1e-9
        if math.isfinite(crossing):
            near = start[ray] + (crossing + torch.tensor([[-1e-8], [1e-8]], dtype=torch.float64)) * direction[ray]
            before, after = (logits(layers, near).argmax(1) == held[ray]).tolist()
            assert before
            assert not after


def bump(width: float, centre: float) -> Layers:
    """Class 0 but in an interval of the first coordinate, by a tent of three ReLUs."""
    ones = torch.ones(3, 1, dtype=torch.float64)
    knots = torch.tensor([centre - width, centre, centre + width], dtype=torch.float64)
    tent = torch.tensor([[0.0, 0.0, 0.0], [1.0, -2.0, 1.0]], dtype=torch.float64) / width
    return [Affine(ones, -knots), Kink(), Affine(tent, torch.tensor([0.5, 0.0], dtype=torch.float64))]


@pytest.mark.parametrize("width", [1e-1, 1e-4, 1e-9])
def test_a_narrow_excursion_is_found(width: float) -> None:
    """The tent rises from 0 at c − w to 1 at c: it passes 0.5 half way."""
    centre = math.pi / 3
    start, direction = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    held = torch.zeros(1, dtype=torch.int64)
    found = first_crossings(bump(width, centre), start, direction, held, cap=2.0)
    assert float(found) == pytest.approx(centre - width / 2, abs=1e-14)
    assert first_crossings(bump(width, centre), start, direction, held, cap=0.9).isinf().all()
    assert float(first_crossings(bump(width, centre), start, -direction, held, cap=2.0)) == math.inf


def test_a_narrow_excursion_through_a_second_layer() -> None:
    """The same tent behind an identity of two ReLUs, so that it lies in the last hidden layer."""
    tent = bump(1e-7, 1.0)
    first, second = tent[0], tent[2]
    assert isinstance(first, Affine)
    assert isinstance(second, Affine)
    sign = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    layers = [
        Affine(sign, torch.zeros(2, dtype=torch.float64)),
        Kink(),
        Affine(first.weight @ sign.T, first.bias),
        Kink(),
        second,
    ]
    start, direction = torch.full((1, 1), -0.5, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    found = first_crossings(layers, start, direction, torch.zeros(1, dtype=torch.int64), cap=3.0)
    assert float(found) == pytest.approx(1.5 - 0.5e-7, abs=1e-12)


def test_edges() -> None:
    layers = network([16, 30, 20, 5], 0.0, 0)
    start, direction = rays(6, 0)
    held = logits(layers, start).argmax(1)
    assert first_crossings(layers, start, torch.zeros_like(direction), held, 1.0).isinf().all()
    assert (first_crossings(layers, start, direction, (held + 1) % 5, 1.0) == 0).all()
    assert first_crossings(layers, start[:0], direction[:0], held[:0], 1.0).shape == (0,)


@settings(max_examples=10, deadline=None)
@given(scale=st.floats(0.1, 10.0))
def test_lengths_of_directions_only_rescale(scale: float) -> None:
    layers, (start, direction) = network([16, 40, 20, 5], 0.0, 1), rays(8, 1)
    held = logits(layers, start).argmax(1)
    one = first_crossings(layers, start, direction, held, 2.0)
    other = first_crossings(layers, start, scale * direction, held, 2.0 / scale)
    torch.testing.assert_close(other * scale, one, rtol=1e-9, atol=1e-12)
