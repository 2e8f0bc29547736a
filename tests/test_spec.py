"""Keys: what changes a number changes the key, and nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import geoframe as gf
from geoframe.errors import BadInput, did_you_mean
from geoframe.spec import canonical, digest, later


@attrs.frozen(kw_only=True)
class Toy(gf.Spec):
    """A spec with one field of everything."""

    number: float = 1.0
    inner: Any = None
    note: str = gf.unkeyed(default="")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(value=plain)
def test_equal_values_have_equal_digests(value: Any) -> None:
    assert digest(value) == digest(value)


@given(one=st.floats(), other=st.floats())
def test_floats_are_told_apart_to_the_last_bit(one: float, other: float) -> None:
    same = one.hex() == other.hex()
    assert (Toy(number=one).key == Toy(number=other).key) == same


def test_names_and_unkeyed_fields_stay_out() -> None:
    assert Toy().key == Toy(name="a", note="b").key


def test_a_later_field_enters_the_key_once_it_differs_from_its_default() -> None:
    @attrs.frozen(kw_only=True)
    class Grown(gf.Spec):
        number: float = 1.0
        more: int = later(default=3)
        spec: gf.Spec = later(default=Toy())

    assert set(Grown().identity()["fields"]) == set(Grown(more=3, spec=Toy()).identity()["fields"]) == {"number"}
    assert set(Grown(more=4).identity()["fields"]) == {"number", "more"}
    assert len({Grown().key, Grown(more=4).key, Grown(spec=Toy(number=2.0)).key}) == 3


@pytest.mark.parametrize(
    "inner",
    [1, 1.5, True, "x", b"x", (1, 2), {"a": 1}, Path("a"), np.arange(3), torch.arange(4), Toy(number=2.0), {1, 2}],
)
def test_every_kind_of_field_counts(inner: Any) -> None:
    assert Toy(inner=inner).key != Toy().key
    assert Toy(inner=inner).key == Toy(inner=inner).key


def test_arrays_count_by_dtype_shape_and_bytes() -> None:
    arrays = [np.zeros(4), np.zeros(4, np.float32), np.zeros((2, 2)), np.ones(4)]
    assert len({Toy(inner=a).key for a in arrays}) == 4
    assert Toy(inner=torch.zeros(4)).key == Toy(inner=np.zeros(4, np.float32)).key


def test_nested_specs_count_by_their_key_not_their_name() -> None:
    assert Toy(inner=Toy(name="a")).key == Toy(inner=Toy(name="b")).key
    assert Toy(inner=Toy(number=3.0)).key != Toy(inner=Toy()).key


def test_type_and_version_count() -> None:
    @attrs.frozen(kw_only=True)
    class Newer(Toy):
        """The same fields under another name and version."""

        version = "2"

    keys = {Toy().key, Newer().key}
    Newer.version = "3"
    assert len(keys | {Newer().key}) == 3


def test_what_cannot_be_keyed_is_an_error_that_names_the_field() -> None:
    with pytest.raises(BadInput, match=r"Toy\.inner is a object.*can't be keyed"):
        _ = Toy(inner=object()).key
    with pytest.raises(BadInput, match=r"Toy\.inner\['f'\]"):
        canonical(Toy(inner={"f": len}))


def test_evolve_suggests_near_fields() -> None:
    with pytest.raises(BadInput, match="no field 'nubmer'; did you mean 'number'"):
        Toy().evolve(nubmer=2)


def test_suggestions() -> None:
    assert did_you_mean("resnet5", ["resnet50", "vgg16"]) == "; did you mean 'resnet50'?"
    assert did_you_mean("zzz", ["a", "b"]) == "; known: a, b"


def test_default_names_are_those_of_the_class_in_words() -> None:
    @attrs.frozen(kw_only=True)
    class LocalFeatureNormProbe(gf.Spec):
        """Named by its class."""

    assert LocalFeatureNormProbe().label == "local-feature-norm"
    assert Toy().label == "toy"
    assert Toy(name="mine").label == "mine"


def test_a_misspelt_public_name_is_answered_with_near_ones() -> None:
    with pytest.raises(AttributeError, match="no attribute 'RatioProb'; did you mean 'RatioProbe'"):
        _ = gf.RatioProb


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda: gf.RatioProbe(direction=64), "RatioProbe has no field 'direction'; did you mean 'directions'"),
        (lambda: gf.RatioProbe(64), "RatioProbe: .*positional"),
        (lambda: gf.RatioProbe(directions=7), "RatioProbe: directions must be an even number"),
        (lambda: gf.RatioProbe(jvp_directions=1), "RatioProbe: 'jvp_directions' must be >= 2"),
        (lambda: gf.GIProbe(step=0), "GIProbe: step and cap must be positive"),
        (lambda: gf.GIProbe(cap="a"), "GIProbe: cap='a': could not convert string to float"),
        (lambda: gf.RatioProbe(scales="abc"), "RatioProbe: scales='abc': "),
        (lambda: gf.TensorSet(torch.rand(1, 1, 2, 2), ids=5), "TensorSet: ids=5: "),
        (lambda: gf.FactoryEncoder("a:b", input_shape=(1, 2)), r"FactoryEncoder: input_shape=\(1, 2\): shape"),
        (lambda: gf.TimmEncoder("resnet18", pretraned=False), "did you mean 'pretrained'"),
    ],
)
def test_a_spec_that_cannot_be_made_is_refused_in_one_line(make: Any, cause: str) -> None:
    with pytest.raises(gf.GeoframeError, match=cause) as caught:
        make()
    assert "\n" not in str(caught.value)
