"""RatioProbe against closed forms, against the plain protocol, and under changes that must not matter."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, jv

import geoframe as gf
from geoframe import measuring
from geoframe.errors import BadInput, EncoderRefused
from geoframe.geometry.directions import unit_directions
from geoframe.probes.ratio import CIFAR_SCALES, IMAGENET_SCALES, RatioProbe
from geoframe.probeset import Images
from geoframe.ratio_estimators import ImageDirections
from geoframe.settings import Settings, choose_settings
from tests.networks import SHAPE, SIZE, Linear, Sine, Square, conv_net, loaded, relu_net, some_images
from tests.plain_ratio import plain_ratio


def ratio(
    network: torch.nn.Module, probe: RatioProbe, images: Images, micro_batch: int | None = None, **fields: object
) -> xr.Dataset:
    encoder = loaded(network, tuple(images.pixels.shape[1:]), **fields)  # type: ignore[arg-type]
    chosen = choose_settings(encoder)
    if micro_batch:
        chosen = Settings(**{**chosen.to_json(), "micro_batch": micro_batch})
    parts = [
        measuring.measure_block(probe, encoder, images, start, stop, chosen)
        for start, stop in measuring.blocks(probe, len(images))
    ]
    return measuring.concat_blocks(parts)


def test_the_default_is_the_papers_protocol() -> None:
    probe = RatioProbe()
    assert (probe.directions, probe.pairs, probe.jvps, probe.noise_limit) == (2048, 1024, 256, 0.05)
    np.testing.assert_allclose(np.log10(probe.scales), np.linspace(-2, 2, 17), atol=1e-12)
    np.testing.assert_allclose(np.log10(CIFAR_SCALES), np.linspace(-2.85, 1.15, 17), atol=1e-12)
    assert probe.forward_passes() == 17 * 2048 + 3 * 256


def test_linear_encoders_have_ratio_one_at_every_scale() -> None:
    found = ratio(Linear(), RatioProbe(directions=32), some_images(5))
    assert found["valid"].all()
    assert float(abs(found["ratio"] - 1).max()) < 1e-4
    assert found["image_id"].values.tolist() == ["0", "1", "2", "3", "4"]
    trace = float(Linear().weight.detach().double().square().sum())
    error = abs(found["prediction"] - trace / SIZE)
    assert bool((error < 5 * found["prediction_se"]).all())
    assert float(found["derivative_gap"].max()) < 1e-6


def test_square_encoder() -> None:
    scales = (0.5, 2.0, 8.0)
    images = some_images(2)
    found = ratio(Square(), RatioProbe(scales=scales, directions=8192, jvp_directions=4096), images)
    projection = images.pixels.double().flatten(1).sum(1).numpy()[:, None] / math.sqrt(SIZE)
    want = 1 + 3 * np.square(scales) / (4 * projection**2 * (SIZE + 2))
    assert bool((abs(found["ratio"] - want) < 4 * found["ratio_se"]).all())
    assert float((found["ratio_se"] / found["ratio"]).max()) < 0.1


def test_sine_encoder_rises_nowhere_and_decays() -> None:
    scales = np.array([0.01, 0.1, 0.5, 2.0])
    found = ratio(Sine(), RatioProbe(scales=tuple(scales), directions=8192, jvp_directions=1024), some_images(1))
    order, z = SIZE / 2 - 1, 40.0 * scales
    mean_cosine = np.exp(gammaln(SIZE / 2) + order * np.log(2 / z)) * jv(order, z)
    want = (2 - 2 * mean_cosine) * SIZE / z**2
    assert (abs(found["ratio"].values[0] - want) < 4 * found["ratio_se"].values[0] + 1e-3 * want).all()


@pytest.mark.parametrize("network", [relu_net(), conv_net()])
@pytest.mark.parametrize("jvps", [6, 12])
def test_the_plain_protocol_gives_the_same(network: torch.nn.Module, jvps: int) -> None:
    shape = SHAPE if isinstance(network[0], torch.nn.Flatten) else (3, 6, 6)  # type: ignore[index]
    images, scales = some_images(2, shape), (0.02, 0.7, 5.0, 60.0)
    found = ratio(network, RatioProbe(scales=scales, directions=24, jvp_directions=jvps, seed=7), images)
    for row, image_id in enumerate(images.ids):
        base = list(unit_directions(shape, 7, image_id, 0, 12).double())
        plain = network.double().eval()
        ratios, errors = plain_ratio(plain, images.pixels[row].double(), base, list(scales), jvps)
        np.testing.assert_allclose(found["ratio"].values[row], ratios, rtol=1e-4)
        np.testing.assert_allclose(found["ratio_se"].values[row], errors, rtol=1e-2, atol=1e-5)
        network.float()


@settings(max_examples=12, deadline=None)
@given(micro_batch=st.integers(3, 70))
def test_the_batch_changes_nothing_but_last_digits(micro_batch: int) -> None:
    probe, images = RatioProbe(scales=(0.1, 3.0), directions=20, jvp_directions=7), some_images(3)
    one, other = ratio(relu_net(), probe, images), ratio(relu_net(), probe, images, micro_batch)
    np.testing.assert_allclose(one["ratio"], other["ratio"], rtol=1e-4)
    np.testing.assert_allclose(one["ratio_se"], other["ratio_se"], rtol=1e-2, atol=1e-5)


def test_an_image_has_the_same_bits_in_any_set() -> None:
    probe, images = RatioProbe(directions=8), some_images(5)
    whole = ratio(relu_net(), probe, images)
    part = ratio(relu_net(), probe, Images(images.ids[3:], images.labels[3:], images.pixels[3:]))
    np.testing.assert_array_equal(whole["ratio"][3:], part["ratio"])
    np.testing.assert_array_equal(whole["ratio_se"][3:], part["ratio_se"])


def test_scales_and_directions_are_shared_not_redrawn() -> None:
    """A scale's number doesn't depend on which other scales are measured."""
    images = some_images(1)
    one = ratio(relu_net(), RatioProbe(scales=(0.1, 1.0, 10.0), directions=8), images)
    two = ratio(relu_net(), RatioProbe(scales=(1.0,), directions=8), images)
    np.testing.assert_array_equal(one["ratio"].sel(scale=1.0), two["ratio"].sel(scale=1.0))


class Attends(torch.nn.Module):
    """One head of attention over pixels, which remembers whether it might have run as one kernel."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.fused = torch.nn.Linear(1, 48), set[bool]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.fused.add(torch.backends.cuda.flash_sdp_enabled())  # of all devices, whatever it is called
        q, k, v = self.inner(x.flatten(1)[:, None, :, None]).chunk(3, -1)
        return torch.nn.functional.scaled_dot_product_attention(q, 3 * k, v).mean((1, 2))


