"""Every network of the papers, small: measured, searched along rays, trained, and read back from its checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.geometry.piecewise_line import logits
from geoframe.geometry.trace import pullbacks
from geoframe.models.published import cifar_model, digits_model, mnist_model
from geoframe.numerics import exact_numerics
from geoframe.piecewise import piecewise_network
from geoframe.training.cache import TrainingCache

TINY = {"depth": 2, "heads": 2}
MODELS = {
    "mlp-digits": digits_model("mlp", widths=(16, 8)),
    "cnn-digits": digits_model("cnn", widths=(4, 4), hidden=8),
    "mlp-mnist": mnist_model("mlp", widths=(16, 8)),
    "cnn-mnist": mnist_model("cnn", widths=(4, 4), hidden=8),
    "vit-mnist": mnist_model("vit", dim=16, **TINY),
    "mlp-cifar": cifar_model("mlp", widths=(16, 8)),
    "cnn-cifar": cifar_model("cnn", widths=(4, 4, 4), hidden=8),
    "vit-cifar": cifar_model("vit", dim=16, **TINY),
    "resnet18": cifar_model("resnet18", width=0.01),
    "resnet20": cifar_model("resnet20", width=0.01),
    "vgg16": cifar_model("vgg16", width=0.02),
    "wrn28_10": cifar_model("wrn28_10", width=0.01),
}
LAST = {"vit-mnist": "head", "vit-cifar": "head", "resnet18": "fc", "resnet20": "linear", "wrn28_10": "linear"}


def images(model: gf.FactoryEncoder, n: int = 2) -> gf.TensorSet:
    pixels = torch.rand(n, *model.input_shape, generator=torch.Generator().manual_seed(1))
    return gf.TensorSet(pixels, labels=[i % 4 for i in range(n)], name="toy")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=MODELS)
def model(request) -> gf.FactoryEncoder:
    return MODELS[request.param]


def test_it_is_split_and_measured(model):
    found = gf.measure(gf.RatioProbe(scales=(0.003, 1.0), directions=4, jvp_directions=4), model, images(model))
    assert found["valid"].all()
    assert float(abs(found["ratio"][:, 0] - 1).max()) < 0.2


def test_features_are_what_the_last_linear_layer_sees(model, request):
    network = model.build()
    assert isinstance(network.head, torch.nn.Linear)
    assert network.layer == LAST.get(request.node.callspec.params["model"], network.layer)
    x = torch.rand(2, *model.input_shape)
    whole = model.build_model().module.eval()
    with torch.no_grad():
        assert torch.equal(network.head(network.features(x)), whole(x))


def test_forward_and_reverse_derivatives_agree(model):
    encoder = model.load()
    x = images(model, 1).load(model.input_shape).pixels
    generator = torch.Generator().manual_seed(2)
    u = torch.randn(x.shape, generator=generator)
    with exact_numerics():
        features, tangent = encoder.pushforward(x, u)
        w = torch.randn(features.shape, generator=generator)
        gradient = pullbacks(encoder.features, x, w, 1)
    forward, backward = float((w * tangent).sum()), float((gradient.flatten() * u.flatten()).sum())
    assert forward == pytest.approx(backward, rel=1e-3, abs=1e-5)
    assert abs(forward) > 1e-4


def test_rays_are_searched_in_steps(model):
    probe = gf.GIProbe(along="random", n_directions=2, step=0.25, cap=1.0)
    assert np.isfinite(gf.measure(probe, model, images(model, 1))["gi"]).all()


@pytest.mark.parametrize("name", ["mlp-digits", "cnn-digits", "mlp-mnist", "cnn-mnist", "mlp-cifar", "cnn-cifar"])
def test_rays_are_searched_exactly(name):
    model, fields = MODELS[name], {"along": "random", "n_directions": 2, "cap": 0.5}
    grid, exact = (
        gf.measure(gf.GIProbe(search=search, step=0.0625, **fields), model, images(model, 1))["gi"]
        for search in ("grid", "exact")
    )
    assert (abs(exact - grid) <= 0.0625 + 1e-6).all()


@pytest.mark.parametrize("name", MODELS)
def test_chains_are_read_as_piecewise_linear_and_others_refused(name):
    encoder = MODELS[name].load()
    if not name.startswith(("mlp", "cnn", "vgg")):
        with pytest.raises(gf.EncoderRefused, match="use search='grid'"):
            piecewise_network(encoder)
        return
    x = images(MODELS[name]).load(encoder.input_shape).pixels
    read = logits(piecewise_network(encoder), x.double())
    with torch.no_grad():
        assert torch.allclose(read.float(), encoder.logits(x), rtol=1e-3, atol=1e-5)


def test_it_is_trained_and_read_back(model):
    training = gf.Training(
        model=model, data=images(model, 8), epochs=4, checkpoints=(1,), lr=0.02, momentum=0.9, batch=4, name="t"
    )
    trained, initial = gf.TrainedEncoder(training), gf.TrainedEncoder(training, step="init")
    after, before = trained.load(), initial.load()
    first, last = TrainingCache(training).log()["checkpoints"]
    assert last["loss"] < first["loss"]
    assert after.digest != before.digest
    assert gf.TrainedEncoder(training).load().digest == after.digest
    assert trained.build().source.endswith("epoch 4")
