"""Pretrained models with a new head as what a training starts from."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
import torchvision
from torch import nn

import geoframe as gf
from geoframe.encoders.new_head import with_new_head
from geoframe.training import loop

TIMM, TORCHVISION = "efficientvit_b0", "shufflenet_v2_x0_5"  # quick to build
FILE = {"timm": f"{TIMM}.pth", "torchvision": "shufflenetv2_x0.5-f707e7126e.pth"}
LIBRARIES = ("timm", "torchvision")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder of weights, and no way to others."""
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "data/weights").mkdir(parents=True)
    return tmp_path / "data/weights"


def whole(library: str, **options) -> nn.Module:
    return (
        timm.create_model(TIMM, **options) if library == "timm" else getattr(torchvision.models, TORCHVISION)(**options)
    )


def encoder(library: str, **fields) -> gf.TimmEncoder | gf.TorchvisionEncoder:
    model = {"timm": gf.TimmEncoder, "torchvision": gf.TorchvisionEncoder}[library]
    return model({"timm": TIMM, "torchvision": TORCHVISION}[library], model_kwargs={"num_classes": 10}, **fields)


def save(library: str, folder: Path) -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    state = whole(library).state_dict()
    torch.save(state, folder / FILE[library])
    return state


@pytest.mark.parametrize("library", LIBRARIES)
def test_weights_are_the_files_and_the_head_is_the_librarys(library, folder):
    state = save(library, folder)
    network = encoder(library, seed=3).build()
    assert network.source == str(folder / FILE[library])
    assert (network.input_shape, network.mean) == ((3, 224, 224), (0.485, 0.456, 0.406))
    features = network.features.state_dict()
    assert len(features) > 100
    assert all(torch.equal(value, state[key]) for key, value in features.items())
    torch.manual_seed(3)
    fresh = whole(library, num_classes=10).state_dict()
    assert torch.equal(network.head.weight, fresh[f"{network.layer}.weight"])
    assert network.head.bias.shape == (10,)
    other = encoder(library, seed=4).build()
    assert not torch.equal(other.head.weight, network.head.weight)


@pytest.mark.parametrize("library", LIBRARIES)
def test_as_many_classes_as_the_weights_have_keep_the_head(library, folder):
    state = save(library, folder)
    network = encoder(library).evolve(model_kwargs={"num_classes": 1000}).build()
    assert torch.equal(network.head.weight, state[f"{network.layer}.weight"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_weights_of_another_model_are_refused(library, folder):
    torch.save({"conv.weight": torch.rand(2)}, folder / FILE[library])
    with pytest.raises(gf.BadInput, match=f"{library} can't build"):
        encoder(library).build()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("pretrained", [True, False])
def test_a_training_goes_on_from_them(library, pretrained, folder):
    state = save(library, folder)
    random = {} if pretrained else {"timm": {"pretrained": False}, "torchvision": {"weights": None}}[library]
    model = encoder(library, input_shape=(3, 32, 32), **random)
    images = gf.TensorSet(torch.rand(8, 3, 32, 32), labels=[0, 9] * 4, name="toy")
    training = gf.Training(model=model, data=images, epochs=1, batch=4, lr=1e-6, name="t")
    before, after = (gf.TrainedEncoder(training, step=step).build() for step in ("init", "final"))
    name, weight = next(iter(before.features.named_parameters()))
    assert torch.equal(weight, state[name]) == pretrained
    moved = after.features.state_dict()[name]
    assert not torch.equal(weight, moved)
    assert torch.allclose(weight, moved, atol=0.05)
    assert not torch.equal(after.head.weight, before.head.weight)
    assert after.head.weight.shape[0] == 10


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_weights_say_what_to_get_and_where_to_put_it(library, folder, monkeypatch):
    def offline(*_args, **_kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("torch.hub.download_url_to_file", offline)
    images = gf.TensorSet(torch.rand(4, 3, 224, 224), labels=[0, 1] * 2, name="toy")
    training = gf.Training(model=encoder(library), data=images, epochs=1, batch=2)
    with pytest.raises(gf.MissingFile) as caught:
        loop.weights_after(training, 1)
    place = {"timm": f"{TIMM}.safetensors", "torchvision": FILE["torchvision"]}
    address = {"timm": "huggingface.co/timm/efficientvit_b0", "torchvision": "https://download.pytorch.org/models/"}
    assert str(folder / place[library]) in str(caught.value)
    assert address[library] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_classifiers_are_not_replaced(folder):
    model = "deit_tiny_distilled_patch16_224"
    torch.save(timm.create_model(model).state_dict(), folder / f"{model}.pth")
    with pytest.raises(gf.BadInput, match="can't be given another number of classes"):
        gf.TimmEncoder(model, model_kwargs={"num_classes": 10}).build()


def test_weights_without_a_classifier_get_one():
    class Net(nn.Module):
        def __init__(self, num_classes: int) -> None:
            super().__init__()
            self.num_classes = num_classes
            self.body = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
            self.head = nn.Linear(4, num_classes) if num_classes else nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.body(x))

    bare, fresh = Net(0), Net(5)
    net = with_new_head(bare, fresh, (3, 2, 2), "net")
    assert net is bare
    assert net.num_classes == 5
    assert net.head is fresh.head
