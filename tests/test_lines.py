"""Rays through loaded encoders: fast paths and exact layers agree with the network itself."""

from __future__ import annotations

import pytest
import torch

from geoframe.errors import EncoderRefused
from geoframe.geometry.piecewise_line import PiecewiseLinear
from geoframe.geometry.rays import steps_to
from geoframe.geometry.relu_line import Affine, Kink
from geoframe.lines import RayTable, exact_form, intervals, predicted
from geoframe.loaded import LoadedEncoder
from geoframe.models.cifar_resnet import CifarResNet
from tests.networks import SHAPE, SIZE, conv_net, loaded
from tests.plain_rays import plain_search


def mlp(*extra: torch.nn.Module) -> LoadedEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Sequential(torch.nn.Linear(SIZE, 30), torch.nn.BatchNorm1d(30), torch.nn.ReLU()),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(30, 20, bias=False),
            torch.nn.LeakyReLU(0.1),
            *extra,
        )
        head = torch.nn.Linear(20, 4)
        net.train()(torch.rand(64, *SHAPE))  # running statistics that are not the initial ones
    return loaded(net, head=head, mean=0.3, std=0.6)


def table(encoder: LoadedEncoder, n: int = 40) -> RayTable:
    generator = torch.Generator().manual_seed(1)
    start, direction = torch.rand(n, *SHAPE, generator=generator), 3 * torch.randn(n, *SHAPE, generator=generator)
    with torch.no_grad():
        return RayTable(start, direction, predicted(encoder, start))


def test_layers_are_the_network() -> None:
    encoder = mlp()
    x = torch.rand(7, *SHAPE)
    layers = exact_form(encoder)
    assert isinstance(layers, list)
    assert [type(layer) for layer in layers] == [Affine, Kink, Affine, Kink, Affine]
    value = x.flatten(1).double()
    for layer in layers:
        value = layer(value) if isinstance(layer, Kink) else torch.nn.functional.linear(value, layer.weight, layer.bias)
    torch.testing.assert_close(value.float(), encoder.logits(x).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("encoder", [mlp(), loaded(conv_net(), (3, 6, 6), head=torch.nn.Linear(32, 3))])
def test_grid_is_the_plain_loop(encoder: LoadedEncoder) -> None:
    encoder.micro_batch = 16
    generator = torch.Generator().manual_seed(1)
    start = torch.rand(40, *encoder.input_shape, generator=generator)
    direction = 3 * torch.randn(40, *encoder.input_shape, generator=generator)
    with torch.no_grad():
        rays = RayTable(start, direction, predicted(encoder, start))
        found = intervals(encoder, rays, "grid", 0.05, 2.0)
        gi, alive = plain_search(encoder.logits, start, direction, rays.held, steps_to(2.0, 0.05))
    assert torch.equal(found.gi, gi)
    assert torch.equal(found.censored, alive)
    assert 0 < float(gi.mean()) < 2


def test_exact_lies_within_one_step_below_or_finds_what_the_grid_missed() -> None:
    encoder = mlp()
    encoder.micro_batch = 64
    rays = table(encoder)
    with torch.no_grad():
        exact = intervals(encoder, rays, "exact", 0.01, 2.0)
        grid = intervals(encoder, rays, "grid", 0.001, 2.0)
    assert bool((exact.gi <= grid.gi + 0.001 + 1e-6).all())
    assert float((exact.gi >= grid.gi - 1e-6).double().mean()) > 0.9
    assert 0 < int(exact.censored.sum()) < len(rays)
    assert bool((exact.gi[exact.censored] == 2.0).all())


def test_no_rays_have_no_intervals() -> None:
    encoder = mlp()
    empty = RayTable(torch.empty(0, *SHAPE), torch.empty(0, *SHAPE), torch.empty(0, dtype=torch.int64))
    for search in ("grid", "exact"):
        assert intervals(encoder, empty, search, 0.1, 1.0).gi.shape == (0,)  # type: ignore[arg-type]


def small_cnn(*extra: torch.nn.Module) -> LoadedEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Sequential(torch.nn.Conv2d(1, 6, 3, padding=1), torch.nn.BatchNorm2d(6), torch.nn.ReLU()),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(6, 8, 2),
            torch.nn.LeakyReLU(0.1),
            *extra,
            torch.nn.AvgPool2d(2),
            torch.nn.Flatten(),
        )
        head = torch.nn.Linear(8, 4)
        net.train()(torch.rand(64, *SHAPE))
    return loaded(net, head=head, mean=0.3, std=0.6)


