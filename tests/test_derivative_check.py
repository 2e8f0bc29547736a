"""A derivative that misses a change is refused; one that is zero where the map is flat isn't."""

from __future__ import annotations

import pytest
import torch

from geoframe.errors import EncoderRefused
from geoframe.loaded import LoadedEncoder
from tests.networks import SHAPE, loaded


class OnePixel(torch.nn.Module):
    """A feature that depends on the first pixel alone, and the logits (½, feature)."""

    def __init__(self, kind: str, *, detached: bool = False, float32: bool = False) -> None:
        super().__init__()
        self.kind, self.detached, self.float32 = kind, detached, float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pixels = x.detach() if self.detached else x
        pixels = pixels.float() if self.float32 else pixels
        return getattr(self, self.kind)(pixels.flatten(1)[:, :1])

    def bump(self, x0: torch.Tensor) -> torch.Tensor:
        return (1 - (x0 - 0.5).abs() / 0.05).relu()

    def plateaus(self, x0: torch.Tensor) -> torch.Tensor:
        return ((x0 - 0.4) * 10).clamp(0, 1)

    def step(self, x0: torch.Tensor) -> torch.Tensor:
        return (x0 > 0.5).to(x0.dtype)

    def quantised(self, x0: torch.Tensor) -> torch.Tensor:
        return (x0 * 255).round() / 255

    def constant(self, x0: torch.Tensor) -> torch.Tensor:
        return 0 * x0.round() + 1


class Logits(torch.nn.Module):
    def forward(self, o: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.full_like(o, 0.5), o], 1)


def classifier(kind: str, **how: bool) -> LoadedEncoder:
    return loaded(OnePixel(kind, **how), head=Logits())


def pixels(*first: float) -> torch.Tensor:
    images = torch.rand(len(first), *SHAPE, generator=torch.Generator().manual_seed(1))
    images[:, 0, 0, 0] = torch.tensor(first)
    return images


FLAT_SOMEWHERE = [(0.1, 0.48), (0.48, 0.1), (0.1,), (0.1, 0.9), (*[0.1] * 20, 0.48, *[0.1] * 20)]


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("kind", ["bump", "plateaus"])
@pytest.mark.parametrize("first", FLAT_SOMEWHERE, ids=str)
def test_a_classifier_that_is_flat_at_some_images_passes(first: tuple[float, ...], kind: str, float32: bool) -> None:
    classifier(kind, float32=float32).preflight(pixels(*first))


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("kind", ["bump", "plateaus"])
@pytest.mark.parametrize("first", FLAT_SOMEWHERE, ids=str)
def test_a_detached_one_is_refused_wherever_it_is_flat(first: tuple[float, ...], kind: str, float32: bool) -> None:
    with pytest.raises(EncoderRefused, match="dead derivative"):
        classifier(kind, detached=True, float32=float32).preflight(pixels(*first))


def test_a_jump_is_for_rays_alone() -> None:
    classifier("step").preflight(pixels(0.1, 0.9))
    with pytest.raises(EncoderRefused, match=r"doesn't react .* piecewise constant"):
        loaded(OnePixel("step")).preflight(pixels(0.1, 0.9))


def test_jumps_all_over_the_place_are_refused() -> None:
    with pytest.raises(EncoderRefused, match=r"doesn't react .* quantised"):
        classifier("quantised").preflight(pixels(0.1, 0.9))


def test_a_constant_is_refused() -> None:
    with pytest.raises(EncoderRefused, match=r"doesn't react .* constant"):
        classifier("constant").preflight(pixels(0.1, 0.9))


@pytest.mark.parametrize("kind", ["step", "constant"])
def test_looking_for_a_change_is_bounded(kind: str) -> None:
    encoder = classifier(kind)
    images = pixels(*[0.1] * 2000)
    try:
        encoder.preflight(images)
    except EncoderRefused:
        assert kind == "constant"
    assert encoder.passes - len(images) < 300


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 1), (1, 1, 5)])
@pytest.mark.parametrize("head", [None, torch.nn.Linear(4, 2)])
def test_images_of_one_pixel(shape: tuple[int, int, int], head: torch.nn.Module | None) -> None:
    inputs = torch.Size(shape).numel()
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)
    )
    loaded(network, shape, head=head).preflight(torch.full((1, *shape), 0.5))


def test_no_images_are_nothing_to_check() -> None:
    encoder = classifier("constant")
    encoder.preflight(torch.empty(0, *SHAPE))
    with pytest.raises(EncoderRefused):
        encoder.preflight(pixels(0.1))
