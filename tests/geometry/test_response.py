"""Responses and predictions against plain loops; independence of the block size."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import pushforward
from geoframe.geometry.response import (
    Displacements,
    blocks_of,
    even_blocks,
    linear_predictions,
    pair_responses,
    pairs_within,
)
from tests.networks import SHAPE, relu_net

SCALES = (0.01, 1.0, 30.0)


def draw(start: int, stop: int) -> torch.Tensor:
    return unit_directions(SHAPE, 0, "x", start, stop).double()


@given(total=st.integers(1, 3000), largest=st.integers(1, 600))
def test_even_blocks_cover_with_less_than_a_row_of_padding_each(total: int, largest: int) -> None:
    size = even_blocks(total, largest)
    blocks = math.ceil(total / size)
    assert 1 <= size <= largest
    assert blocks == math.ceil(total / largest) or size == largest
    assert blocks * size - total < blocks


@given(total=st.integers(1, 40), size=st.integers(1, 12))
def test_blocks_have_one_shape_and_lose_nothing(total: int, size: int) -> None:
    found = list(blocks_of(draw, total, size))
    assert {tuple(block.shape) for _, block in found} == {(size, *SHAPE)}
    kept = torch.cat([block[: rows.stop - rows.start] for rows, block in found])
    assert torch.equal(kept, draw(0, total))


@given(block=st.integers(1, 9))
def test_responses_are_those_of_a_plain_loop_whatever_the_block(block: int) -> None:
    phi, x = relu_net().double().requires_grad_(False), torch.rand(1, *SHAPE, dtype=torch.float64)
    response, level = pair_responses(Displacements(phi, x), draw, 7, SCALES, block)
    for row, u in enumerate(draw(0, 7)):
        for column, scale in enumerate(SCALES):
            moves = [(phi(x + sign * scale * u) - phi(x)).square().sum() for sign in (1, -1)]
            torch.testing.assert_close(response[row, column], sum(moves) / (2 * scale**2), rtol=1e-9, atol=0)
    ends = [phi(x + sign * SCALES[2] * draw(0, 7)).square().sum(1).mean() for sign in (1, -1)]
    torch.testing.assert_close(level[2], phi(x).square().sum() + sum(ends) / 2, rtol=1e-9, atol=0)


@given(block=st.integers(1, 9))
def test_predictions_are_those_of_the_full_jacobian_whatever_the_block(block: int) -> None:
    phi, x = relu_net().double().requires_grad_(False), torch.rand(1, *SHAPE, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda t: phi(t)[0], x).flatten(1)
    found = linear_predictions(lambda a, b: pushforward(phi, a, b), x, draw, 5, block)
    torch.testing.assert_close(found, (draw(0, 5).flatten(1) @ jacobian.T).square().sum(1), rtol=1e-9, atol=0)


def test_the_image_itself_is_passed_once_for_each_size_of_a_small_batch() -> None:
    phi, x, sizes = relu_net().requires_grad_(False), torch.rand(1, *SHAPE), []

    def counted(points: torch.Tensor) -> torch.Tensor:
        sizes.append(len(points))
        return phi(points)

    moves = Displacements(counted, x)
    pair_responses(moves, lambda start, stop: draw(start, stop).float(), 8, SCALES, 4)
    pair_responses(moves, lambda start, stop: draw(start, stop).float(), 3, SCALES, 3)
    assert sizes == [8] * (1 + 2 * len(SCALES)) + [6] * (1 + len(SCALES))
    sizes.clear()
    pair_responses(moves, lambda start, stop: draw(start, stop).float(), 40, SCALES, 20)
    assert sizes == [41] * 2 * len(SCALES), "in a large batch it is one row more"


def test_where_nothing_moves_the_displacement_is_exactly_zero() -> None:
    moves = Displacements(relu_net().requires_grad_(False), torch.rand(1, *SHAPE))
    assert not moves.along(torch.zeros(5, *SHAPE)).any()


@given(rows=st.integers(2, 600))
def test_pairs_and_the_image_fit_into_the_rows(rows: int) -> None:
    pairs = pairs_within(rows)
    assert 2 * pairs + (2 * pairs > 32) <= rows
    assert 2 * (pairs + 1) + (2 * (pairs + 1) > 32) > rows
