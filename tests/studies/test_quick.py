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
