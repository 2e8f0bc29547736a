from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import geoframe as gf
from geoframe.classifier import fine_classifier, head_weight
from tests.networks import SHAPE, relu_net


class SinglePrecision(nn.Module):
    """Features in float32, 2000 of them, whatever comes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.float().flatten(1).repeat(1, 2000)[:, :2000]


def biased(*layers: nn.Module) -> nn.Module:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.constant_(layer.bias, 1e4)
    return layers[0] if len(layers) == 1 else nn.Sequential(*layers)


def weight_of(features: nn.Module, head: nn.Module) -> torch.Tensor:
    loaded = gf.ModuleEncoder(features, head=head, input_shape=SHAPE).load()
    fine = fine_classifier(loaded)
    x = torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(0)).to(fine.dtype)
    return head_weight(fine, x)


def test_a_large_bias_takes_nothing_from_the_weights_of_a_linear_head() -> None:
    torch.manual_seed(0)
    head = biased(nn.Linear(2000, 3))
    torch.testing.assert_close(weight_of(SinglePrecision(), head), head.weight.detach(), rtol=0, atol=0)


def test_nor_from_several_linear_layers_in_a_row() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(2000, 4), nn.Linear(4, 3)
    head = biased(nn.Identity(), first, nn.Dropout(), nn.Sequential(second))
    nn.init.constant_(second.bias, 1e4)
    found = weight_of(SinglePrecision(), head)
    torch.testing.assert_close(found, (second.weight.double() @ first.weight.double()).detach().float())


class Doubled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def hooked() -> nn.Linear:
    head = nn.Linear(8, 4)
    head.register_forward_hook(lambda module, inputs, made: 2 * made)
    return head


def replaced() -> nn.Linear:
    head = nn.Linear(8, 4)
    head.forward = lambda x: 2 * nn.functional.linear(x, head.weight.to(x), head.bias.to(x))  # type: ignore[method-assign]
    return head


@pytest.mark.parametrize("make", [lambda: Doubled(8, 4), hooked, lambda: nn.Sequential(hooked())])
def test_what_a_linear_layer_does_beyond_its_class_counts(make) -> None:
    torch.manual_seed(0)
    head = make()
    inner = head[0] if isinstance(head, nn.Sequential) else head
    torch.testing.assert_close(weight_of(relu_net(), head), 2 * inner.weight.detach().double())


def test_a_replaced_forward_counts() -> None:
    torch.manual_seed(0)
    head = replaced()
    torch.testing.assert_close(weight_of(relu_net(), head), 2 * head.weight.detach().double())


def test_a_parametrised_layer_is_what_it_computes() -> None:
    torch.manual_seed(0)
    head = parametrizations.weight_norm(nn.Linear(8, 4))
    with torch.no_grad():
        head.parametrizations.weight.original0.mul_(3)
    torch.testing.assert_close(weight_of(relu_net(), head), head.weight.detach().double())


def test_what_bends_is_refused() -> None:
    with pytest.raises(gf.EncoderRefused, match="not a linear layer"):
        weight_of(relu_net(), nn.Sequential(nn.Linear(8, 4), nn.ReLU()))
