"""Published claims beside ours: one row each, whatever is missing."""

from __future__ import annotations

import attrs
import numpy as np
import xarray as xr

import geoframe as gf


@attrs.frozen(kw_only=True)
class Two(gf.Claims):
    def claims(self, tree):
        first = gf.Claim(
            subject="net on digits", claim="GI grows", published="7 → 11.5", value=2.0, low=1.5, high=2.5, n=12, p=0.01
        )
        return [first, gf.Claim(subject="net", claim="coverage", value=0.25, verdict="inconclusive: one seed")]


@attrs.frozen(kw_only=True)
class Nothing(gf.Claims):
    def claims(self, tree):
        return []


def test_a_row_a_claim_with_interval_and_verdict(tmp_path):
    ds = Two().compute(xr.DataTree())
    ds.to_zarr(tmp_path / "claims.zarr", consolidated=False)
    stored = xr.open_zarr(tmp_path / "claims.zarr", consolidated=False).load()
    headers, rows = Two().rows(stored)
    assert headers[0] == "measured"
    assert headers[-1] == "verdict"
    assert rows == [
        ["net on digits", "GI grows", "12", "2 [1.5, 2.5]", "7 → 11.5", "0.01", "inconclusive"],
        ["net", "coverage", "–", "0.25", "not given", "–", "inconclusive: one seed"],
    ]
    assert np.isnan(stored["low"].values[1])


def test_nothing_to_compare_says_so():
    summary = Nothing()
    headers, rows = summary.rows(summary.compute(xr.DataTree()))
    assert headers == ["nothing to compare"]
    assert len(rows) == 1


def test_lower_bounds_and_open_intervals_are_written_as_such():
    @attrs.frozen(kw_only=True)
    class Censored(gf.Claims):
        def claims(self, tree):
            bound = gf.Claim(subject="net", claim="a", value=12.0, low=9.5, high=np.inf, at_least=True)
            wide = gf.Claim(subject="net", claim="b", value=12.0, low=9.5, high=np.inf)
            return [bound, wide, gf.Claim(subject="c", claim="d")]

    summary = Censored()
    _, rows = summary.rows(summary.compute(xr.DataTree()))
    assert [row[3] for row in rows] == ["≥ 12 [9.5, ∞]", "12 [9.5, ∞]", "–"]