@pytest.mark.parametrize("estimator", ["paper", "adaptive"])
def test_attention_runs_fused_where_nothing_is_differentiated(estimator: str) -> None:
    images, scales = some_images(1), (0.1, 1.0, 10.0)
    probe = RatioProbe(scales=scales, directions=32, jvp_directions=16, estimator=estimator, target_se=1e-6)
    network = Attends()
    found = ratio(network, probe, images)
    assert network.fused == {True, False}
    base = list(unit_directions(SHAPE, 0, images.ids[0], 0, 16).double())
    ratios, errors = plain_ratio(
        Attends().double().requires_grad_(False), images.pixels[0].double(), base, list(scales), 16
    )
    if estimator == "paper":
        np.testing.assert_allclose(found["ratio"].values[0], ratios, rtol=1e-3)
    assert (abs(found["ratio"].values[0] - ratios) < 4 * np.hypot(found["ratio_se"].values[0], errors)).all()


class Grid(torch.nn.Module):
    """A linear map whose value, but not whose derivative, is rounded to a grid in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Linear(out=64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        exact = self.inner(x)
        if exact.dtype == torch.float64:
            return exact
        return exact + ((exact * 256).round() / 256 - exact).detach()


def test_rungs_lost_in_noise_are_invalid_and_nan() -> None:
    scales = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
    found = ratio(Grid(), RatioProbe(scales=scales, directions=64), some_images(2))
    energy = found["prediction"] * found["scale"] ** 2
    want = (2 * 64 / 256**2 / 12 / energy).values
    clear = (want > 0.2) | (want < 0.01)
    np.testing.assert_array_equal(found["valid"].values[clear], (want < 0.05)[clear])
    assert bool(found["valid"].any())
    assert not bool(found["valid"].all())
    np.testing.assert_array_equal(np.isnan(found["ratio"]), ~found["valid"])
    np.testing.assert_array_equal(np.isnan(found["ratio_se"]), ~found["valid"])


class Overflow(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1).sum(1, keepdim=True) ** 2).exp()


def test_an_overflow_is_invalid_not_infinite() -> None:
    found = ratio(Overflow(), RatioProbe(scales=(0.01, 100.0), directions=8), some_images(1, (1, 2, 2)))
    assert found["valid"].values.tolist() == [[True, False]]
    assert np.isnan(found["ratio"].values[0, 1])


def test_a_flat_image_under_max_pooling_is_flagged() -> None:
    pool = torch.nn.Sequential(torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(9, 4))
    flat = Images(("flat", "not"), (-1, -1), torch.stack([torch.full(SHAPE, 0.5), torch.rand(SHAPE)]))
    gap = ratio(pool, RatioProbe(directions=8), flat)["derivative_gap"]
    assert gap[0] > 0.1
    assert gap[1] < 1e-3


def test_jvps_never_exceed_the_pairs() -> None:
    assert RatioProbe(directions=64).jvps == 32
    assert RatioProbe(directions=64, jvp_directions=10).jvps == 10


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"directions": 7}, "even number"),
        ({"directions": 2}, "even number"),
        ({"directions": 8.0}, "int"),
        ({"jvp_directions": 1}, "jvp_directions"),
        ({"scales": (1.0, -1.0)}, "positive"),
        ({"scales": ()}, "positive"),
        ({"scales": (2.0, 1.0)}, "rise"),
        ({"noise_limit": 0}, "noise_limit"),
        ({"target_se": 0}, "target_se must be above 0"),
        ({"target_se": 1}, "target_se must be above 0 and below 1"),
        ({"target_se": 5}, r"a relative standard error: 5 % is 0\.05, not 5"),
        ({"directons": 8}, "did you mean 'directions'"),
    ],
)
def test_senseless_parameters_are_refused(changes: dict[str, object], cause: str) -> None:
    with pytest.raises(BadInput, match=cause):
        RatioProbe().evolve(**changes)


def test_smoke_keeps_the_ends_of_the_ladder() -> None:
    small = RatioProbe().smoke()
    assert small.scales == (IMAGENET_SCALES[0], IMAGENET_SCALES[8], IMAGENET_SCALES[-1])
    assert (small.directions, small.jvps) == (4, 2)


def test_every_variable_says_what_it_is() -> None:
    found = ratio(Linear(), RatioProbe(directions=4), some_images(1))
    for name, variable in found.variables.items():
        if name in RatioProbe.outputs:
            assert variable.attrs["long_name"]
            assert variable.attrs["units"]
    assert {"probe", "weights", "images", "settings", "versions", "git_commit"} <= set(found.attrs)


@pytest.mark.parametrize("network", [relu_net(), conv_net()])
def test_the_adaptive_estimate_agrees_with_the_papers(network: torch.nn.Module) -> None:
    shape = SHAPE if isinstance(network[0], torch.nn.Flatten) else (3, 8, 8)
    encoder = gf.ModuleEncoder(network, input_shape=shape)
    images = gf.TensorSet(torch.rand(2, *shape, generator=torch.Generator().manual_seed(2)), name="toy")
    scales = (0.3, 3.0, 30.0)
    paper = gf.measure(gf.RatioProbe(scales=scales, jvp_directions=1024, seed=1), encoder, images)
    probe = gf.RatioProbe(scales=scales, estimator="adaptive", target_se=0.03)
    adaptive = gf.measure(probe, encoder, images)
    error = np.hypot(paper["ratio_se"], adaptive["ratio_se"])
    assert (abs(paper["ratio"] - adaptive["ratio"]) < 4 * error).all()
    assert (adaptive["ratio_se"] <= 0.03 * adaptive["ratio"]).all()
    assert (adaptive["directions_used"] < paper["directions_used"]).all()
    np.testing.assert_allclose(paper["prediction"], adaptive["prediction"], rtol=0.05)


class FarOff(torch.nn.Module):
    """A linear map whose features are far from 0: in float32 little is left of a small displacement."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SIZE, 50)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 100 + self.linear(x.flatten(1))


