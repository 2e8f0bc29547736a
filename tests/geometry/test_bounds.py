"""Bounds of generalization intervals against closed forms and a plain implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geoframe.geometry.bounds import (
    first_changed,
    gradient_bound,
    lower_bound,
    margin,
    ray_bounds,
    residuals,
    slopes,
    useful_form,
)

STEPS = torch.arange(0, 101, dtype=torch.float64) / 50


def parabola(a: float, b: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of two classes along a ray: (1 − t·a − t²·b, 0); J d = (−a, 0), R = (−t²·b, 0)."""
    first = 1 - a * STEPS - b * STEPS.square()
    return torch.stack([first, torch.zeros_like(first)], 1)[None], torch.tensor([[-a, 0.0]], dtype=torch.float64)


def test_a_parabola() -> None:
    logits, change = parabola(0.5, 0.5)  # 1 − t/2 − t²/2 = 0 at t = 1
    slope = slopes(change, 0)
    torch.testing.assert_close(slope, torch.tensor([[0.5, math.sqrt(0.5), 0.5]], dtype=torch.float64))
    found = ray_bounds(logits, change, 0, STEPS, slope, 1e-12)
    torch.testing.assert_close(found.residual_cap, torch.tensor([2.0], dtype=torch.float64))
    assert found.margin.item() == 1
    assert (found.lower == 0).all()  # δ of the whole ray exceeds the margin
    assert found.gi.item() == pytest.approx(1.0, abs=0.021)  # at t = 1 the classes tie
    assert found.crossing.item() == pytest.approx(found.gi.item() + 0.02)
    torch.testing.assert_close(found.residual, found.crossing.square() / 2)
    assert found.useful.item() == pytest.approx(0.98)  # T/2 + T²/2 < 1: here the bound is the interval
    assert not found.broken.item()
    assert not found.censored.item()


def test_a_straight_line_is_bounded_exactly_where_two_classes_matter() -> None:
    change = torch.tensor([[-0.4, 0.4, 0.0]], dtype=torch.float64)
    logits = torch.tensor([1.0, 0.2, -5.0], dtype=torch.float64) + STEPS[None, :, None] * change[:, None]
    found = ray_bounds(logits, change, 0, STEPS, slopes(change, 0), 1e-12)
    torch.testing.assert_close(found.lower, torch.tensor([[1.0, 1.0, 1.0]], dtype=torch.float64))
    assert found.residual_cap.item() == pytest.approx(0, abs=1e-12)
    assert found.crossing.item() == pytest.approx(1.0, abs=0.021)


def test_a_ray_that_keeps_its_class() -> None:
    logits, change = parabola(0.0, 0.0)
    found = ray_bounds(logits, change, 0, STEPS, slopes(change, 0), 0.0)
    assert found.censored.item()
    assert found.gi.item() == 2
    assert found.crossing.isnan().item()
    assert (found.lower == 2).all()
    assert found.useful.item() == 2
    assert not found.broken.item()


def test_a_slope_that_is_too_small_is_noticed() -> None:
    logits, change = parabola(1.0, 0.0)
    assert ray_bounds(logits, change, 0, STEPS, torch.tensor([[1.0]]), 1e-12).broken.item() is False
    assert ray_bounds(logits, change, 0, STEPS, torch.tensor([[1.0, 0.9]]), 1e-12).broken.item() is True


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_plain_implementation_and_the_theorem(seed: int, classes: int) -> None:
    """Any logits along a ray, with any 'derivative': the undivided bound holds, since R takes up what J misses."""
    rng = np.random.default_rng(seed)
    steps = np.linspace(0, 1, 30)
    logits = np.cumsum(rng.standard_normal((30, classes)), axis=0)
    change = rng.standard_normal(classes)
    y = int(logits[0].argmax())
    delta, first = 0.0, None
    for k, t in enumerate(steps):
        delta = max(delta, float(np.abs(logits[k] - logits[0] - t * change).sum()))
        if first is None and logits[k].argmax() != y:
            first = (k, delta)
    q0 = logits[0, y] - np.delete(logits[0], y).max()
    rows = torch.from_numpy(logits)[None], torch.from_numpy(change)[None]
    found = ray_bounds(*rows, y, torch.from_numpy(steps), slopes(rows[1], y), 1e-12)
    assert float(found.residual_cap) == pytest.approx(delta)
    assert float(found.margin) == pytest.approx(q0)
    assert not found.broken.any()
    if first is None:
        assert found.censored.all()
    else:
        assert float(found.gi) == steps[first[0] - 1]
        assert float(found.residual) == pytest.approx(first[1])
        assert float(found.useful) <= float(found.gi)
        assert float(found.lower.max()) <= steps[first[0]] + 1e-12
    left = q0 - delta
    want = min(1.0, left / np.abs(change).sum()) if left > 0 else 0.0
    assert float(found.lower[0, 0]) == pytest.approx(want)


@given(st.integers(0, 10_000))
def test_sharpest_slope_is_never_above_the_others(seed: int) -> None:
    change = torch.randn(8, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = slopes(change, seed % 5)
    assert (found[:, 2] <= found[:, :2].amin(1) * (1 + 1e-12)).all()


def test_parts() -> None:
    logits = torch.tensor([[[3.0, 1.0, 2.0], [0.0, 4.0, 1.0]]])
    assert margin(logits, 0).tolist() == [[1.0, -4.0]]
    assert first_changed(logits, 0).tolist() == [1]
    assert first_changed(logits[:, :1], 0).tolist() == [1]
    steps = torch.tensor([0.0, 1.0, 2.0])
    bent = torch.tensor([[[0.0, 0.0], [3.0, 0.0], [2.0, 0.0]]])
    assert residuals(bent, torch.tensor([[1.0, 0.0]]), steps).tolist() == [[0.0, 2.0, 2.0]]
    assert useful_form(torch.tensor([[0.0]]), torch.zeros(1, 3), torch.zeros(1), steps).tolist() == [0.0]
    slope = torch.tensor([0.0, 0.0, 1.0])
    assert lower_bound(torch.ones(3), torch.tensor([0.5, 1.5, 0.5]), slope, 4.0).tolist() == [4.0, 0.0, 0.5]
    assert gradient_bound(0.75, 2.0, 3.0) == pytest.approx((1.5 * math.sqrt(2), 6 * math.sqrt(2)))
