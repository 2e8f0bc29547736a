from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput
from geoframe.summaries.bounds import BoundsSummary
from geoframe.summaries.spectrum import SpectrumClaims, SpectrumSummary, both_signs, third
from tests.spectrum_trees import bounds_tree, spectrum_tree, two_sets


def verdicts(tree: xr.DataTree) -> list[str]:
    return [row[-1] for row in SpectrumClaims().rows(SpectrumClaims().compute(tree))[1]]


def test_thirds_are_of_the_row_space():
    gi = spectrum_tree()["gi"].to_dataset()
    index = xr.zeros_like(gi["gi"]) + np.arange(40)
    assert float(third(gi, index, last=False)[0, 0, 0]) == pytest.approx(np.arange(10).mean())
    assert float(third(gi, index, last=True)[0, 0, 0]) == pytest.approx(np.arange(20, 30).mean())


def test_claims_by_sign_and_significance():
    assert verdicts(spectrum_tree()) == ["agrees"] * 4
    assert verdicts(spectrum_tree(early=2.0, late=-1.0)) == ["disagrees"] * 4
    assert verdicts(spectrum_tree(early=0.0, late=0.0)) == ["inconclusive"] * 4


def test_claims_without_initial_or_trained_weights():
    assert verdicts(spectrum_tree(epochs=(1, 5)))[-1] == "no random copy"
    assert verdicts(spectrum_tree(epochs=(0, 5)))[0] == "one checkpoint"
    assert verdicts(spectrum_tree(epochs=(0,))) == []


def test_claims_have_rows_on_each_probe_set():
    tree = two_sets(spectrum_tree(), spectrum_tree(early=2.0, late=-1.0))
    headers, rows = SpectrumClaims().rows(SpectrumClaims().compute(tree))
    by_set = [[row[headers.index(name)] for name in ("probe set", "verdict")] for row in rows]
    assert by_set == [["digits", "agrees"]] * 4 + [["other", "disagrees"]] * 4
    alone = SpectrumClaims().rows(SpectrumClaims().compute(spectrum_tree()))[1]
    assert rows[:4] == alone


def test_claims_leave_out_sets_that_a_network_was_not_measured_on():
    second = spectrum_tree()
    for node in ("gi", "linearity"):
        ds = second[node].to_dataset()
        second[node] = xr.DataTree(ds.map(lambda v: v * np.nan if v.dtype.kind == "f" else v))
    rows = SpectrumClaims().rows(SpectrumClaims().compute(two_sets(spectrum_tree(), second)))[1]
    assert [row[1] for row in rows] == ["digits"] * 4


def test_the_table():
    tree = spectrum_tree()
    ds = SpectrumSummary().compute(tree)
    gi = tree["gi"]["gi"]
    np.testing.assert_allclose(ds["gi_mean"], gi.mean(("image", "direction")))
    np.testing.assert_allclose(ds["gi_over_1"], (gi > 1).mean(("image", "direction")))
    np.testing.assert_allclose(ds["gi_censored"], 0.5)
    assert (ds["rank"] == 30).all()
    headers, rows = SpectrumSummary().rows(ds)
    assert [len(row) for row in rows] == [len(headers)] * 3


def test_a_node_along_one_sign_only():
    with pytest.raises(BadInput, match="holds no gi along both signs"):
        both_signs(xr.Dataset(), "gi")


@pytest.mark.parametrize(("violations", "expected"), [(0, "agrees"), (1, "disagrees")])
def test_bounds(violations, expected):
    tree = bounds_tree(violations)
    headers, rows = BoundsSummary().rows(BoundsSummary().compute(tree))
    assert len(rows) == 2
    row = dict(zip(headers, rows[0], strict=True))
    assert row["verdict"] == expected
    assert (row["rays"], row["broken"]) == ("60", str(5 * violations))
    assert row["Theorem 1 (%)"] == "50 [38, 62]"
    assert row["T* = 0 (%)"] == "0 [0, 6]"
    assert row["T* / GI"] == "0.25"


def test_bounds_of_another_probe():
    with pytest.raises(BadInput, match="name a BoundsProbe's"):
        BoundsSummary(probe="gi").compute(spectrum_tree())


@pytest.mark.parametrize(
    ("summary", "tree"),
    [
        (SpectrumSummary(), spectrum_tree()),
        (SpectrumClaims(), spectrum_tree()),
        (SpectrumClaims(), spectrum_tree(epochs=(0,))),
        (SpectrumClaims(), two_sets(spectrum_tree(), spectrum_tree())),
        (BoundsSummary(), bounds_tree()),
    ],
)
def test_stored_and_read_back_it_prints_the_same(summary, tree, tmp_path):
    ds = summary.compute(tree)
    xr.DataTree.from_dict({"s": ds}).to_zarr(tmp_path / "r.zarr", consolidated=False, zarr_format=3)
    back = xr.open_datatree(tmp_path / "r.zarr", engine="zarr", consolidated=False)
    assert summary.rows(back["s"].to_dataset()) == summary.rows(ds)
    assert summary.caption