def test_the_adaptive_error_holds_what_rounding_adds() -> None:
    probe = RatioProbe(scales=(3e-4, 1e-3, 3e-3, 1.0), estimator="adaptive", directions=512)
    found = ratio(FarOff(), probe, some_images(8))
    noisy = found["valid"] & (found["noise_fraction"] > 0.005)
    assert bool(noisy.any())
    assert bool((found["ratio_se"] >= found["noise_fraction"] * found["ratio"]).where(noisy, True).all())
    assert float((abs(found["ratio"] - 1) < 1.96 * found["ratio_se"]).where(found["valid"]).mean()) > 0.9


def test_the_adaptive_estimate_needs_some_directions() -> None:
    with pytest.raises(BadInput, match="estimator='adaptive' needs directions=32 or more, not 30"):
        gf.RatioProbe(estimator="adaptive", directions=30)


class Traced(torch.nn.Module):
    """Stands for a compiled network: counts its calls, and takes no dual numbers."""

    calls = 0

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert not torch._C._functorch.is_gradtrackingtensor(x)
        assert torch.autograd.forward_ad._current_level < 0, "a derivative went through it"
        Traced.calls += 1
        return self.network(x)


@pytest.mark.parametrize("estimator", ["paper", "adaptive"])
def test_a_compiled_network_serves_forward_passes_only(monkeypatch: pytest.MonkeyPatch, estimator: str) -> None:
    monkeypatch.setattr(torch, "compile", Traced)
    monkeypatch.setattr(Traced, "calls", 0)
    probe = RatioProbe(scales=(0.1, 1.0), directions=32, jvp_directions=8, estimator=estimator)
    images = some_images(1, (3, 8, 8))
    one, two = (ratio(conv_net(), probe.evolve(compile=flag), images) for flag in (False, True))
    assert Traced.calls > 2
    np.testing.assert_array_equal(one["ratio"], two["ratio"])


