"""Measured noise against noise of known size."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geoframe.geometry.directions import unit_directions
from geoframe.geometry.noise import (
    derivative_gap,
    noise_against_derivative,
    noise_against_float64,
    noise_fractions,
)
from geoframe.geometry.response import Displacements as at
from tests.networks import SHAPE, SIZE, Linear, relu_net

QUANTUM = 2.0**-10


def quantised(phi: torch.nn.Module) -> torch.nn.Module:
    """Round features to a grid: uniform errors of variance q²/12 a feature, far above float32's own."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        exact = phi(x)
        return exact + ((exact / QUANTUM).round() * QUANTUM - exact).detach()

    return forward  # type: ignore[return-value]


def setting() -> tuple[torch.nn.Module, torch.nn.Module, torch.Tensor, torch.Tensor]:
    coarse, fine = Linear(out=400).requires_grad_(False), Linear(out=400).double().requires_grad_(False)
    torch.manual_seed(0)
    return coarse, fine, torch.rand(1, *SHAPE), unit_directions(SHAPE, 0, "x", 0, 4)


@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_noise_of_a_known_grid_is_measured(scale: float) -> None:
    coarse, fine, x, u = setting()
    found = noise_against_float64(at(quantised(coarse), x), at(fine, x.double()), u, scale, used=3)
    assert found == pytest.approx(2 * 400 * QUANTUM**2 / 12, rel=0.25)


@pytest.mark.parametrize("scale", [1e-3, 0.01, 1.0])
def test_without_float64_the_derivative_tells_the_same(scale: float) -> None:
    coarse, _, x, u = setting()
    found = noise_against_derivative(at(quantised(coarse), x), quantised(coarse), u, scale, used=4)
    assert found == pytest.approx(2 * 400 * QUANTUM**2 / 12, rel=0.25)


def test_curvature_is_not_taken_for_noise() -> None:
    """sin(300 x) is far from linear at η = 0.1, and still resolved to six digits."""
    _, _, x, u = setting()
    wave = at(lambda z: (300 * z.flatten(1)).sin(), x)
    found = noise_against_derivative(wave, wave.phi, u, 0.1, used=4)
    exact = noise_against_float64(wave, at(wave.phi, x.double()), u, 0.1, used=4)
    assert exact / 3 < found < 0.01 * SIZE


def test_coarse_features_are_not_taken_for_exact_at_a_step_below_their_grid() -> None:
    coarse, _, x, u = setting()
    found = noise_against_derivative(at(quantised(coarse), x), quantised(coarse), u, 1e-4, used=4)
    energy = float((quantised(coarse)(x + 1e-4 * u) - quantised(coarse)(x)).square().sum(1).mean())
    assert found > 0.5 * energy


def test_rounding_of_the_input_counts_as_noise() -> None:
    coarse, fine, x, u = setting()
    tiny = 1e-7
    energy = tiny**2 * float((fine(u.double()) - fine(torch.zeros_like(u).double())).square().sum(1).mean())
    assert noise_against_float64(at(coarse, x), at(fine, x.double()), u, tiny, used=4) > 0.02 * energy


def test_noise_is_measured_until_it_is_negligible_then_carried_along() -> None:
    asked: list[float] = []

    def measure(scale: float) -> float:
        asked.append(scale)
        return 1e-6

    scales = (0.1, 10.0, 0.01, 1.0)
    energy, level = np.array([1e-4, 1.0, 1e-6, 1e-2]), np.array([2.0, 8.0, 2.0, 2.0])
    found = noise_fractions(measure, scales, energy, level, enough=1e-3)
    assert asked == [0.01, 0.1, 1.0]
    np.testing.assert_allclose(found, [1e-2, 4e-6, 1.0, 1e-4])


def test_no_energy_means_only_noise() -> None:
    assert noise_fractions(lambda _: 0.0, (1.0,), np.zeros(1), np.ones(1), 0.1)[0] == np.inf


def test_derivative_gap_sees_a_kink() -> None:
    smooth = relu_net().double().requires_grad_(False)
    u = unit_directions(SHAPE, 0, "x", 0, 1).double()
    assert derivative_gap(smooth, torch.rand(1, *SHAPE, dtype=torch.float64), u, 1e-6) < 1e-6
    assert derivative_gap(lambda t: t.flatten(1).abs(), torch.zeros(1, *SHAPE, dtype=torch.float64), u, 1e-6) > 0.5
    flat = torch.zeros(1, SIZE, dtype=torch.float64)
    assert np.isnan(derivative_gap(lambda t: t * 0, flat, u.flatten(1), 1e-6))
