from __future__ import annotations

import attrs
import numpy as np
import pytest

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.study import Study
from tests.doubles import Dots, Norm, TinyEncoder


@attrs.frozen(kw_only=True)
class Mixed(gf.ProbeSet):
    count_: int | None = None
    level: float = 0.5
    word: str = ""
    flag: bool = False
    either: int | str = 0
    free: tuple[int, ...] = ()
    anything: object = None


@pytest.mark.parametrize(
    "fields",
    [
        {"count_": 3},
        {"count_": np.int64(3)},
        {"level": 1},
        {"level": np.float32(0.5)},
        {"either": "x"},
        {"free": "not checked"},
        {"anything": 3},
    ],
)
def test_what_an_annotation_allows(fields):
    assert Mixed(**fields).evolve(name="m").label == "m"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count_": "3"}, "Mixed: count_='3' should be a whole number or None"),
        ({"count_": True}, "count_=True should be a whole number or None"),
        ({"level": None}, "level=None should be a number"),
        ({"word": 3}, "word=3 should be text"),
        ({"flag": 1}, "flag=1 should be True or False"),
        ({"either": 0.5}, "either=0.5 should be a whole number or text"),
        ({"name": 3}, "name=3 should be text or None"),
    ],
)
def test_what_it_does_not(fields, message):
    with pytest.raises(BadInput, match=message):
        Mixed(**fields)


class Small(Study):
    encoders = (TinyEncoder(name="a"),)
    probesets = (Dots(name="d"),)
    probes = (Norm(name="norm"),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("probes.norm.name=3", "--set: probes.norm.name: Norm: name=3 should be text or None"),
        ("encoders.a.training=3", "--set: encoders.a.training: TinyEncoder: training=3 should be text"),
        ("encoders.a.input_shape=3", "--set: encoders.a.input_shape: TinyEncoder: input_shape=3: shape 3 should be"),
        ("encoders.a.mean=grey", "--set: encoders.a.mean: TinyEncoder: mean='grey' should be a number"),
    ],
)
def test_on_the_command_line(change, message):
    with pytest.raises(BadInput, match=message):
        Small.resolve(set=[change])


@pytest.mark.parametrize("shape", [3, (3, 8), (3, -8, 8), (3, 8.0, 8), "abc", (1, 2, 3, 4)])
def test_shapes(shape):
    for make in (lambda: TinyEncoder(input_shape=shape), lambda: gf.NoiseSet(n=1, shape=shape)):
        with pytest.raises(BadInput, match=r"should be \(channel, height, width\)"):
            make()


@pytest.mark.parametrize("value", [0.5, (0.1, 0.2, 0.3), [1, 2, 3], np.array([0.1, 0.2, 0.3])])
def test_normalisations(value):
    assert TinyEncoder(mean=value, std=value).key


@pytest.mark.parametrize("value", ["a", ("a",), float("nan"), {}])
def test_bad_normalisations(value):
    with pytest.raises(BadInput, match=r"mean=.* should be a number, or one for each channel"):
        TinyEncoder(mean=value)
