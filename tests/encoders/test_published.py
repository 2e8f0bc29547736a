"""Checkpoints made here in the form of the published ones (their key layouts), read by the ready-made specs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import timm
import torch
import torchvision

import geoframe as gf
from geoframe.encoders import published

ENCODERS = [
    *(published.robust_resnet50(epsilon) for epsilon in published.EPSILONS),
    published.imagenet_sd_resnet50(),
    published.synclr_vit_b16(),
    published.cifar_resnet20(),
]


@pytest.fixture(scope="module")
def resnet50():
    torch.manual_seed(1)
    model = torchvision.models.resnet50().eval()
    return model.state_dict()


def _check(network, state, head):
    parts = {**network.features.state_dict()}
    if network.head is not None:
        parts |= {f"{head}.{key}": value for key, value in network.head.state_dict().items()}
    assert parts.keys() == state.keys()
    assert all(torch.equal(parts[key], value) for key, value in state.items())


def test_robust_family(weights, resnet50):
    state = {f"module.model.{k}": v for k, v in resnet50.items()}
    state |= {f"module.attacker.model.{k}": v for k, v in resnet50.items()}
    for part in ("normalizer", "attacker.normalize"):
        state |= {f"module.{part}.new_mean": torch.rand(3, 1, 1), f"module.{part}.new_std": torch.rand(3, 1, 1)}
    content = {
        "model": state,
        "optimizer": {"state": {}, "param_groups": []},
        "schedule": None,
        "epoch": 90,
        "amp": "N/A",
    }
    torch.save(content, weights / "resnet50_l2_eps3.ckpt")
    encoder = published.robust_resnet50(3)
    network = encoder.build()
    _check(network, resnet50, "fc")
    assert network.mean == (0.485, 0.456, 0.406)
    assert encoder.coords["epsilon"] == 3
    assert encoder.coords["training"] == "adversarial-l2"


@pytest.mark.parametrize("prefix", ["", "module.backbone."])
def test_imagenet_sd(weights, resnet50, prefix):
    state = {prefix + k: v for k, v in resnet50.items()}
    torch.save({"state_dict": state} if prefix else state, weights / "imagenet_1k_sd_resnet50.pth")
    _check(published.imagenet_sd_resnet50().build(), resnet50, "fc")


def test_imagenet_sd_without_its_classifier(weights, resnet50):
    state = {k: v for k, v in resnet50.items() if not k.startswith("fc.")}
    torch.save(state, weights / "imagenet_1k_sd_resnet50.pth")
    network = published.imagenet_sd_resnet50().build()
    assert network.head is None
    _check(network, state, "fc")


def test_synclr(weights):
    torch.manual_seed(2)
    model = timm.create_model("vit_base_patch16_224", num_classes=0, depth=2).eval()
    torch.save(
        {"model": {f"module.visual.{k}": v for k, v in model.state_dict().items()}}, weights / "synclr_vit_b_16.pth"
    )
    encoder = published.synclr_vit_b16()
    shallow = encoder.architecture.evolve(model_kwargs={"num_classes": 0, "depth": 2})  # the same keys, in less time
    network = encoder.evolve(architecture=shallow).build()
    assert network.head is None
    _check(network, model.state_dict(), "")
    x = torch.rand(1, 3, 224, 224)
    with torch.no_grad():
        assert torch.equal(network.features(x), model.forward_features(x)[:, 0])  # the class token, after the last norm
    assert network.mean == published.CLIP_MEAN


def test_synclr_at_full_depth_has_the_blocks_of_a_vit_b():
    network = published.synclr_vit_b16().randomised().build()
    assert sum(p.numel() for p in network.features.parameters()) == 85_798_656


@pytest.mark.parametrize("nested", [True, False])
def test_cifar_resnet20_layout(weights, nested):
    from geoframe.models.cifar_resnet import resnet20

    state = resnet20().state_dict()
    old = {f"module.{k}": v for k, v in state.items() if not k.endswith("num_batches_tracked")}
    torch.save({"state_dict": old, "best_prec1": 91.7} if nested else old, weights / "resnet20-12fca82f.th")
    network = published.cifar_resnet20().evolve(sha256=None).build()
    _check(network, state, "linear")


def test_cifar_resnet20_itself():
    path = Path(os.environ.get("GEOFRAME_DATA", "data"), "weights", "resnet20-12fca82f.th")
    if not path.is_file():
        pytest.skip("needs $GEOFRAME_DATA/weights/resnet20-12fca82f.th")
    encoder = published.cifar_resnet20()
    network = encoder.build()
    loaded = encoder.load()
    assert network.features.conv1.weight.std() > 0.1
    assert loaded.logits(torch.rand(1, 3, 32, 32)).shape == (1, 10)
    assert encoder.source_digest() == encoder.sha256


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda e: e.label)
def test_absent_files_are_said_in_one_line(weights, encoder, monkeypatch):
    monkeypatch.setattr("torch.hub.download_url_to_file", _offline)
    with pytest.raises(gf.MissingFile) as caught:
        encoder.build()
    message = str(caught.value)
    assert encoder.page in message
    assert str(weights / encoder.file_name) in message


def _offline(*_args, **_kwargs):
    raise OSError("offline")


def test_names_and_keys_differ_but_random_copies_are_one():
    assert len({e.label for e in ENCODERS}) == len({e.key for e in ENCODERS}) == len(ENCODERS)
    random = {published.robust_resnet50(e).randomised().key for e in published.EPSILONS}
    assert random == {gf.TorchvisionEncoder("resnet50", weights=None).key}
    assert published.robust_resnet50(0.5).randomised().label == "resnet50_l2_eps0.5"


def test_urls_of_the_robust_family():
    urls = [published.robust_resnet50(e).url for e in (0, 0.01, 1.0)]
    base = "https://huggingface.co/madrylab/robust-imagenet-models/resolve/main/resnet50_l2_eps"
    assert urls == [f"{base}{e}.ckpt" for e in ("0", "0.01", "1")]
    with pytest.raises(gf.BadInput, match=r"the family has 0, 0.01"):
        published.robust_resnet50(2)
