"""Long-tailed training, and images from elsewhere: the whole of both studies on tiny networks, and their plans."""

from __future__ import annotations

import pytest

import geoframe as gf
from geoframe.loading import find_study
from geoframe.plan import Plan
from geoframe.training.published import digits_training, trained_and_random

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

TAIL = gf.LongTail(gf.Digits(split="train"), 20)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))


def test_bands_are_those_of_the_training_images(tmp_path):
    class Tail(gf.Study):
        encoders = (gf.TrainedEncoder(digits_training("mlp", epochs=4).evolve(data=TAIL, variant="lt20")),)
        probesets = (gf.Digits(n=150),)
        probes = (gf.RayCoverageProbe(n_reference=2, step=0.25),)
        summaries = (gf.LongTailSummary(), gf.LongTailClaims())
        figures = (gf.LongTailFlows(), gf.LongTailCoverage())

    tree = gf.run(Tail, out=tmp_path / "run")
    table, correct = tree["long-tail"].isel(cell=0), tree["coverage"]["correct"]
    assert dict(zip(table["class"].values, table["class_counts"].values, strict=True)) == TAIL.class_counts()
    assert int(table["images"].sum()) == correct.size
    assert int(table["images"].sel(destination="correct").sum()) == int(correct.sum())
    low = [label for label, band in TAIL.bands().items() if band == "tail"]
    assert int(table["images"].sel(true="low").sum()) == int(tree["coverage"]["label"].isin(low).sum())
    assert table["encoder"].item() == "mlp-digits-lt20"
    assert {path.stem for path in (tmp_path / "run" / "figures").iterdir()} == {"long_tail_flows", "long_tail_coverage"}


def test_images_from_elsewhere(tmp_path):
    pytest.importorskip("skimage", reason="the photographs come with scikit-image")

    class Elsewhere(gf.Study):
        encoders = trained_and_random(digits_training("mlp", epochs=4))
        probesets = (gf.Digits(n=12), gf.Resized(gf.PhotoCrops(n=12)))
        probes = (gf.RayCoverageProbe(n_reference=2, step=0.25),)
        summaries = (gf.CoverageSummary(different="", by_outcome=False), gf.OodClaims())
        figures = (gf.OodCoverage(),)

    tree = gf.run(Elsewhere, out=tmp_path / "run")
    mean = 100 * tree["coverage"]["coverage"].isel(encoder=0, probeset=1).mean()
    assert float(tree["ood-claims"]["value"][0]) == pytest.approx(float(mean))
    assert tree["ood-claims"]["n"].values.tolist() == [12, 12, 12, 24, 12]
    assert [path.stem for path in (tmp_path / "run" / "figures").iterdir()] == ["ood_coverage"]


@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
def test_every_network_meets_its_own_data_and_others(preset):
    cells = Plan.of(find_study("ood").study.resolve(preset)).cells
    pairs = {(cell.encoder.coords["dataset"], cell.probeset.coords["dataset"]) for cell in cells}
    own, elsewhere = ("digits", "photo-crops") if preset == "quick" else ("MNIST", "CIFAR10")
    assert pairs == {(own, own), (own, elsewhere)}
    assert {cell.probeset.coords["split"] for cell in cells} == {"test"}


def test_the_papers_protocol():
    plan = Plan.of(find_study("long_tail").study.resolve("paper"))
    assert [cell.encoder.training.data.ratio for cell in plan.cells] == [6.5, 78.6]
    assert {cell.encoder.training.epochs for cell in plan.cells} == {30}
    assert {(cell.probeset.count(), cell.probe.n_reference, cell.probe.step) for cell in plan.cells} == {
        (10000, None, 0.01)
    }
    plan = Plan.of(find_study("ood").study.resolve("paper"))
    assert [cell.probeset.count() for cell in plan.cells if cell.probeset.coords["dataset"] == "CIFAR10"] == [500, 500]