def test_exact_goes_through_convolutions_and_pooling() -> None:
    encoder = small_cnn()
    encoder.micro_batch = 64
    assert isinstance(exact_form(encoder), PiecewiseLinear)
    rays = table(encoder)
    with torch.no_grad():
        exact = intervals(encoder, rays, "exact", 0.01, 2.0)
        grid = intervals(encoder, rays, "grid", 0.001, 2.0)
    assert bool((exact.gi <= grid.gi + 0.001 + 1e-6).all())
    assert float((exact.gi >= grid.gi - 1e-6).double().mean()) > 0.9
    assert 0 < int(exact.censored.sum()) < len(rays)
    assert bool((exact.gi[exact.censored] == 2.0).all())


def test_a_linear_layer_on_rows_of_pixels_is_not_taken_for_one_on_flat_images() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Flatten())
    encoder = loaded(net, head=torch.nn.Linear(30, 4))
    rays = table(encoder, 10)
    with torch.no_grad():
        exact = intervals(encoder, rays, "exact", 0.01, 2.0)
        grid = intervals(encoder, rays, "grid", 0.001, 2.0)
    assert float((exact.gi - grid.gi).abs().max()) < 0.0011


def test_the_logits_may_come_from_pooling() -> None:
    layers = torch.nn.Conv2d(1, 6, 3), torch.nn.ReLU(), torch.nn.Conv2d(6, 4, 1), torch.nn.AdaptiveAvgPool2d(1)
    encoder = loaded(torch.nn.Sequential(*layers, torch.nn.Flatten()), head=torch.nn.Identity())
    rays = table(encoder, 20)
    with torch.no_grad():
        exact = intervals(encoder, rays, "exact", 0.01, 2.0)
        grid = intervals(encoder, rays, "grid", 0.001, 2.0)
    assert bool(((exact.gi - grid.gi).abs() < 0.0011).all())


REFUSED = {
    "is a GELU": torch.nn.GELU(),
    "is a Conv2d with padding_mode='reflect'": torch.nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
    "is a _Block": CifarResNet(1).layer1[0],
    "is a Flatten of some dimensions only": torch.nn.Flatten(2),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_piecewise_linear_is_refused_by_the_name_of_the_layer(reason: str) -> None:
    network = small_cnn().network
    assert isinstance(network, torch.nn.Sequential)
    network.insert(4, REFUSED[reason])
    encoder = loaded(network, head=torch.nn.Linear(8, 4))
    known = "chains of Linear, Conv2d, BatchNorm, ReLU, LeakyReLU, pooling, Dropout and Flatten"
    with pytest.raises(EncoderRefused, match=f"is for {known}, but layer '4' of encoder 'toy' {reason}: use search='g"):
        exact_form(encoder)


def test_other_classifiers_that_the_exact_search_refuses() -> None:
    with pytest.raises(EncoderRefused, match=r"layer '5' of encoder 'toy' is a GELU: use search='grid'"):
        exact_form(mlp(torch.nn.GELU()))
    with pytest.raises(EncoderRefused, match="BatchNorm2d without running statistics"):
        exact_form(small_cnn(torch.nn.BatchNorm2d(8, track_running_stats=False)))
    rectified = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    with pytest.raises(EncoderRefused, match="logits are rectified"):
        exact_form(loaded(small_cnn().network, head=rectified))


def test_classifiers_that_have_no_boundary_are_refused() -> None:
    single = loaded(torch.nn.Flatten(), head=torch.nn.Linear(SIZE, 1))
    with pytest.raises(EncoderRefused, match="single class"):
        predicted(single, torch.rand(2, *SHAPE))


class Late(torch.nn.Module):
    """NaN away from the image."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) + 0 * torch.log(4 - x.flatten(1).amax(1, keepdim=True))


def test_nan_along_a_ray_is_refused() -> None:
    head = torch.nn.Linear(SIZE, 3)
    head.weight.data.zero_()  # the class never changes before
    encoder = loaded(Late(), head=head)
    encoder.micro_batch = 8
    with torch.no_grad(), pytest.raises(EncoderRefused, match="NaN along a ray"):
        intervals(encoder, table(encoder, 4), "grid", 0.1, 30.0)
