"""Adaptive sampling reaches its target where it can, spends where it must, and says the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geoframe.geometry.adaptive import BLOCK, PILOT
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.response import Displacements, block_responses, pair_responses
from tests.adaptive import sample
from tests.networks import SHAPE, SIZE, Linear, Square, relu_net


def test_a_linear_map_takes_the_pilot_and_has_ratio_one() -> None:
    found = sample(Linear(), [0.1, 1.0, 10.0], 0.5)
    np.testing.assert_array_equal(found.pairs, PILOT)
    np.testing.assert_allclose(found.ratio, 1.0, atol=4 * found.ratio_se.max())


def test_the_square_of_a_projection() -> None:
    """R = 1 + 3η² / (4 (a·x)² (d + 2)); one feature, so that the denominator is exact."""
    scales = [0.1, 3.0, 30.0]
    found = sample(Square(), scales, 0.03)
    assert found.pushforwards == 0
    assert found.prediction_se == 0.0
    projection = 0.5 * np.sqrt(SIZE)
    want = 1 + 3 * np.square(scales) / (4 * projection**2 * (SIZE + 2))
    assert (np.abs(found.ratio - want) < 3.5 * found.ratio_se).all()
    assert (found.ratio_se <= 0.03 * found.ratio).all()
    assert found.pairs[0] < found.pairs[2]


def test_products_are_added_where_they_save_pairs() -> None:
    """Of a linear map numerator and denominator have the same error: with a product for every pair it cancels."""
    found = sample(Linear(out=30), [0.1, 1.0, 10.0], 0.01)
    assert found.pushforwards == found.pairs.max() > PILOT
    assert found.prediction_se > 0.02 * found.prediction
    assert (found.ratio_se <= 0.01 * found.ratio).all()
    np.testing.assert_allclose(found.ratio, 1.0, atol=0.01)


def test_the_cap_is_kept_and_the_error_stays_honest() -> None:
    found = sample(Square(), [30.0], 1e-3, most=40)
    np.testing.assert_array_equal(found.pairs, 40)
    assert found.ratio_se[0] > 1e-3 * found.ratio[0]


def test_a_target_that_nothing_reaches_takes_all_pairs() -> None:
    found = sample(relu_net(), [1.0, 10.0], 1e-300, most=64)
    np.testing.assert_array_equal(found.pairs, 64)
    assert np.isfinite(found.ratio_se).all()


def test_counts_are_whole_blocks_and_do_not_depend_on_the_batch() -> None:
    one, two = (sample(relu_net(), [0.1, 1.0, 5.0], 0.02, rows=rows) for rows in (3, 65))
    np.testing.assert_array_equal(one.pairs, two.pairs)
    assert (one.pairs % BLOCK == 0).all()
    np.testing.assert_allclose(one.ratio, two.ratio, rtol=1e-12)


def test_a_constant_map_ends() -> None:
    found = sample(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE, 3)).apply(_zero), [1.0], 0.01)
    np.testing.assert_array_equal(found.pairs, PILOT)
    assert not np.isfinite(found.ratio).any()


def _zero(module: torch.nn.Module) -> None:
    for parameter in module.parameters():
        torch.nn.init.zeros_(parameter)


@pytest.mark.parametrize("rows", [3, 7, 64])
def test_blocks_of_several_scales_are_the_same_responses(rows: int) -> None:
    net, x = relu_net().double(), torch.rand(1, *SHAPE, dtype=torch.float64)
    u, scales = unit_directions(SHAPE, 0, "x", 0, 6).double(), [0.1, 1.0, 2.0]
    with torch.no_grad():
        have = block_responses(Displacements(net, x), u, scales, rows)
        want = pair_responses(Displacements(net, x), lambda start, stop: u[start:stop], 6, scales, block=6)
    for one, two in zip(have, want, strict=True):
        torch.testing.assert_close(one, two)
