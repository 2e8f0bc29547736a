"""`geoframe run` of studies that train: what can't be trained is one line and exit code 2, and nothing is lost."""

from __future__ import annotations

import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from geoframe.cli import cli

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
STUDY = """
import attrs
import geoframe as gf

def net(name="mlp", shape=(1, 8, 8), **kwargs):
    return gf.FactoryEncoder(f"geoframe.models.small:{name}", kwargs=kwargs, input_shape=shape)

@attrs.frozen(slots=False, eq=False)
class Uncounted(gf.ImageFolder):
    def count(self):
        return None

class Small(gf.Study):
    encoders = (gf.TrainedEncoder(gf.Training(TRAINING), MOMENT),)
    probesets = (gf.Digits(n=1),)
    probes = (gf.JacobianProbe(top=1),)
"""
BLOWN = """
import torch

class Blown(torch.nn.Sequential):
    left = 6

    def __init__(self):
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(64, 10))

    def forward(self, x):
        self.left -= self.training
        return super().forward(x) * (1.0 if self.left >= 0 else float("nan"))
"""
DIGITS = "model=net(inputs=64), data=gf.Digits(split='train', n=100), batch=20, epochs=3"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "data"))

    def run(training: str, code: int = 2, moment: str = "step='final'") -> str:
        (tmp_path / "study.py").write_text(STUDY.replace("TRAINING", training).replace("MOMENT", moment))
        result = CliRunner().invoke(cli, ["run", "study.py", "--device", "cpu"])
        assert result.exit_code == code, result.output
        lines = [line for line in result.stderr.splitlines() if not line.startswith("training ")]
        assert len(lines) == (code != 0), result.stderr
        return "\n".join(lines)

    return run


def of(data: str) -> str:
    return f"model=net(shape=(1, 28, 28)), data={data}, epochs=1"


SETS = {
    "MNIST": ("TorchvisionSet('MNIST', split='train')", "MNIST/raw/train-images-idx3-ubyte"),
    "FashionMNIST": ("TorchvisionSet('FashionMNIST', split='train')", "FashionMNIST/raw/train-images-idx3-ubyte"),
    "CIFAR10": ("TorchvisionSet('CIFAR10', split='train')", "cifar-10-batches-py/data_batch_1"),
    "Imagenette": ("TorchvisionSet('Imagenette', split='train')", "imagenette2/train/n01440764/x.JPEG"),
    "a part of it": ("Subset(gf.TorchvisionSet('MNIST', split='train'), 50)", "MNIST/raw/train-images-idx3-ubyte"),
    "a folder": ("ImageFolder('mine/train')", "mine/a.png"),
    "CIFAR-10 as JPEG": ("Cifar10Jpeg('train')", "cifar10-jpeg/test/cat/0.jpg"),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("there", ["nothing", "something else", "a broken file"])
def test_data_that_are_not_there_or_in_another_layout(run, tmp_path, name, there):
    data, place = SETS[name]
    if there == "something else":
        (tmp_path / "data" / "other").mkdir(parents=True)
    if there == "a broken file":
        path = tmp_path / "data" / place
        path.parent.mkdir(parents=True)
        path.touch()
        if "images" in place:
            path.with_name("train-labels-idx1-ubyte").touch()
    said = run(of(f"gf.{data}"))
    assert str(tmp_path / "data") in said
    assert "failed: " in said
    assert any(advice in said for advice in ("put it there", "set GEOFRAME_DATA", "replace its files", "put CIFAR-10"))


def test_what_names_the_layout(run):
    assert "in torchvision's layout (MNIST/raw/train-*-ubyte): put it there" in run(of(f"gf.{SETS['MNIST'][0]}"))


def test_a_folder_without_classes(run, tmp_path):
    (tmp_path / "data/flat").mkdir(parents=True)
    Image.new("L", (28, 28)).save(tmp_path / "data/flat/a.png")
    assert "probe set 'flat' has images without" in run(of("gf.ImageFolder('flat')"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("optimiser='adamw'", "study.py:14: Training: no optimiser 'adamw'; did you mean 'adam'?"),
        ("optimizer='adam'", "study.py:14: Training has no field 'optimizer'; did you mean 'optimiser'?"),
        ("loss='mse'", "loss='mse' should be a loss"),
        ("checkpoint_steps=(5, 16)", "Training: no checkpoint after step 16: training has steps 1 to 15"),
        ("checkpoints=(4,)", "Training: no checkpoint after epoch 4: training has epochs 1 to 3"),
    ],
)
def test_a_recipe_that_cannot_be(run, changes, said, tmp_path):
    assert said in run(f"{DIGITS}, {changes}")
    assert not (tmp_path / "cache").exists()


def test_a_step_that_is_known_to_be_too_late_only_once_the_images_are_loaded(run, tmp_path):
    for i in range(6):
        path = tmp_path / "data/mine" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 40 * i).save(path)
    said = run("model=net(inputs=64), data=Uncounted('mine'), batch=2, epochs=2, checkpoint_steps=(6, 7)")
    assert said.endswith("Training: no checkpoint after step 7: training has steps 1 to 6")


def test_training_that_diverges_keeps_its_checkpoints(run, tmp_path):
    (tmp_path / "nets.py").write_text(BLOWN)
    net = f"gf.FactoryEncoder({str(tmp_path / 'nets.py:Blown')!r}, input_shape=(1, 8, 8))"
    training = f"model={net}, data=gf.Digits(split='train', n=100), batch=20, epochs=3, checkpoint_steps=(3,)"
    said = run(training)
    assert "diverged in epoch 2, step 2 (loss nan): lower lr; the checkpoints before that stay" in said
    (kept,) = (tmp_path / "cache").rglob("step-*.pt")
    before = kept.stat().st_mtime_ns
    run(training, code=0, moment="at_step=3")
    assert kept.stat().st_mtime_ns == before, "it is read, not trained again"
    assert torch.load(kept, weights_only=True)
