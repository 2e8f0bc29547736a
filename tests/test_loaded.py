"""Networks as strangers write them can be loaded: any layout, scripted; in any surroundings, with the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
import xarray as xr

import geoframe as gf
from geoframe.errors import EncoderRefused
from geoframe.loaded import LoadedEncoder
from tests.networks import conv_net, loaded

SHAPE = (3, 8, 8)
PROBE = gf.RatioProbe(scales=(1e-2, 1.0), directions=8, jvp_directions=4)
IMAGES = gf.TensorSet(torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(0)), name="toy")


class Viewed(torch.nn.Module):
    """`view` of a feature map, which has no view in channels last."""

    def __init__(self, convolve: bool) -> None:
        super().__init__()
        self.body = conv_net()[:5] if convolve else torch.nn.Identity()
        self.head = torch.nn.Linear(72 if convolve else 192, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).view(len(x), -1))


class Volume(torch.nn.Module):
    """Weights of five dimensions, which have no channels-last layout."""

    def __init__(self) -> None:
        super().__init__()
        self.convolve = torch.nn.Conv3d(3, 2, (1, 3, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolve(x[:, :, None]).flatten(1)


def measured(network: torch.nn.Module) -> xr.Dataset:
    return gf.measure(PROBE, gf.ModuleEncoder(network, input_shape=SHAPE, name="toy"), IMAGES, device="cpu")


@pytest.mark.parametrize("network", [Viewed(True), Viewed(False), Volume()], ids=["view", "flat view", "conv3d"])
def test_a_network_that_cannot_run_channels_last_is_measured_contiguous(network: torch.nn.Module) -> None:
    assert loaded(network, SHAPE).layout is torch.contiguous_format
    np.testing.assert_allclose(measured(network)["ratio"].sel(scale=1e-2), 1, atol=0.05)


def test_convolutions_run_channels_last() -> None:
    assert loaded(conv_net(), SHAPE).layout is torch.channels_last


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.jit:FutureWarning")
@pytest.mark.parametrize("script", [torch.jit.script, lambda net: torch.jit.trace(net, torch.rand(2, *SHAPE))])
def test_a_scripted_network_gives_the_numbers_of_the_original(script: Callable[..., torch.nn.Module]) -> None:
    plain, scripted = measured(conv_net().eval()), measured(script(conv_net().eval()))
    np.testing.assert_allclose(scripted["ratio"], plain["ratio"], rtol=1e-4)


def test_a_lazy_layer_is_refused_until_it_has_weights() -> None:
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(4))
    with pytest.raises(EncoderRefused, match="lazy layer"):
        measured(network)
    network(torch.rand(1, *SHAPE))
    measured(network)


@contextmanager
def _default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "surroundings",
    [
        lambda: torch.autocast("cpu", torch.bfloat16),
        torch.inference_mode,
        torch.enable_grad,
        _default_dtype,
        lambda: torch.device("meta"),
    ],
    ids=["autocast", "inference", "grad", "float64", "device"],
)
def test_surroundings_change_no_bit(surroundings: Callable[[], torch.autocast]) -> None:
    network = conv_net()
    want = measured(network)
    with surroundings():
        found = measured(network)
    xr.testing.assert_identical(found, want)


def test_what_is_derived_is_made_once_and_not_shared_with_copies() -> None:
    encoder = loaded(conv_net(), shape=SHAPE)
    made: list[LoadedEncoder] = []
    for _ in range(2):
        encoder.derived(made.append)
    twin = encoder.double()
    assert twin is not None
    twin.derived(made.append)
    assert made == [encoder, twin]
