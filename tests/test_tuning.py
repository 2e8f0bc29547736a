"""What timing may choose, and that a choice changes nothing but last digits."""

from __future__ import annotations

import time

import pytest
import torch

import geoframe as gf
from geoframe import tuning
from geoframe.encoder import Network
from geoframe.loaded import LoadedEncoder
from geoframe.measuring import measure_block
from geoframe.settings import choose_settings
from geoframe.tuning import tuned_batch, tuned_derivative
from tests.networks import conv_net, loaded, relu_net, some_images

SHAPE = (3, 8, 8)


class Slow(torch.nn.Module):
    """Takes a fixed time for each batch, beside what each image takes."""

    def __init__(self, batch: float, image: float) -> None:
        super().__init__()
        self.batch, self.image, self.net = batch, image, conv_net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.batch + self.image * len(x))
        return self.net(x)


def test_larger_batches_where_they_pay() -> None:
    assert tuned_batch(loaded(Slow(0.08, 0.0), shape=SHAPE), 8, 1000) == 32
    assert tuned_batch(loaded(Slow(0.08, 0.0), shape=SHAPE), 8, 20) == 16
    assert tuned_batch(loaded(Slow(0.0, 0.01), shape=SHAPE), 4, 1000) == 4


def test_quick_networks_are_not_timed() -> None:
    encoder = loaded(relu_net())
    assert tuned_batch(encoder, 8, 1000) == 8
    assert tuned_derivative(encoder) == "batch"


class Doubled(torch.autograd.Function):
    """A derivative of one's own, without a rule for vmap."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        pass

    @staticmethod
    def jvp(ctx: object, tangent: torch.Tensor) -> torch.Tensor:
        return 2 * tangent


class Unshared(torch.nn.Module):
    """A forward that vmap can't take."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Doubled.apply(x.flatten(1))


class OnceSlow(torch.nn.Module):
    """Slow in proportion to the images that it sees: a shared point is one."""

    def __init__(self) -> None:
        super().__init__()
        self.net = conv_net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.02 * len(x))
        return self.net(x)


def test_the_point_is_shared_where_that_pays_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuned_derivative(loaded(OnceSlow(), shape=SHAPE)) == "shared"
    monkeypatch.setattr(tuning, "QUICK", 0.0)
    assert tuned_derivative(loaded(Unshared())) == "batch"


def test_a_wrong_derivative_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "shared_pushforward", lambda _phi, _x, v: torch.ones(len(v), 32))
    assert tuned_derivative(loaded(OnceSlow(), shape=SHAPE)) == "batch"


@pytest.mark.parametrize("derivative", ["batch", "shared"])
def test_the_choice_is_kept_and_changes_last_digits_only(derivative: str) -> None:
    probe = gf.RatioProbe(estimator="adaptive", scales=(0.1, 3.0), target_se=0.05)
    encoder, images = loaded(conv_net(), shape=SHAPE), some_images(1, SHAPE)
    settings = choose_settings(encoder)
    chosen = type(settings).from_json({**settings.to_json(), "derivative": derivative})
    found = measure_block(probe, encoder, images, 0, 1, chosen)
    plain = measure_block(
        probe,
        LoadedEncoder.from_network(Network(features=conv_net(), input_shape=SHAPE), "toy"),
        images,
        0,
        1,
        settings,
    )
    assert encoder.derivative == derivative
    for name in ("ratio", "ratio_se", "prediction"):
        assert found[name].values == pytest.approx(plain[name].values, rel=1e-4)
