from __future__ import annotations

from types import SimpleNamespace

import attrs
import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.output_checks import check_outputs
from geoframe.study import Study
from tests.doubles import Dots, Norm, TinyEncoder


def probe(outputs, per="image"):
    return SimpleNamespace(declared=lambda: outputs, per=per)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({}, "declares no outputs"),
        ({"a/b": gf.Output()}, "without slashes"),
        ({"": gf.Output()}, "without slashes"),
        ({"encoder": gf.Output()}, "'encoder' has the name of a coordinate of all results"),
        ({"label": gf.Output()}, "coordinate of all results"),
        ({"ray": gf.Output(("ray",))}, r"'ray' has the name of a dimension.*Output\(\('ray',\), shared=True\)"),
        ({"ray": gf.Output(("ray", "point"), shared=True)}, "'ray' has the name of a dimension"),
        ({"x": gf.Output(("image",))}, "can't have a dimension 'image'"),
        ({"x": gf.Output(("probeset",))}, "can't have a dimension 'probeset'"),
        ({"x": gf.Output(("ray", "ray"))}, "can't have a dimension 'ray'"),
        ({"x": gf.Output(dtype="floaty")}, "dtype 'floaty': use float64"),
        ({"x": gf.Output(dtype="datetime64[ns]")}, "use float64"),
    ],
)
def test_what_results_cannot_hold(outputs, message):
    with pytest.raises(BadInput, match=message):
        check_outputs(probe(outputs))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool", "str", "complex64"])
def test_what_they_can(dtype):
    check_outputs(probe({"x": gf.Output(("ray", "point"), dtype=dtype)}))
    check_outputs(probe({"x": gf.Output(("image", "ray"), dtype=dtype)}, per="set"))
    check_outputs(probe({"x": gf.Output(("ray",)), "ray": gf.Output(("ray",), dtype=dtype, shared=True)}))


@attrs.frozen(kw_only=True)
class Clashing(Norm):
    outputs = {"encoder": gf.Output()}


def test_a_study_refuses_it_before_anything_is_computed():
    study = type("Small", (Study,), {"encoders": (TinyEncoder(),), "probesets": (Dots(),), "probes": (Clashing(),)})
    with pytest.raises(BadInput, match="Clashing: output 'encoder' has the name"):
        study.resolve()


@attrs.frozen(kw_only=True)
class Returning(gf.Probe):
    version = "1"
    outputs = {"x": gf.Output(dtype="int64")}
    what: object = gf.unkeyed(default=None)

    def measure(self, encoder, batch):
        return {} if self.what is None else {"x": [self.what] * len(batch.ids)}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (float("nan"), "returned 'x', which can't be stored as int64"),
        (1j, "returned 'x', which can't be stored as int64"),
        ("a", "returned 'x', which can't be stored as int64"),
        (None, "returned nothing, but its outputs are x"),
    ],
)
def test_values_that_would_change_are_refused(what, message):
    with pytest.raises(BadInput, match=message):
        gf.measure(Returning(what=what), TinyEncoder(), Dots(), device="cpu")


@attrs.frozen(kw_only=True)
class Coarse(gf.Probe):
    version = "1"
    outputs = {"x": gf.Output()}

    def measure(self, encoder, batch):
        return {"x": torch.full((len(batch.ids),), 0.5, dtype=torch.bfloat16)}


def test_bfloat16_is_taken():
    np.testing.assert_array_equal(gf.measure(Coarse(), TinyEncoder(), Dots(n=2), device="cpu")["x"], [0.5, 0.5])


def test_a_device_without_values_is_refused():
    with pytest.raises(BadInput, match="device 'meta'"):
        gf.measure(Norm(), TinyEncoder(), Dots(), device="meta")
