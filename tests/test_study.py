from __future__ import annotations

import pytest

from geoframe.errors import BadInput, UnknownName
from geoframe.study import Study
from geoframe.summaries.bump import BumpSummary
from tests.doubles import BrokenEncoder, Dots, Faded, Norm, TinyEncoder

ENCODERS = (TinyEncoder(name="a", seed=1, training="long"), TinyEncoder(name="b.v2"))


class Small(Study):
    """What it shows.

    More text.
    """

    encoders = ENCODERS
    probesets = (Dots(name="dots"), Faded(of=Dots(seed=4), name="faded"))
    probes = (Norm(),)
    presets = {"quick": {"probes.norm.repeats": 2, "encoders": ENCODERS[:1]}}


def test_name_and_title_come_from_the_class():
    assert (Small.name, Small.title) == ("small", "What it shows.")

    class NoiseControl(Small):
        pass

    assert (NoiseControl.name, NoiseControl.title) == ("noise-control", "")


def test_quick_is_the_default_and_says_what_it_changes():
    study = Small.resolve()
    assert study.preset == "quick"
    assert study.encoders == ENCODERS[:1]
    assert study.probes[0].repeats == 2
    assert study.changes == ("encoders: 2 (a, b.v2) → 1 (a)", "probes.norm.repeats: 1 → 2")


def test_without_quick_the_class_body_runs():
    class Plain(Study):
        encoders, probesets, probes = ENCODERS, (Dots(),), (Norm(),)

    study = Plain.resolve()
    assert (study.preset, study.changes, study.encoders) == ("paper", (), ENCODERS)


def test_presets_are_merged_with_those_of_the_bases():
    class Child(Small):
        presets = {"quick": {"probes.norm.repeats": 3}, "tiny": {"probesets.*.n": 1}}

    study = Child.resolve("quick")
    assert study.probes[0].repeats == 3
    assert study.encoders == ENCODERS[:1]
    assert [probeset.count() for probeset in Child.resolve("tiny").probesets] == [1, 1]
    assert Small.preset_names() == ["paper", "quick", "smoke"]


def test_set_comes_after_the_preset():
    study = Small.resolve("quick", ["probes.norm.repeats=5", "encoders.a.seed=9"])
    assert (study.probes[0].repeats, study.encoders[0].seed) == (5, 9)


def test_smoke_is_one_photo_random_weights_and_the_smallest_probe():
    study = Small.resolve("smoke")
    assert [encoder.label for encoder in study.encoders] == ["a", "b.v2"]
    assert study.encoders[0].training == "none"
    assert [probeset.count() for probeset in study.probesets] == [1]
    assert study.probes[0].scales == (1.0,)
    assert any("random weights" in change for change in study.changes)


def test_smoke_takes_the_studys_own_overrides_on_top():
    class Child(Small):
        presets = {"smoke": {"probes.norm.repeats": 7}}

    study = Child.resolve("smoke")
    assert (study.probes[0].repeats, study.probes[0].scales) == (7, (1.0,))


def test_misspelt_field_is_refused_with_a_suggestion():
    with pytest.raises(
        BadInput, match=r"study Typo in .*test_study.py: no field 'enconders'; did you mean 'encoders'\?"
    ):

        class Typo(Study):
            enconders = ENCODERS


def test_annotation_without_value_is_refused():
    with pytest.raises(BadInput, match="'encoders' is annotated but has no value"):

        class Bare(Study):
            encoders: tuple


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoders": ENCODERS[0]}, r"must be a tuple, not TinyEncoder; write encoders = \(…,\)"),
        ({"encoders": (TinyEncoder,)}, r"holds the class TinyEncoder: write TinyEncoder\(…\)"),
        ({"encoders": (Norm(),)}, "which is not an Encoder"),
        ({"figures": (3,)}, "field 'figures' holds 3"),
        ({"encoders": (ENCODERS[0], ENCODERS[0])}, "two encoders are called 'a'"),
        ({"probes": (Norm(), Norm(repeats=2))}, "two probes are called 'norm': give one"),
        ({"summaries": (BumpSummary(), BumpSummary())}, "two summaries are called 'bump'"),
        (
            {"probes": (Norm(name="bump"),), "summaries": (BumpSummary(),)},
            "a probe and a summary are called 'bump'",
        ),
        ({"probes": (Norm(name="x/y"),)}, "names a node"),
        ({"name": "a/b"}, "names a folder"),
        ({"title": 3}, "field 'title' must be a string"),
        ({"presets": {"quick": 3}}, "presets must map names to mappings"),
        ({"presets": {"paper": {}}}, "'paper' is the class body"),
        ({"presets": {"quick": {"probe.norm.repeats": 1}}}, "preset 'quick': no field 'probe'; did you mean 'probes'"),
    ],
)
def test_wrong_values_are_refused(fields, message):
    with pytest.raises(BadInput, match=message) as error:
        type("Wrong", (Study,), fields)
    assert "\n" not in str(error.value)


def test_a_study_with_nothing_to_measure_is_refused():
    class Empty(Study):
        encoders, probes = ENCODERS, (Norm(),)

    with pytest.raises(BadInput, match="has no probesets: nothing to measure"):
        Empty.resolve()


def test_labels_must_stay_distinct_after_overrides():
    with pytest.raises(BadInput, match="two encoders are called 'a'"):
        Small.resolve("paper", ["encoders.*.name=a"])


def test_unknown_preset_suggests_near_ones():
    with pytest.raises(UnknownName, match=r"no preset 'quikc'; did you mean 'quick'\?"):
        Small.resolve("quikc")


def test_subclass_of_a_double_keeps_its_own_type_in_the_key():
    assert BrokenEncoder().key != TinyEncoder().key
