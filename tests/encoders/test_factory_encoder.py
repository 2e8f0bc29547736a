from __future__ import annotations

import pytest
import torch

import geoframe as gf

SHAPE = (3, 4, 4)
SOURCE = """
import random
import numpy as np
import torch
from torch import nn

class Net(nn.Sequential):
    pass

def make(width=6):
    net = Net(nn.Flatten(), nn.Linear(48, width), nn.ReLU(), nn.Linear(width, 5))
    net.draw = (random.random(), float(np.random.rand()))
    return net

def headless():
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 6), nn.ReLU())

def fails():
    raise KeyError("lost")

def text():
    return "net"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(SOURCE)
    return path


def test_importable_function():
    encoder = gf.FactoryEncoder(
        "geoframe.models.cifar_resnet:resnet20", kwargs={"classes": 7}, input_shape=(3, 32, 32), training="random"
    )
    network = encoder.build()
    assert network.head.out_features == 7
    assert network.layer == "linear"
    assert encoder.label == "resnet20-random"
    assert encoder.coords == {"architecture": "resnet20", "training": "random", "seed": 0}


def test_function_in_a_file_is_seeded(file):
    def build(seed):
        return gf.FactoryEncoder(f"{file}:make", seed=seed, input_shape=SHAPE).build()

    torch.manual_seed(1)
    first, other = build(0), build(1)
    torch.manual_seed(2)
    again = build(0)
    assert torch.equal(first.head.weight, again.head.weight)
    assert first.features.draw == again.features.draw != other.features.draw
    assert not torch.equal(first.head.weight, other.head.weight)


def test_the_key_holds_function_arguments_seed_and_frame(file):
    def key(**changes):
        return gf.FactoryEncoder(f"{file}:make", **{"input_shape": SHAPE, **changes}).key

    changes = [{}, {"kwargs": {"width": 7}}, {"seed": 1}, {"mean": 0.5}, {"input_shape": (3, 2, 8)}, {"head": None}]
    assert len({key(**change) for change in changes}) == len(changes)
    assert key(name="n", training="random") == key()


def test_source_digest_follows_the_file(file):
    encoder = gf.FactoryEncoder(f"{file}:make", input_shape=SHAPE)
    before = encoder.source_digest()
    file.write_text(SOURCE + "\n# changed\n")
    assert encoder.source_digest() != before
    assert gf.FactoryEncoder("geoframe.models.cifar_resnet:resnet20", input_shape=SHAPE).source_digest() is None


def test_head_none_measures_the_output(file):
    assert gf.FactoryEncoder(f"{file}:headless", input_shape=SHAPE, head=None).build().head is None
    with pytest.raises(gf.EncoderRefused, match="head=None"):
        gf.FactoryEncoder(f"{file}:headless", input_shape=SHAPE).build()
    with pytest.raises(gf.BadInput, match="'auto'"):
        gf.FactoryEncoder(f"{file}:make", input_shape=SHAPE, head="fc")


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("{file}:mak", gf.UnknownName, "no function 'mak'; did you mean 'make'"),
        ("{file}:fails", gf.BadInput, "KeyError: 'lost'"),
        ("{file}:text", gf.BadInput, "returned a str"),
        ("{folder}/absent.py:make", gf.MissingFile, "no file"),
        ("no_such_package.nets:make", gf.BadInput, "can't import no_such_package"),
    ],
)
def test_one_line_errors(file, target, error, message):
    encoder = gf.FactoryEncoder(target.format(file=file, folder=file.parent), input_shape=SHAPE)
    with pytest.raises(error, match=message):
        encoder.build()


def test_syntax_error_in_the_file(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("def make(:\n")
    encoder = gf.FactoryEncoder(f"{path}:make", input_shape=SHAPE)
    for _ in range(2):  # a failed import leaves nothing behind
        with pytest.raises(gf.BadInput, match="SyntaxError"):
            encoder.check_source()


def test_what_is_not_a_target():
    for target in ("make", "pkg:", ":make"):
        with pytest.raises(gf.BadInput, match=r"package.module:function"):
            gf.FactoryEncoder(target, input_shape=SHAPE)
    with pytest.raises(gf.BadInput, match="needs input_shape"):
        gf.FactoryEncoder("a:b")


HELPED = """
from helper_of_factory import build
def make(weights=None):
    import late_helper_of_factory
    return build()
"""
HELPER = """
from torch import nn
def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(48, {width}), nn.ReLU(), nn.Linear({width}, 5))
"""


def helped(folder, width, **options):
    folder.mkdir(exist_ok=True)
    (folder / "nets.py").write_text(HELPED)
    (folder / "helper_of_factory.py").write_text(HELPER.format(width=width))
    (folder / "late_helper_of_factory.py").write_text("")
    return gf.FactoryEncoder(f"{folder}/nets.py:make", input_shape=SHAPE, **options)


def width(encoder):
    return encoder.build().head.in_features


def test_neighbours_can_be_imported_and_are_watched(tmp_path):
    encoder, other = helped(tmp_path / "a", 6), helped(tmp_path / "b", 7)
    assert (width(encoder), width(other), width(encoder)) == (6, 7, 6)
    assert set(encoder.source_files()) == {"nets.py", "helper_of_factory.py", "late_helper_of_factory.py"}
    before = encoder.source_digest()
    helped(tmp_path / "a", 8)
    assert encoder.source_digest() not in (None, before)
    assert (width(encoder), width(other)) == (8, 7)


def test_files_named_in_arguments_are_watched(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {"weights": "net.pth", "more": ["beside.pth", 3, "", "x" * 5000, "\0"], "none": "absent.pth"}
    encoder = gf.FactoryEncoder(f"{file}:make", kwargs=values, input_shape=SHAPE)
    alone = encoder.source_digest()
    (tmp_path / "net.pth").write_text("1")
    (file.parent / "beside.pth").write_text("1")
    assert set(encoder.source_files()) == {"nets.py", "net.pth", "beside.pth"}
    before = encoder.source_digest()
    (tmp_path / "net.pth").write_text("22")
    assert len({alone, before, encoder.source_digest()}) == 3
    of_module = gf.FactoryEncoder("geoframe.models.small:mlp", kwargs={"w": "net.pth"}, input_shape=SHAPE)
    assert set(of_module.source_files()) == {"net.pth"}
