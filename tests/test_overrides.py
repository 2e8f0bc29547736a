from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.overrides import Override, apply, ordered, parse, short
from tests.doubles import Dots, Faded, Norm, TinyEncoder

FIELDS = {
    "encoders": (TinyEncoder(name="a"), TinyEncoder(name="a.b"), TinyEncoder(name="c")),
    "probesets": (Dots(name="dots"), Faded(of=Dots(), name="faded")),
    "probes": (Norm(),),
}


def changed(text):
    return apply(FIELDS, parse(text), "--set")


@pytest.mark.parametrize(
    ("text", "value"),
    [("x.y=1", 1), ("x.y=1e-3", 1e-3), ("x.y=1,2", (1, 2)), ("x.y=", ""), ("x.y=abc", "abc"), ("x.y=a=b", "a=b"),
     ("x.y=None", None), ("x.y='1'", "1")],
)  # fmt: skip
def test_values_are_literals_or_text(text, value):
    assert parse(text) == Override("x.y", value)


@given(
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.text(),
        st.tuples(st.integers()),
    )
)
def test_repr_of_any_literal_comes_back(value):
    assert parse(f"a.b={value!r}").value == value


def outcome(text):
    try:
        return apply(FIELDS, parse(text), "--set")
    except BadInput as error:
        return str(error)


@given(st.text())
def test_any_text_is_read_or_refused_in_one_line(text):
    found = outcome(text)
    assert "\n" not in found if isinstance(found, str) else set(found[0]) == set(FIELDS)


def test_labels_may_hold_dots_the_longest_wins():
    fields, changes = changed("encoders.a.b.seed=5")
    assert [encoder.seed for encoder in fields["encoders"]] == [0, 5, 0]
    assert changes == ["encoders.a.b.seed: 0 → 5"]
    assert FIELDS["encoders"][1].seed == 0


def test_patterns_reach_every_spec_that_has_the_field_also_inside_wrappers():
    fields, changes = changed("probesets.*.n=7")
    assert [probeset.count() for probeset in fields["probesets"]] == [7, 7]
    assert len(changes) == 2
    fields, changes = changed("probesets.*.by=0.1")
    assert changes == ["probesets.faded.by: 0.5 → 0.1"]


def test_nested_fields():
    for path in ("probesets.faded.of.n", "probesets.faded.n"):
        fields, _ = changed(f"{path}=2")
        assert fields["probesets"][1].of.n == 2


def test_a_subset_by_names_and_patterns():
    assert [spec.label for spec in changed("encoders=c,a")[0]["encoders"]] == ["c", "a"]
    assert [spec.label for spec in changed("encoders=a*")[0]["encoders"]] == ["a", "a.b"]
    assert changed("probes=")[0]["probes"] == ()


def test_whole_fields_come_first():
    overrides = [Override("probes.norm.repeats", 2), Override("probes", (Norm(),))]
    assert [override.path for override in ordered(overrides)] == ["probes", "probes.norm.repeats"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("probes", "not of the form PATH=VALUE"),
        ("=3", "not of the form PATH=VALUE"),
        ("probe.norm.repeats=3", "no field 'probe'; did you mean 'probes'"),
        ("probes.nrom.repeats=3", "no probe is called 'nrom'; did you mean 'norm'"),
        ("probes.norm.repaets=3", "Norm has no field 'repaets'; did you mean 'repeats'"),
        ("probes.*.repaets=3", "Norm has no field 'repaets'; did you mean 'repeats'"),
        ("probes.norm=3", "names no field"),
        ("probes.no*=3", "names no field"),
        ("probes.norm.repeats.x=3", "field 'repeats' of Norm is 1, which has no fields"),
        ("probes.norm.repeats=many", "'many' is not a number"),
        ("probes.norm.repeats=True", "True is not a number"),
        ("probes.norm.repeats=0", "'repeats' must be >= 1: 0"),
        ("probes.norm.repeats=1.5", "'repeats' must be"),
        ("encoders=x", "no encoder is called 'x'"),
    ],
)
def test_what_is_wrong_is_said_at_the_level_that_failed(text, message):
    with pytest.raises(BadInput, match=message) as error:
        changed(text)
    assert "\n" not in str(error.value)
    assert "--set" in str(error.value)


def test_short_values():
    assert short((1, 2)) == "(1, 2)"
    assert short(tuple(range(17))) == "17 values (0 … 16)"
    assert short(FIELDS["probes"]) == "1 (norm)"
    assert short("x" * 100).endswith("…")


def test_a_name_made_of_the_value_is_told_as_it_was_given():
    from geoframe.probesets.digits import Digits

    fields = {"probesets": (Digits(n=40),)}
    _, changes = apply(fields, parse("probesets.digits-test40.n=10"), "--set")
    assert changes == ["probesets.digits-test40.n: 40 → 10"]


def test_patterns_may_hold_dots_too():
    fields, _ = changed("encoders.*.b.seed=5")
    assert [encoder.seed for encoder in fields["encoders"]] == [0, 5, 0]


def test_what_a_field_takes_is_what_its_annotation_says():
    training = gf.Training(
        model=gf.FactoryEncoder("nets.py:net", input_shape=(1, 8, 8)), data=gf.Digits(), checkpoints=(1,)
    )
    encoders = (gf.TrainedEncoder(training, step=1, name="one"),)
    fields, _ = apply({"encoders": encoders}, parse("encoders.one.step=final"), "--set")
    assert fields["encoders"][0].step == "final"
    with pytest.raises(BadInput, match="'slow' is not a number"):
        apply({"encoders": encoders}, parse("encoders.one.training.lr=slow"), "--set")
    with pytest.raises(BadInput, match="checkpoints='foo' should be numbers of epochs"):
        apply({"encoders": encoders}, parse("encoders.one.training.checkpoints=foo"), "--set")


def test_two_encoders_are_not_made_one():
    several = {"encoders": (TinyEncoder(name="seed0"), TinyEncoder(name="seed1", seed=1), TinyEncoder(name="same"))}
    with pytest.raises(BadInput, match="makes 'seed0' and 'seed1' the same encoder"):
        apply(several, parse("encoders.*.seed=3"), "--set")
    assert apply(several, parse("encoders.seed1.seed=2"), "--set")[1], "two that were the same before may stay so"
