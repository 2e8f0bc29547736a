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
    with torch.no_grad(), pytest.raises(EncoderRefused, match="aren't finite along a ray"):
        intervals(encoder, table(encoder, 4), "grid", 0.1, 30.0)


def searched(encoder: LoadedEncoder, search: str) -> torch.Tensor:
    encoder.micro_batch = 64
    with torch.no_grad():
        return intervals(encoder, table(encoder), search, 0.02, 1.0).gi


def stepped(encoder: LoadedEncoder) -> torch.Tensor:
    """The plain loop through the whole encoder."""
    rays = table(encoder)
    with torch.no_grad():
        return plain_search(encoder.logits, rays.start, rays.direction, rays.held, steps_to(1.0, 0.02))[0]


class Halving(torch.nn.Dropout):
    """Called dropout, but it does something in eval mode too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x - 0.1


def halve(_module: torch.nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
    return 0.5 * output - 0.1


def unusual(kind: str) -> LoadedEncoder:
    """Chains whose parts aren't what they look like."""
    torch.manual_seed(0)
    one, two, head = torch.nn.Linear(SIZE, 32), torch.nn.Linear(32, 32), torch.nn.Linear(32, 5)
    relu = torch.nn.ReLU()
    if kind == "used twice":
        return loaded(torch.nn.Sequential(torch.nn.Flatten(), one, relu, two, relu, two, relu), head=head)
    net = torch.nn.Sequential(torch.nn.Flatten(), one, relu, two, torch.nn.ReLU())
    if kind == "subclass":
        net.insert(1, Halving())
    elif kind == "hooked layer":
        one.register_forward_hook(halve)
    elif kind == "hooked chain":
        net.register_forward_hook(halve)
    elif kind == "hooked head":
        head.register_forward_pre_hook(lambda _module, inputs: (2 - inputs[0],))
    elif kind == "bias that is no parameter":
        for layer in (one, head):
            bias = layer.bias.detach()
            del layer.bias
            layer.register_buffer("bias", 3 * bias)
    elif kind == "own forward":
        two.forward = lambda x: torch.nn.functional.linear(x, -two.weight)
    return loaded(net, head=head)


UNUSUAL = [
    "used twice",
    "subclass",
    "hooked layer",
    "hooked chain",
    "hooked head",
    "bias that is no parameter",
    "own forward",
]


@pytest.mark.parametrize("kind", UNUSUAL)
def test_chains_are_read_as_they_run(kind: str) -> None:
    """Steps are those of the plain loop; the exact search agrees with them, or is refused."""
    want = stepped(unusual(kind))
    assert 0 < float(want.mean()) < 0.9
    assert (searched(unusual(kind), "grid") == want).float().mean() > 0.97  # near ties may fall to either side
    if kind not in ("used twice", "bias that is no parameter"):
        with pytest.raises(EncoderRefused, match="search='exact'"):
            searched(unusual(kind), "exact")
        return
    exact = searched(unusual(kind), "exact")
    assert ((exact - want > -1e-6) & (exact - want < 0.021)).float().mean() > 0.9


def test_a_module_that_is_missing_its_bias_is_read() -> None:
    encoder = mlp(torch.nn.BatchNorm1d(20, bias=False))
    assert isinstance(exact_form(encoder), list)


@pytest.mark.parametrize("search", ["grid", "exact"])
def test_the_lower_class_wins_ties(search: str) -> None:
    """Logits (0, relu(x₀ − ½)): where the unit is off they tie, and class 0 it is."""
    unit = torch.nn.Linear(2, 1)
    unit.weight.data, unit.bias.data = torch.tensor([[1.0, 0.0]]), torch.tensor([-0.5])
    head = torch.nn.Linear(1, 2, bias=False)
    head.weight.data = torch.tensor([[0.0], [1.0]])
    net = torch.nn.Sequential(torch.nn.Flatten(), unit, torch.nn.ReLU())
    encoder = loaded(net, head=head, shape=(1, 1, 2))
    rays = RayTable(
        torch.tensor([[0.9, 0.0], [0.1, 0.0]]).view(2, 1, 1, 2),
        torch.tensor([[-1.0, 0.0], [1.0, 0.0]]).view(2, 1, 1, 2),
        torch.tensor([1, 0]),
    )
    with torch.no_grad():
        found = intervals(encoder, rays, search, 0.001, 1.0)
    assert found.gi.tolist() == pytest.approx([0.4, 0.4], abs=0.002)


def test_logits_that_are_not_finite_after_the_crossing_do_not_matter() -> None:
    """They are looked at or not by the size of the batch."""

    class Wild(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = x.flatten(1)[:, :1]
            return torch.cat([0.5 - a, (0.9 - a).sqrt() * 0], 1)

    encoder = loaded(Wild(), head=torch.nn.Identity())
    start = torch.zeros(1, *SHAPE)
    rays = RayTable(start, torch.ones(1, *SHAPE), torch.tensor([0]))
    for batch in (1, 10, 1000):
        encoder.micro_batch = batch
        with torch.no_grad():
            assert float(intervals(encoder, rays, "grid", 0.01, 1.0).gi) == pytest.approx(0.5, abs=0.011)


def test_infinite_logits_are_refused() -> None:
    head = torch.nn.Linear(SIZE, 3)
    head.bias.data[1] = float("inf")
    with torch.no_grad(), pytest.raises(EncoderRefused, match="NaN or infinite logits"):
        predicted(loaded(torch.nn.Flatten(), head=head), torch.rand(2, *SHAPE))
