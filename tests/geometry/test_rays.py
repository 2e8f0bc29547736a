"""The step search against the plain loop, ray by ray, and its edges."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geoframe.geometry.rays import LinearFirstLine, NotFinite, PlainLine, first_change, grid_search, steps_to
from tests.plain_rays import plain_search


def classifier(seed: int = 0, classes: int = 4) -> torch.nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(
            torch.nn.Linear(12, 40),
            torch.nn.ReLU(),
            torch.nn.Linear(40, 24),
            torch.nn.ReLU(),
            torch.nn.Linear(24, classes),
        )
    return net.requires_grad_(False)


def some_rays(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 12, generator=generator), 3 * torch.randn(n, 12, generator=generator)


@settings(max_examples=15, deadline=None)
@given(batch=st.integers(50, 3000), step=st.sampled_from([0.5, 0.1, 0.013]), seed=st.integers(0, 3))
def test_every_ray_is_that_of_the_plain_loop(batch: int, step: float, seed: int) -> None:
    net = classifier(seed)
    start, direction = some_rays(50, seed)
    held = net(start).argmax(1)
    held[:5] = (held[:5] + 1) % 4  # rays that start elsewhere
    steps = steps_to(2.0, step)
    gi, alive = plain_search(net, start, direction, held, steps)
    plain = PlainLine(net, start, direction)
    fast = LinearFirstLine(plain, net[0].weight, net[0].bias, net[1:])
    for line in (plain, fast):
        found = grid_search(line, held, steps, batch)
        assert torch.equal(found.gi, gi)
        assert torch.equal(found.censored, alive)
    assert alive.any()
    assert (gi[:5] == 0).all()


def test_near_ties_are_decided_the_plain_way() -> None:
    """A first layer whose precomputed form is wrong by a rounding error must not decide a tie."""
    net = torch.nn.Sequential(torch.nn.Linear(12, 2)).requires_grad_(False)
    net[0].bias.fill_(8.0)  # the logits' size tells how they are rounded: they don't cancel
    net[0].weight.copy_((8 * net[0].weight).round() / 8)  # few bits: no sum is rounded, in any order
    net[0].weight[1] = net[0].weight[0]  # always a tie: the first class wins, as argmax has it
    start, direction = ((8 * t).round() / 8 for t in some_rays(20))
    plain = PlainLine(net, start, direction)
    off = LinearFirstLine(plain, net[0].weight + torch.tensor([[0.0], [1e-7]]), net[0].bias, torch.nn.Identity())
    held = torch.zeros(20, dtype=torch.int64)
    assert grid_search(off, held, steps_to(1.0, 0.125), 100).censored.all()


def test_finished_rays_are_dropped() -> None:
    seen = 0

    def count(x: torch.Tensor) -> torch.Tensor:
        nonlocal seen
        seen += len(x)
        return torch.stack([1 - x[:, 0], x[:, 0] - 1], 1)

    start, direction = torch.zeros(64, 12), torch.zeros(64, 12)
    direction[:, 0] = 10.0  # crosses at 0.1
    direction[0, 0] = 0.0  # never
    found = grid_search(PlainLine(count, start, direction), torch.zeros(64, dtype=torch.int64), steps_to(3, 0.01), 64)
    assert found.censored.tolist() == [True] + [False] * 63
    assert float(abs(found.gi[1:] - 0.1).max()) < 0.0101
    assert seen < 64 * 12 + 64 * 6


@pytest.mark.parametrize(
    ("cap", "step", "through", "want"),
    [
        (1.0, 0.25, None, [0, 0.25, 0.5, 0.75, 1.0]),
        (1.0, 0.3, None, [0, 0.3, 0.6, 0.9, 1.0]),
        (1.5, 0.4, 1.0, [0, 0.4, 0.8, 1.0, 1.2, 1.5]),
        (0.5, 0.5, 1.0, [0, 0.5]),
    ],
)
def test_the_cap_is_always_tested(cap: float, step: float, through: float | None, want: list[float]) -> None:
    assert steps_to(cap, step, through).tolist() == pytest.approx(want)
    assert steps_to(cap, step, through)[-1] == cap


@given(count=st.integers(1, 4000))
def test_rounding_adds_and_loses_no_step(count: int) -> None:
    steps = steps_to(3.0, 3.0 / count)
    assert len(steps) == count + 1


def test_nan_is_an_error_not_a_class() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[:, 0], x[:, 0] / 0 * 0], 1)

    start, direction = some_rays(3)
    with pytest.raises(NotFinite):
        first_change(PlainLine(broken, start, direction), torch.zeros(3, dtype=torch.int64), steps_to(1, 0.5), 10)
