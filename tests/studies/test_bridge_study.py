"""The bridge study: its path from networks to figures, and what its presets plan."""

from __future__ import annotations

import numpy as np
import pytest

import geoframe as gf
from geoframe.loading import find_study
from geoframe.plan import Plan
from geoframe.training.published import photo_training
from geoframe.training.states import network_states

pytest.importorskip("sklearn", reason="the photographs come with scikit-learn")
pytest.importorskip("skimage", reason="the photographs come with scikit-image")

TINY = {"width": 0.125, "n": 24, "batch": 12, "epochs": 2}


class Tiny(gf.Study):
    encoders = network_states(
        photo_training("resnet20", **TINY), photo_training("resnet20", "random-labels", **TINY), seeds=(0, 1), early=1
    )
    probesets = (gf.PhotoCrops(n=3),)
    probes = (
        gf.ResponseProbe(scales=(0.01, 1.0, 10.0, 30.0, 100.0), directions=4),
        gf.IsotropicGIProbe(n_directions=2, per_decade=3, halvings=1),
        gf.LocalGeometryProbe(directions=2),
    )
    summaries = (gf.BridgeSummary(replicates=10),)
    figures = (gf.BridgeScatter(), gf.BridgeForest())


def test_from_networks_to_tables(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    tree = gf.run(Tiny, out=tmp_path / "run")
    ds = tree["bridge"].to_dataset()
    assert ds["state"].values.tolist() == ["init", "true early", "true late", "random early", "random late"]
    assert (ds["images"] == 6).all()
    assert ((ds["peaks"] + ds["at_end"] + ds["absent"]) == 6).all()
    assert np.isfinite(ds["train_accuracy"]).all()
    assert all(text.startswith("inconclusive") for text in ds["verdict"].values.ravel())


def test_initial_weights_are_measured_once_a_seed() -> None:
    states = network_states(
        photo_training("resnet20"), photo_training("resnet20", "random-labels"), seeds=(3, 4), early=1
    )
    assert [e.label for e in states[:5]] == [
        "resnet20-photo-crops-seed3-init",
        "resnet20-photo-crops-seed3-early",
        "resnet20-photo-crops-seed3-late",
        "resnet20-photo-crops-random-labels-seed3-early",
        "resnet20-photo-crops-random-labels-seed3-late",
    ]
    assert [e.epoch for e in states[:5]] == [0, 1, 10, 1, 10]
    assert {e.training.seed for e in states[5:]} == {4}


@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
def test_presets_plan_both_labels_over_training(preset: str) -> None:
    plan = Plan.of(find_study("bridge").study.resolve(preset))
    encoders = plan.study.encoders
    assert {(e.training.variant, e.epoch > 0) for e in encoders} == {
        ("", False),
        ("", True),
        ("random-labels", True),
    }
    seeds = {e.training.seed for e in encoders}
    assert len(seeds) >= (1 if preset == "quick" else 2)
    assert len(encoders) == 5 * len(seeds)
    (response,) = [p for p in plan.study.probes if isinstance(p, gf.ResponseProbe)]
    assert len(response.scales) >= 33
    for cell in plan.cells:
        assert cell.encoder.coords["dataset"] == cell.probeset.coords["dataset"]
        assert cell.probeset.coords["split"] == "test"
    if preset != "paper":
        assert all(figure.note for figure in plan.study.figures)
        assert all(summary.note for summary in plan.study.summaries)


def test_smoke_runs_every_row(tmp_path, monkeypatch) -> None:
    pytest.importorskip("foolbox", reason="attacks are foolbox's")
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "none"))
    two = "encoders=resnet18-cifar10-seed0-init,resnet18-cifar10-random-labels-seed0-late"
    tree = gf.run("bridge", out=tmp_path / "run", preset="smoke", set=[two])
    assert np.isfinite(tree["response"]["response"]).any(("image", "output", "scale")).all()
    assert {"isotropic-gi", "local-geometry", "boundary-distance", "tube", "bridge"} <= set(tree.children)