def test_a_network_that_torch_cannot_compile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_network: torch.nn.Module) -> torch.nn.Module:
        raise RuntimeError("no compiler\nmany more lines")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(EncoderRefused, match=r"torch\.compile failed with RuntimeError: no compiler: leave out"):
        ratio(conv_net(), RatioProbe(scales=(0.1,), directions=8, compile=True), some_images(1, (3, 8, 8)))


def test_directions_are_drawn_ahead_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones, in order or not: only copies to the device are left out here."""
    encoder = loaded(relu_net())
    plain = ImageDirections(encoder, 0, "x")
    ahead = ImageDirections(attrs.evolve(encoder, device=torch.device("cuda")), 0, "x")
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *_args, **_kwargs: self)
    for start, stop in ((0, 4), (4, 8), (8, 12), (0, 4), (20, 21)):
        assert torch.equal(plain(start, stop), ahead(start, stop))


class HalfFrozen(torch.nn.Module):
    """No gradient of one branch, in reverse mode only."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self.whole, self.one, self.two = whole, torch.nn.Linear(SIZE, 20), torch.nn.Linear(SIZE, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1)
        with torch.no_grad():
            frozen = self.two(x)
            if self.whole:
                return self.one(x) + frozen
        return self.one(x) + frozen


@pytest.mark.parametrize("whole", [False, True])
def test_reverse_mode_that_disagrees_is_refused_where_it_is_needed(whole: bool) -> None:
    probe = RatioProbe(scales=(0.1,), directions=64, jvp_directions=16)
    assert ratio(HalfFrozen(whole), probe, some_images(1))["valid"].all()
    with pytest.raises(EncoderRefused, match=r"no reverse-mode derivative.*RatioProbe\(estimator='paper'\)"):
        ratio(HalfFrozen(whole), probe.evolve(estimator="adaptive"), some_images(1))


class Coned(torch.nn.Module):
    """Linear features and their norm, which has no derivative at a black image."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = Linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.linear(x)
        return torch.cat([h, h.square().sum(1, keepdim=True).sqrt()], 1)


@pytest.mark.parametrize("estimator", ["paper", "adaptive"])
def test_an_image_without_derivative_is_not_valid_and_costs_the_others_nothing(estimator: str) -> None:
    images = some_images(3)
    images.pixels[1] = 0
    ds = ratio(Coned(), gf.RatioProbe(estimator=estimator, scales=(0.1, 1.0), directions=64), images)
    np.testing.assert_array_equal(ds["valid"], [[True, True], [False, False], [True, True]])
    assert ds["ratio"].notnull().sum() == 4


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_features_of_other_formats_are_measured_adaptively(dtype: torch.dtype) -> None:
    class Cast(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = relu_net()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x).to(dtype)

    probe = gf.RatioProbe(estimator="adaptive", target_se=0.1, scales=(0.01, 5.0), directions=64)
    ds = ratio(Cast(), probe, some_images(1))
    assert bool(ds["valid"].values[0, 1])


def test_no_derivative_at_all_prints_no_warning() -> None:
    images = some_images(1)
    images.pixels[:] = 0
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE, 8, bias=False), torch.nn.ReLU())
    ds = ratio(net, gf.RatioProbe(scales=(0.1, 1.0), directions=16), images)  # warnings are errors here
    assert not ds["valid"].any()


def test_a_target_that_nothing_reaches_plans_the_cap() -> None:
    assert gf.RatioProbe(estimator="adaptive", target_se=1e-300).forward_passes() <= 17 * 2048 + 400
