"""The studies of how training makes the bump: what their presets plan, and all of it on tiny networks."""

from __future__ import annotations

import pytest

import geoframe as gf
from geoframe.errors import MissingFile
from geoframe.loading import find_study
from geoframe.plan import Plan
from geoframe.training.published import photo_training, through_training

PRESETS = ("quick", "small", "paper")


def planned(study: str, preset: str) -> Plan:
    return Plan.of(find_study(study).study.resolve(preset))


@pytest.mark.parametrize("preset", PRESETS)
def test_formation_begins_with_initial_weights_and_ends_with_the_last_step(preset):
    plan = planned("formation", preset)
    courses: dict[str, list[gf.TrainedEncoder]] = {}
    for encoder in plan.study.encoders:
        courses.setdefault(encoder.training.key, []).append(encoder)
    assert len(courses) == {"quick": 1, "small": 2, "paper": 3}[preset]
    for encoders in courses.values():
        steps = [encoder.steps for encoder in encoders]
        assert steps == sorted(set(steps))
        assert (steps[0], steps[-1]) == (0, encoders[0].training.steps)
        assert 7 <= len(steps) <= 12
    assert [s.coords["split"] for s in plan.study.probesets] == ["test", "train"]


def test_formation_in_the_paper_has_its_networks_steps_and_protocol():
    study = planned("formation", "paper").study
    assert {encoder.training.architecture for encoder in study.encoders} == {"resnet18", "vgg16", "wrn28_10"}
    assert {encoder.training.steps for encoder in study.encoders} == {39100}
    assert {len(encoder.training.checkpoint_steps) for encoder in study.encoders} == {20}
    assert study.probes[0].key == gf.RatioProbe(scales=gf.CIFAR_SCALES).key


@pytest.mark.parametrize("preset", PRESETS)
def test_controls_share_initial_weights_and_images(preset):
    study = planned("controls", preset).study
    *trained, initial = study.encoders
    variants = [encoder.coords["variant"] for encoder in trained]
    assert variants == ["", "blur1", "blur2", "random-labels", "random-data"]
    assert {encoder.training.seeded_model().key for encoder in trained} == {initial.training.seeded_model().key}
    assert {encoder.training.steps for encoder in trained} == {trained[0].training.steps}
    assert len(study.probesets) == 6
    test, _, *blurs = study.probesets[:4]
    assert {blur.of.key for blur in blurs} == {test.key}


@pytest.mark.parametrize("study", ["formation", "controls"])
@pytest.mark.parametrize("preset", ["quick", "small"])
def test_training_images_that_are_measured_were_trained_on(study, preset):
    plan = planned(study, preset).study
    try:
        trained = plan.encoders[0].training.data.listing().ids
    except MissingFile:
        pytest.skip("neither CIFAR-10 nor its stand-in is in $GEOFRAME_DATA")
    assert set(plan.probesets[1].listing().ids) < set(trained)


class TinyFormation(gf.Study):
    encoders = through_training(photo_training("cnn", width=1, n=24, epochs=2, batch=12), (1,))
    probesets = (gf.PhotoCrops(n=3),)
    probes = (gf.RatioProbe(scales=gf.CIFAR_SCALES[::4], directions=4, jvp_directions=2),)
    summaries = (gf.FormationSummary(replicates=50), gf.FormationClaims(replicates=50))
    figures = (gf.FormationProfiles(),)


class TinyControls(TinyFormation):
    encoders = tuple(
        gf.TrainedEncoder(photo_training("cnn", treatment, width=1, n=24, epochs=1, batch=12))
        for treatment in ("clean", "blur1", "random-labels", "random-data")
    )
    probesets = tuple(gf.photo_evaluation_sets(n=2).values())
    summaries = (gf.BlurClaims(replicates=50), gf.RandomisedClaims(replicates=50))
    figures = (gf.ControlProfiles(blurs=True, replicates=20), gf.ControlProfiles(treatments=("random-labels",)))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))


def test_all_of_formation_on_a_tiny_network(tmp_path):
    tree = gf.run(TinyFormation, out=tmp_path / "run")
    assert tree["formation"]["step"].values.tolist() == [0, 1, 4]
    assert tree["formation"]["test_accuracy"].notnull().all()
    assert tree["formation-claims"]["claim"].values.tolist()[0] == "no bump at first"
    assert [path.name for path in (tmp_path / "run" / "figures").iterdir()] == ["fig1c_formation.png"]


def test_all_of_the_controls_on_tiny_networks(tmp_path):
    tree = gf.run(TinyControls, out=tmp_path / "run")
    blur = tree["blur-claims"]["subject"].values.tolist()
    assert blur[:3] == ["clean: σ 0, 1", "clean: σ 1, 2", "blur1: σ 0, 1"]
    subjects = tree["randomised-claims"]["subject"].values.tolist()
    assert {"labels", "data", "clean, photo2", "labels, photo2b2", "data, noise2train"} <= set(subjects)
    assert sorted(path.name for path in (tmp_path / "run" / "figures").iterdir()) == [
        "fig2b_blur.png",
        "fig2c_controls.png",
    ]
