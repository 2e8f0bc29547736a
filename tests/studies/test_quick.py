"""The whole of a study on tiny networks: training, measuring, tables, figures."""

from __future__ import annotations

import pytest

import geoframe as gf
from geoframe.training.published import digits_training, trained_and_random

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


class Tiny(gf.Study):
    match = "dataset"
    encoders = trained_and_random(digits_training("mlp", epochs=8))
    probesets = (gf.Digits(n=12),)
    probes = (
        gf.RayCoverageProbe(n_reference=8, step=0.1),
        gf.RayCoverageProbe(n_reference=8, step=0.1, classes="different"),
    )
    summaries = (gf.CoverageSummary(replicates=50), gf.CoverageTests())
    figures = (gf.CoverageDesign(), gf.CoverageByOutcome())


def test_training_raises_same_class_coverage_and_not_the_other(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    tree = gf.run(Tiny, out=tmp_path / "run")
    table = tree["coverage-summary"]["coverage"].sel(outcome="all", probeset="digits-test12")
    trained, random = table.sel(encoder="mlp-digits"), table.sel(encoder="mlp-digits-random")
    assert float(trained.sel(classes="same")) > 0.85
    assert float(trained.sel(classes="different")) < 0.1
    assert float(random.sel(classes="different")) > float(trained.sel(classes="different"))
    assert (tree["coverage-tests"]["p"].sel(contrast="trained: same − trained: different") < 0.01).all()


NETS = """
import torch

def net(activation):
    middle = {"relu": torch.nn.ReLU(), "gelu": torch.nn.GELU()}[activation]
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 16), middle, torch.nn.Linear(16, 10))
"""


def test_networks_of_one_factory_are_compared_with_their_own_random_copies(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mynets.py").write_text(NETS)

    def at(activation: str, step: str) -> gf.TrainedEncoder:
        model = gf.FactoryEncoder(f"{tmp_path}/mynets.py:net", kwargs={"activation": activation}, input_shape=(1, 8, 8))
        training = gf.Training(model=model, data=gf.Digits(split="train"), epochs=1)
        return gf.TrainedEncoder(training, step=step, name=f"{activation}-{step}")

    class Factories(gf.Study):
        encoders = (at("relu", "final"), at("gelu", "final"), at("gelu", "init"), at("relu", "init"))
        probesets = (gf.Digits(n=3),)
        probes = (gf.RayCoverageProbe(n_reference=4, step=0.5),)
        summaries = (gf.CoverageTests(different=""),)
        figures = (gf.CoverageDesign(different=""),)

    tree = gf.run(Factories, out=tmp_path / "run")
    assert tree["coverage"]["control"].values.tolist() == ["relu-init", "gelu-init", "", ""]
    tests = tree["coverage-tests"]
    pairs = zip(tests["encoder"].values, tests["control"].values, strict=True)
    assert list(pairs) == [("relu-final", "relu-init"), ("gelu-final", "gelu-init")]
    means = tree["coverage"]["coverage"].mean("image").isel(probeset=0)
    second = tests["second"].sel(contrast="trained: same − untrained: same").values
    assert second.tolist() == means.sel(encoder=["relu-init", "gelu-init"]).values.tolist()
