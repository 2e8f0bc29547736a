"""The precision ladder: each scale where its error is small, measured, and told."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.geometry.response import Displacements
from geoframe.measuring import measure_block
from geoframe.precision import Ladder, attends_fused, choose_ladder, relative_error, rounded
from geoframe.settings import choose_settings
from tests.networks import conv_net, loaded, some_images

SHAPE = (3, 16, 16)


class Offset(torch.nn.Module):
    """Features far from 0, of which float32 and bfloat16 keep few digits."""

    def __init__(self, level: float) -> None:
        super().__init__()
        self.net, self.level = conv_net(), level

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x) + self.level


def tried(level: float, scales: tuple[float, ...], limit: float, bfloat16: bool = True) -> list[str]:
    encoder = loaded(Offset(level), shape=SHAPE)
    encoder.bfloat16 = bfloat16
    x = some_images(1, SHAPE).pixels
    u = gf.geometry.directions.unit_directions(SHAPE, 0, "x", 0, 2)
    with torch.no_grad():
        return choose_ladder(encoder, encoder, x, u, scales, limit).precisions


def test_small_scales_go_to_float64_large_ones_to_bfloat16() -> None:
    found = tried(3.0, (1e-6, 1e-5, 0.1, 1.0, 100.0), 0.05)
    assert found[0] == "float64"
    assert found[-1] == "bfloat16"
    assert "float32" in found
    order = ["float64", "float32", "bfloat16"]
    assert [order.index(name) for name in found] == sorted(order.index(name) for name in found)


def test_without_gain_bfloat16_is_not_tried() -> None:
    assert tried(0.0, (0.1, 10.0), 0.05, bfloat16=False) == ["float32", "float32"]


def test_the_error_counts_a_systematic_difference() -> None:
    """Features that are 1 % too long have an energy that is 2 % too high, though the noise is 0.01 %."""
    net, x = conv_net().eval(), some_images(1, SHAPE).pixels
    u = gf.geometry.directions.unit_directions(SHAPE, 0, "x", 0, 2)
    with torch.no_grad():
        longer, exact = Displacements(lambda y: 1.01 * net(y), x), Displacements(net, x)
        assert relative_error(longer, exact, u, 1.0)[0] == pytest.approx(0.0201, rel=1e-3)


def test_bfloat16_passes_count_and_come_back_in_float32() -> None:
    encoder = loaded(conv_net(), shape=SHAPE)
    with torch.no_grad():
        features = rounded(encoder).features(torch.rand(3, *SHAPE))
    assert features.dtype == torch.float32
    assert encoder.passes == 3


@pytest.mark.parametrize("estimator", ["paper", "adaptive"])
def test_scales_lost_in_float32_are_measured_in_float64(estimator: str) -> None:
    encoder, images = loaded(Offset(300.0), shape=SHAPE), some_images(1, SHAPE)
    scales = (1e-4, 1e-3, 0.1)
    settings = choose_settings(encoder)
    found = {}
    for precision in ("float32", "ladder"):
        probe = gf.RatioProbe(
            scales=scales, estimator=estimator, precision=precision, directions=64, jvp_directions=32, target_se=0.05
        )
        found[precision] = measure_block(probe, encoder, images, 0, 1, settings)
    assert not found["float32"]["valid"].values[0, 0]
    assert found["ladder"]["valid"].values.all()
    assert found["ladder"]["precision"].values[0].tolist()[0] == "float64"
    assert set(found["float32"]["precision"].values[0]) == {"float32"}
    np.testing.assert_allclose(found["ladder"]["ratio"].values[0], 1.0, atol=0.15)


def test_a_cell_that_tries_bfloat16_says_where_it_did() -> None:
    encoder, images = loaded(conv_net(), shape=SHAPE), some_images(1, SHAPE)
    settings = attrs.evolve(choose_settings(encoder), bfloat16=True)
    probe = gf.RatioProbe(scales=(0.1, 1.0, 30.0), estimator="adaptive", precision="ladder", target_se=0.1)
    low = measure_block(probe, encoder, images, 0, 1, settings)
    full = measure_block(probe.evolve(precision="float32"), encoder, images, 0, 1, settings)
    assert low["precision"].values[0, -1] == "bfloat16"
    np.testing.assert_allclose(low["ratio"], full["ratio"], rtol=0.05)
    assert (low["noise_fraction"].values[0] <= 0.025).all()


def test_what_bfloat16_may_be_off_is_part_of_the_standard_error() -> None:
    ladder = Ladder(["float64", "float32", "bfloat16"], {0: 1e-17, 2: 0.02}, {})
    assert ladder.rounding().tolist() == [0.0, 0.0, 0.02]


class Masked(torch.nn.Module):
    """Attention over pixels with a mask of one dimension, which only the plain kernel takes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.mask = torch.nn.Linear(1, 24), torch.nn.Parameter(torch.zeros(SHAPE[1] * SHAPE[2]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inner(x[:, 0].flatten(1)[:, None, :, None]).chunk(3, -1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask).mean((1, 2))


@pytest.mark.parametrize("network", [conv_net(), Masked()])
def test_fused_attention_is_used_where_it_works(network: torch.nn.Module) -> None:
    encoder = loaded(network, shape=SHAPE)
    assert attends_fused(encoder) == (not isinstance(network, Masked))
    assert encoder.passes == 0
    images, probe = some_images(1, SHAPE), gf.RatioProbe(scales=(0.1,), directions=16, jvp_directions=8)
    assert measure_block(probe, encoder, images, 0, 1, choose_settings(encoder))["valid"].all()


def test_a_scale_that_nothing_resolves_takes_none_from_the_others() -> None:
    scales = (1e-30, 1e-15, 1e-13, 1e-7, 0.1)
    encoder, images = loaded(Offset(3.0), shape=SHAPE), some_images(1, SHAPE)
    probe = gf.RatioProbe(scales=scales, directions=64, jvp_directions=32, precision="ladder")
    found = measure_block(probe, encoder, images, 0, 1, choose_settings(encoder)).isel(image=0)
    assert found["precision"].values.tolist() == ["float64"] * 4 + ["float32"]
    assert found["valid"].values.tolist() == [False, False, False, True, True]
    fractions = found["noise_fraction"].values
    assert (np.diff(fractions[1:4]) < 0).all()
    np.testing.assert_allclose(found["ratio"].values[3:], 1, atol=0.3)
