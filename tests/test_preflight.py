"""Encoders that would give silently wrong numbers are refused, each by its cause, in one line."""

from __future__ import annotations

import pytest
import torch

from geoframe.errors import EncoderRefused
from geoframe.settings import choose_settings
from tests.networks import SHAPE, SIZE, Linear, Sine, Square, conv_net, loaded, relu_net, some_images

PIXELS = some_images(2).pixels
BRIGHT = torch.ones(1, *SHAPE)


class NoProduct(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: object, inputs: object, output: object) -> None:
        pass

    @staticmethod
    def jvp(ctx: object, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class Refused(torch.nn.Module):
    """One misbehaviour, chosen by name."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault, self.inner = fault, Linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self, self.fault)(x)

    def detached(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x.detach())

    def inference_mode(self, x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return self.inner(x).clone()

    def partly_detached(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + self.inner((3 * x).detach())

    def slightly_detached(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(0.995 * x + (0.005 * x).detach())

    def rarely_random(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x.flip(3) if torch.rand(()) < 0.1 else x)

    def complex(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(self.inner(x))

    def slightly_mixed_batch(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) - 1e-3 * self.inner(x).mean(0)

    def vanishing(self, x: torch.Tensor) -> torch.Tensor:
        return 1 + 1e-17 * self.inner(x)

    def random(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(self.inner(x), 0.5, training=True)

    def batch_statistics(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(self.inner(x), None, None, training=True)

    def quantised(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) * 255).round()

    def nan(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) / torch.zeros_like(x.flatten(1)[:, :1])

    def feature_map(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def place_in_batch(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) - self.inner(x)[0]

    def root(self, x: torch.Tensor) -> torch.Tensor:
        return (self.inner(x) - self.inner(x)).sqrt() + self.inner(x)

    def leaves_range(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 1, torch.nan, x).flatten(1)

    def raises(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 1:
            raise ValueError("pixels\nabove 1")
        return self.inner(x)

    def no_product(self, x: torch.Tensor) -> torch.Tensor:
        return NoProduct.apply(self.inner(x))

    def several_outputs(self, x: torch.Tensor) -> torch.Tensor:
        return (self.inner(x), x)  # type: ignore[return-value]

    def mixed_batch(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) - self.inner(x).mean(0)

    def pooled_batch(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).mean(0, keepdim=True)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("detached", "dead derivative"),
        ("inference_mode", "derivative"),
        ("partly_detached", "wrong derivative"),
        ("slightly_detached", "wrong derivative"),
        ("random", "two different results"),
        ("rarely_random", "two different results"),
        ("complex", "not real numbers"),
        ("slightly_mixed_batch", "mixes the images"),
        ("vanishing", "doesn't react"),
        ("batch_statistics", "when training"),
        ("mixed_batch", "mixes the images"),
        ("quantised", "doesn't react"),
        ("nan", "NaN"),
        ("feature_map", "pool or flatten"),
        ("several_outputs", "tuple"),
        ("pooled_batch", "features of shape"),
        ("place_in_batch", "mixes the images"),
        ("root", "NaN or infinite derivative"),
        ("leaves_range", "image with a little noise"),
        ("raises", "ValueError: pixels"),
        ("no_product", "no forward-mode derivative: NotImplementedError"),
    ],
)
def test_a_faulty_encoder_is_refused_by_its_cause(fault: str, cause: str) -> None:
    with pytest.raises(EncoderRefused, match=cause) as caught:
        loaded(Refused(fault)).preflight(BRIGHT if fault in {"leaves_range", "raises"} else PIXELS)
    assert "\n" not in str(caught.value)
    assert "'toy'" in str(caught.value)


class Float32Only(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = relu_net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner.float()(x.float())


class PartlyFloat32(Float32Only):
    """Float64 in, float64 out, float32 between: as many attention layers have it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).to(x.dtype)


class DrawsForNothing(Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.rand(())  # as layers do that look at `training` only afterwards
        return super().forward(x)


class Bfloat16(Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


@pytest.mark.parametrize(
    "network",
    [Linear(), Square(), Sine(), relu_net(), Float32Only(), PartlyFloat32(), DrawsForNothing(), Bfloat16()],
    ids=lambda network: type(network).__name__,
)
def test_sound_encoders_pass(network: torch.nn.Module) -> None:
    loaded(network).preflight(PIXELS)


def test_an_encoder_without_float64_has_no_double() -> None:
    assert loaded(Float32Only()).double() is None
    assert loaded(PartlyFloat32()).double() is None
    assert loaded(relu_net()).double() is not None


def test_images_of_another_size_are_refused() -> None:
    with pytest.raises(EncoderRefused, match="takes images of shape"):
        loaded(relu_net()).features(torch.rand(1, 1, 5, 5))


def test_logits_without_a_head_are_refused() -> None:
    with pytest.raises(EncoderRefused, match="no head"):
        loaded(relu_net()).logits(torch.rand(1, *SHAPE))


def test_eval_mode_is_set() -> None:
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE, 8), torch.nn.Dropout(0.5)).train()
    loaded(network).preflight(PIXELS)
    assert not network.training


def test_a_flat_background_is_probed_off_its_ties() -> None:
    """Max-pool ties have no derivative: the preflight jitters the image first."""
    pool = torch.nn.Sequential(torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(9, 4))
    loaded(pool).preflight(torch.full((1, *SHAPE), 0.5))


def test_normalisation_is_folded_in() -> None:
    pixels = torch.rand(2, 3, 8, 8)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    folded = loaded(conv_net(), (3, 8, 8), mean=mean, std=std)
    want = conv_net().eval()((pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None])
    torch.testing.assert_close(folded.features(pixels), want, rtol=1e-5, atol=1e-6)


def test_equal_weights_have_equal_digests() -> None:
    assert loaded(conv_net(), (3, 8, 8)).digest == loaded(conv_net(), (3, 8, 8)).digest
    assert loaded(conv_net(), (3, 8, 8)).digest != loaded(conv_net(1), (3, 8, 8)).digest


def test_a_network_of_another_input_size_is_refused_by_name():
    encoder = loaded(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(7, 3)))
    with pytest.raises(EncoderRefused, match=r"fails on images of shape .*: mat1 and mat2"):
        choose_settings(encoder)


def test_a_head_that_does_not_take_the_features_is_refused() -> None:
    with pytest.raises(EncoderRefused, match="its head doesn't take its 8 features"):
        loaded(relu_net(), head=torch.nn.Linear(5, 3)).preflight(PIXELS)
    loaded(relu_net(), head=torch.nn.Linear(8, 3)).preflight(PIXELS)
