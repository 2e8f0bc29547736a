from __future__ import annotations

import pytest
import torch
from torch import nn

from geoframe.encoders.split import find_head, split_head
from geoframe.errors import EncoderRefused

SHAPE = (3, 8, 8)
X = torch.rand(2, *SHAPE)


def _classifier():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 6), nn.Dropout(0.5), nn.Linear(6, 5)
    )


def test_features_are_what_the_last_linear_layer_sees():
    model = _classifier()
    whole = model.eval()(X)
    seen = model[:5](X)
    features, head, layer = split_head(model, SHAPE)
    assert layer == "5"
    assert torch.equal(features(X), seen)
    assert torch.equal(head(features(X)), whole)


def test_hooks_are_gone_and_the_layers_name_is_found():
    model = _classifier()
    assert find_head(model, SHAPE) == "5"
    assert not any(module._forward_hooks for module in model.modules())


def test_hooks_are_gone_after_an_error():
    model = _classifier()
    with pytest.raises(RuntimeError):
        find_head(model, (5, 8, 8))
    assert not any(module._forward_hooks for module in model.modules())


def test_a_lone_linear_layer_has_pixels_as_features():
    layer = nn.Linear(8, 5)
    features, head, _ = split_head(layer, (8,))
    x = torch.rand(2, 8)
    assert torch.equal(features(x), x)
    assert head is layer


def test_a_pointwise_convolution_on_a_pooled_map_is_a_linear_head():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 7, 1), nn.Flatten())
    whole = model.eval()(X)
    features, head, layer = split_head(model, SHAPE)
    assert layer == "2"
    assert features(X).shape == (2, 4)
    assert isinstance(head, nn.Linear)
    assert torch.allclose(head(features(X)), whole, atol=1e-6)


def test_a_pointwise_convolution_on_a_map_is_not():
    with pytest.raises(EncoderRefused, match="not made by a linear layer"):
        split_head(nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten()), SHAPE)


def test_an_output_that_no_linear_layer_makes_is_refused_by_name():
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.Softmax(dim=1))
    assert find_head(model, SHAPE) is None
    with pytest.raises(EncoderRefused, match=r"'mine'.*head=None"):
        split_head(model, SHAPE, "mine")


class _Tied(nn.Module):
    """Uses its head twice, so that an identity in its place changes the features."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(192, 192)

    def forward(self, x):
        return self.head(self.head(x.flatten(1)).relu() * 2)


class _ReadsWeight(nn.Module):
    """Reads its head's weight directly."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(192, 5)

    def forward(self, x):
        return self.head(x.flatten(1) + self.head.weight.sum())


@pytest.mark.parametrize("model", [_Tied(), _ReadsWeight()])
def test_a_model_that_cannot_be_split_is_refused(model):
    with pytest.raises(EncoderRefused, match="can't be split at 'head'"):
        split_head(model, SHAPE)


def test_weights_that_are_nan_are_named():
    model = _classifier()
    torch.nn.init.constant_(model[0].weight, float("nan"))
    with pytest.raises(EncoderRefused, match=r"'n' returns NaN or infinite values: check its weights"):
        split_head(model, SHAPE, "n")


def test_another_input_shape_is_named():
    with pytest.raises(EncoderRefused, match=r"'n' fails on images of shape \(3, 9, 9\): mat1 and mat2"):
        split_head(_classifier(), (3, 9, 9), "n")
