"""Preset smoke of each study that trains: the real code path of every row, without data or download."""

from __future__ import annotations

from importlib.util import find_spec

import attrs
import numpy as np
import pytest

import geoframe as gf
from geoframe.files import read_json

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
FOOLBOX = pytest.mark.skipif(find_spec("foolbox") is None, reason="attacks need foolbox: geoframe[attacks]")


OF_CLASSES = ("long_tail", "ood", "random_labels")  # figures of whole sets: one image shows nothing
OF_FILES = ("adversarial",)  # networks whose weights are files
FEW = {  # of many seeds, epochs and radii, which smoke makes the same network of
    "adversarial": "encoders=*_eps0,*_eps3",
    "expansion": "encoders=*-seed0-random,*-seed0-epoch1,*-seed0",
    "interventions": "encoders=*-seed0-epoch1,*-seed0-epoch2",
    "seeds": "encoders=*-seed0*,*-adam,*-rmsprop",
}


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """A cache of this test's own, and no data."""
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("study", "node", "variable"),
    [
        ("coverage", "coverage-different", "coverage"),
        ("tube", "tube", "radius"),
        ("gi_spectrum", "linearity", "alpha"),
        ("bounds", "bounds", "gi"),
        ("formation", "ratio", "ratio"),
        ("controls", "ratio", "ratio"),
        ("expansion", "gi-random", "gi"),
        ("seeds", "coverage", "coverage"),
        pytest.param("attacks", "coverage-pgd", "coverage", marks=FOOLBOX),
        ("long_tail", "coverage", "coverage"),
        ("ood", "coverage", "coverage"),
        ("adversarial", "ratio", "ratio"),
        ("interventions", "gi", "gi"),
        ("random_labels", "coverage", "predicted"),  # smoke has no reference image of a class above 9
    ],
)
def test_smoke(study, node, variable, tmp_path):
    few = [FEW[study]] if study in FEW else []
    tree = gf.run(study, out=tmp_path / "run", preset="smoke", set=few)
    values = tree[node][variable]
    assert np.isfinite(values).any(values.dims[2:]).all(), "every encoder is measured"
    assert f"{tree.attrs['study']}" == study
    assert list((tmp_path / "run" / "figures").glob("*.png")) or study in OF_CLASSES
    logs = [read_json(path) for path in (tmp_path / "cache").rglob("training.json")]
    assert logs or study in OF_FILES
    assert [[row["step"] for row in log["checkpoints"]] for log in logs] == [[2]] * len(logs)


@pytest.mark.parametrize("preset", ["quick", "small", "paper"])
@pytest.mark.parametrize("study", ["coverage", "tube", "gi_spectrum", "bounds", "long_tail"])
def test_classifiers_meet_their_own_test_images_only(study, preset):
    from geoframe.loading import find_study
    from geoframe.plan import Plan

    plan = Plan.of(find_study(study).study.resolve(preset))
    for cell in plan.cells:
        assert cell.encoder.coords["dataset"] == cell.probeset.coords["dataset"]
        assert cell.encoder.training.data.coords["split"] == "train"
        assert cell.probeset.coords["split"] == "test"
    assert {cell.encoder.label for cell in plan.cells} == {encoder.label for encoder in plan.study.encoders}


@pytest.mark.parametrize(("preset", "said"), [("smoke", True), ("tiny", False)])
def test_a_smoke_run_says_once_under_its_tables_that_it_is_no_result(preset, said, tmp_path):
    from geoframe.loading import find_study
    from geoframe.plan import Plan
    from geoframe.progress import Progress
    from geoframe.runner import Options, execute

    tube = find_study("tube")
    plan = Plan.of(attrs.evolve(tube.study.resolve("smoke"), preset=preset))
    report = execute(tube, plan, tmp_path / "run", Options(device="cpu"), Progress())
    captions = [table.caption for table in report.tables]
    assert [caption.endswith("the fewest directions)") for caption in captions] == [False, said]
    assert sum("smoke: not results" in caption for caption in captions) == said
