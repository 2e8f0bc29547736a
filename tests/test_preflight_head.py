"""Heads that raise, return something else than logits, are random or mix a batch are refused, each by its cause."""

from __future__ import annotations

import pytest
import torch

from geoframe.errors import EncoderRefused
from tests.networks import loaded, relu_net, some_images

PIXELS = some_images(2).pixels


class Head(torch.nn.Module):
    """One kind of head, chosen by name, on the 8 features of `relu_net`."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.calls = kind, 0

    def forward(self, o: torch.Tensor) -> torch.Tensor:
        return getattr(self, self.kind)(o)

    def centred(self, o: torch.Tensor) -> torch.Tensor:
        return o - o.mean(0)

    def weakly_centred(self, o: torch.Tensor) -> torch.Tensor:
        return o - 1e-3 * o.mean(0)

    def relative_to_first(self, o: torch.Tensor) -> torch.Tensor:
        return o - o[0]

    def batch_statistics(self, o: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(o, None, None, training=True)

    def masked_and_centred(self, o: torch.Tensor) -> torch.Tensor:
        return torch.cat([o - o.mean(0), torch.full_like(o, -torch.inf)], 1)

    def noisy(self, o: torch.Tensor) -> torch.Tensor:
        return o + torch.randn_like(o)

    def dropout(self, o: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(o, 0.1, training=True)

    def rarely_random(self, o: torch.Tensor) -> torch.Tensor:
        return o.flip(1) if torch.rand(()) < 0.1 else o

    def counting(self, o: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return o + self.calls

    def several(self, o: torch.Tensor) -> torch.Tensor:
        return (o, o)  # type: ignore[return-value]

    def raising(self, o: torch.Tensor) -> torch.Tensor:
        raise ValueError("\nbad value\nover several lines")

    def silent(self, o: torch.Tensor) -> torch.Tensor:
        raise AssertionError

    def exiting(self, o: torch.Tensor) -> torch.Tensor:
        raise SystemExit("no licence")

    def missing_column(self, o: torch.Tensor) -> torch.Tensor:
        return o[:, torch.tensor([9])]

    def boolean(self, o: torch.Tensor) -> torch.Tensor:
        return o > 0

    def votes(self, o: torch.Tensor) -> torch.Tensor:
        return o.round().long()

    def complex(self, o: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(o)

    def three_dimensional(self, o: torch.Tensor) -> torch.Tensor:
        return o[:, None]

    def pooled(self, o: torch.Tensor) -> torch.Tensor:
        return o.mean(0, keepdim=True)

    def squeezed(self, o: torch.Tensor) -> torch.Tensor:
        return o.squeeze()

    def classes(self, o: torch.Tensor) -> torch.Tensor:
        return o.argmax(1).float()

    def no_class(self, o: torch.Tensor) -> torch.Tensor:
        return o[:, :0]

    def nan(self, o: torch.Tensor) -> torch.Tensor:
        return o / torch.zeros_like(o) * 0

    def masked(self, o: torch.Tensor) -> torch.Tensor:
        return torch.cat([o, torch.full_like(o, -torch.inf)], 1)

    def in_place(self, o: torch.Tensor) -> torch.Tensor:
        return o.sub_(o.mean(1, keepdim=True)).mul_(2)


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("centred", "the logits of its head of an image"),
        ("weakly_centred", "mixes the images"),
        ("relative_to_first", "mixes the images"),
        ("batch_statistics", "mixes the images"),
        ("masked_and_centred", "mixes the images"),
        ("noisy", "two different results .* the logits of its head are random"),
        ("dropout", "two different results"),
        ("rarely_random", "two different results"),
        ("counting", "two different results"),
        ("several", "its head returns a tuple"),
        ("raising", r"its head doesn't take its 8 features \(ValueError: bad value\)"),
        ("silent", r"\(AssertionError\)"),
        ("exiting", r"\(SystemExit: no licence\)"),
        ("missing_column", r"\(IndexError: index 9"),
        ("boolean", "dtype torch.bool"),
        ("votes", "dtype torch.int64"),
        ("complex", "dtype torch.complex64"),
        ("three_dimensional", r"returns \(2, 1, 8\)"),
        ("pooled", r"returns \(1, 8\) for the features of 2"),
        ("squeezed", r"returns \(8,\) for the features of 1"),
        ("classes", r"returns \(2,\)"),
        ("no_class", r"returns \(2, 0\)"),
        ("nan", "NaN logits"),
    ],
)
def test_a_faulty_head_is_refused_by_its_cause(kind: str, cause: str) -> None:
    with pytest.raises(EncoderRefused, match=cause) as caught:
        loaded(relu_net(), head=Head(kind)).preflight(PIXELS)
    assert "\n" not in str(caught.value)
    assert "'toy'" in str(caught.value)
    assert "head" in str(caught.value)


@pytest.mark.parametrize("kind", ["masked", "in_place"])
def test_sound_heads_pass(kind: str) -> None:
    loaded(relu_net(), head=Head(kind)).preflight(PIXELS)


def test_checking_the_head_takes_no_further_pass() -> None:
    with_head, without = loaded(relu_net(), head=torch.nn.Linear(8, 3)), loaded(relu_net())
    for encoder in (with_head, without):
        encoder.preflight(PIXELS)
    assert with_head.passes == without.passes < 24
