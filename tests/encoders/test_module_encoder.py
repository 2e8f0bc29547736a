from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import geoframe as gf

SHAPE = (3, 8, 8)


def _net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten())


def _encoder(net=None, **kwargs):
    return gf.ModuleEncoder(net or _net(), **{"input_shape": SHAPE, **kwargs})


def test_positional_head_and_defaults():
    head = nn.Linear(144, 5)
    encoder = gf.ModuleEncoder(_net(), head, input_shape=SHAPE, mean=0.5, std=(0.1, 0.2, 0.3))
    network = encoder.build()
    assert encoder.label == "sequential"
    assert encoder.coords == {"architecture": "Sequential"}
    assert encoder.in_process_only
    assert network.head(network.features(torch.rand(2, *SHAPE))).shape == (2, 5)
    assert (network.mean, network.std) == (0.5, (0.1, 0.2, 0.3))
    assert (encoder.evolve(mean=0.0).mean, _encoder().std) == (0.0, 1.0)


def test_the_users_module_stays_as_it_was():
    net = _net().double().to(memory_format=torch.channels_last).train()
    net[1].eval()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    random_state = torch.get_rng_state()
    encoder = _encoder(net)
    assert encoder.key
    network = encoder.build()
    assert net.training
    assert not net[1].training
    assert all(torch.equal(v, before[k]) and v.dtype == before[k].dtype for k, v in net.state_dict().items())
    assert net[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert network.features is not net
    assert not network.features.training
    assert network.features[0].weight.dtype == torch.float32


def test_shared_weights_stay_shared_in_the_copy():
    layer, head = nn.Linear(192, 192), nn.Linear(192, 192)
    head.weight = layer.weight
    built = _encoder(nn.Sequential(nn.Flatten(), layer), head=head).build()
    assert built.features[1].weight is built.head.weight
    assert built.head.weight is not layer.weight


def test_the_key_follows_the_weights_the_frame_and_the_head():
    net = _net()
    keys = [_encoder(net).key, _encoder(_net(1)).key, _encoder(net, mean=0.5).key, _encoder(net, std=0.5).key]
    keys.append(_encoder(net, head=nn.Linear(144, 5)).key)
    assert len(set(keys)) == len(keys)
    assert _encoder(_net(), name="other").key == keys[0]


def test_the_key_follows_training():
    net = _net()
    encoder = _encoder(net)
    before = encoder.key
    assert encoder.key == before
    with torch.no_grad():
        net[0].bias.add_(1)
    assert encoder.key != before


class _Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x.flatten(1) * self.factor


def test_the_key_sees_what_a_state_dict_does_not():
    assert _encoder(_Scaled(1.0)).key != _encoder(_Scaled(2.0)).key


def test_bfloat16_weights_are_keyed():
    assert _encoder(_net().bfloat16()).key != _encoder(_net().half()).key


@pytest.mark.parametrize("net", [nn.Conv2d(3, 4, 3), nn.Linear(5, 5), nn.LSTM(8, 4), nn.Flatten(0)])
def test_the_key_of_a_module_that_does_not_fit_is_no_crash(net):
    assert len(_encoder(net).key) == 32


def test_a_module_that_cannot_be_copied_is_refused_in_one_line():
    net = _net()
    net.lock = threading.Lock()
    for action in (_encoder(net).build, lambda: _encoder(net).key):
        with pytest.raises(gf.BadInput, match=r"'sequential'.*can't be copied.*FactoryEncoder") as caught:
            action()
        assert "\n" not in str(caught.value)


def test_what_is_no_module_is_refused():
    with pytest.raises(gf.BadInput, match="features is a function"):
        _encoder(lambda x: x)
    with pytest.raises(gf.BadInput, match="head is a str"):
        _encoder(head="fc")
    with pytest.raises(gf.BadInput, match="needs input_shape"):
        gf.ModuleEncoder(_net())


def test_it_loads():
    loaded = _encoder(head=nn.Linear(144, 5), mean=0.5, std=0.5).load()
    x = torch.rand(2, *SHAPE)
    assert loaded.logits(x).shape == (2, 5)
    assert torch.allclose(loaded.features(x), _net().eval()((x - 0.5) / 0.5), atol=1e-6)


def test_a_whole_classifier_is_cut_in_front_of_its_head():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    whole = gf.ModuleEncoder(net, head=net[3], input_shape=(3, 2, 2)).load()
    x = torch.rand(2, 3, 2, 2)
    assert whole.features(x).shape == (2, 6)
    torch.testing.assert_close(whole.logits(x), net(x), rtol=1e-6, atol=1e-7)
    assert isinstance(net[3], torch.nn.Linear)


def test_a_mean_of_another_number_of_channels_is_one_line():
    with pytest.raises(gf.EncoderRefused, match="mean and std hold 2 values, but its images have 3 channels: give a"):
        _encoder(mean=(0.1, 0.2)).load()
