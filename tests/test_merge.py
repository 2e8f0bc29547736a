from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from geoframe.merge import merge, spec_coords
from tests.doubles import Dots, TinyEncoder

ENCODERS = (TinyEncoder(name="a", training="long"), TinyEncoder(name="b", seed=3))
PROBESETS = (Dots(name="x"), Dots(name="y", seed=7))


def cell(n, directions, start=0.0):
    shape = (n, len(directions))
    values = start + np.arange(n * len(directions), dtype=float).reshape(shape)
    return xr.Dataset(
        {
            "gi": (("image", "direction"), values, {"units": "1", "long_name": "interval"}),
            "censored": (("image", "direction"), values > 1),
            "rank": ("image", np.arange(n)),
            "word": ("image", np.array(["w"] * n, dtype=object)),
        },
        coords={
            "image": np.arange(n),
            "direction": np.asarray(directions),
            "image_id": ("image", np.array([f"i{i}" for i in range(n)], dtype=object)),
            "label": ("image", np.arange(n)),
            "weight": ("direction", np.asarray(directions) * 0.5),
        },
    )


def test_padding_and_fills():
    parts = {(0, 0): cell(3, [0, 1]), (1, 0): cell(3, [0, 1, 2], 10.0), (0, 1): cell(2, [0, 1])}
    ds = merge(parts, ENCODERS, PROBESETS)
    assert ds["gi"].dims == ("encoder", "probeset", "image", "direction")
    assert dict(ds.sizes) == {"encoder": 2, "probeset": 2, "image": 3, "direction": 3}
    np.testing.assert_array_equal(ds["gi"].sel(encoder="a", probeset="x", direction=[0, 1]), parts[0, 0]["gi"])
    np.testing.assert_array_equal(ds["gi"].sel(encoder="b", probeset="x"), parts[1, 0]["gi"])
    assert np.isnan(ds["gi"].sel(encoder="a", direction=2)).all()
    assert np.isnan(ds["gi"].sel(encoder="b", probeset="y")).all()
    assert ds["censored"].dtype == bool
    assert not ds["censored"].sel(encoder="b", probeset="y").any()
    assert ds["rank"].dtype == np.int64
    assert ds["rank"].sel(encoder="a", probeset="y").values.tolist() == [0, 1, -1]
    assert ds["word"].sel(encoder="b", probeset="y").values.tolist() == ["", "", ""]
    assert ds["image_id"].sel(probeset="y").values.tolist() == ["i0", "i1", ""]
    assert ds["label"].sel(probeset="y").values.tolist() == [0, 1, -1]
    assert ds["gi"].attrs == {"units": "1", "long_name": "interval"}
    assert ds["weight"].dims == ("encoder", "probeset", "direction")


def test_coords_of_specs_stand_beside_and_never_clash():
    ds = merge({(0, 0): cell(1, [0])}, ENCODERS, PROBESETS)
    assert ds["training"].dims == ("encoder",)
    assert ds["training"].values.tolist() == ["long", "none"]
    assert (ds["seed"].values.tolist(), ds["probeset_seed"].values.tolist()) == ([0, 3], [0, 7])
    found = spec_coords(ENCODERS, PROBESETS, taken={"training"})
    assert set(found) == {"encoder_training", "seed", "probeset_seed"}


@pytest.mark.parametrize(
    ("values", "want", "kind"),
    [
        ((1, None), [1, -1], "i"),
        ((0.5, None), [0.5, None], "f"),
        ((0.5, 1), [0.5, 1.0], "f"),
        (("x", None), ["x", ""], "O"),
        (("x", 1), ["x", "1"], "O"),
        ((True, False), [True, False], "b"),
        ((None, None), ["", ""], "O"),
    ],
)
def test_columns_of_mixed_values(values, want, kind):
    class Labelled:
        def __init__(self, value):
            self.coords = {"v": value}

    column = spec_coords([Labelled(value) for value in values], [], taken=set())["v"]
    assert column.dtype.kind == kind
    assert [None if value != value else value for value in column.values.tolist()] == want


labels = st.lists(st.integers(-5, 20), min_size=1, max_size=6, unique=True)


@given(st.lists(st.tuples(st.integers(1, 4), labels), min_size=1, max_size=4))
def test_every_value_is_found_again_by_its_labels(cells):
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    parts = {place: cell(n, own) for place, (n, own) in zip(places, cells, strict=False)}
    ds = merge(parts, ENCODERS, PROBESETS)
    for (row, column), part in parts.items():
        node = ds.isel(encoder=row, probeset=column).sel(image=part["image"], direction=part["direction"])
        np.testing.assert_array_equal(node["gi"], part["gi"])
        np.testing.assert_array_equal(node["censored"], part["censored"])
    total = sum(part["gi"].size for part in parts.values())
    assert int(ds["gi"].notnull().sum()) == total


def test_a_probe_of_whole_sets_has_no_image():
    part = xr.Dataset({"radius": ("ray", [1.0, 2.0])}, coords={"ray": [0, 1]})
    ds = merge({(0, 0): part}, ENCODERS, PROBESETS)
    assert ds["radius"].dims == ("encoder", "probeset", "ray")


def test_probes_of_whole_sets_may_give_one_number():
    parts = {
        (0, 0): xr.Dataset({"total": ((), 2.0), "word": ((), "w")}),
        (1, 1): xr.Dataset({"total": 3.0, "word": "v"}),
    }
    ds = merge(parts, ENCODERS, PROBESETS)
    assert ds["total"].dims == ("encoder", "probeset")
    np.testing.assert_array_equal(ds["total"], [[2.0, np.nan], [np.nan, 3.0]])
    assert ds["word"].values.tolist() == [["w", ""], ["", "v"]]
