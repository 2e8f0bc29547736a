"""The bridge study's statistics on made-up results whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.statistics.rank_correlation import between_clusters
from geoframe.summaries.bridge import STATES, verdict
from geoframe.summaries.bridge_values import bridge_values, kept_at, quarter, response_peaks, states
from tests.bridge_trees import ETA, bridge_tree, profiles, with_tube

GIVEN = "q25 | η_J"


@pytest.fixture(scope="module")
def follows_q25() -> xr.Dataset:
    return gf.BridgeSummary(replicates=200).compute(bridge_tree("q25"))


def test_peaks_are_found_between_rungs_and_absent_ones_are_not() -> None:
    places = np.array([0.5, 7.3, np.nan])
    rising = np.minimum(ETA, 50.0)
    found = response_peaks(ETA, np.concatenate([profiles(places), [rising, np.full(33, np.nan)]]))
    np.testing.assert_allclose(found.scale[:2], places[:2], rtol=0.02)
    assert np.isnan(found.scale[2:]).all()
    assert found.at_end.tolist() == [False, False, False, True, False]


def test_a_peak_below_the_rules_height_is_absent_and_units_do_not_count() -> None:
    low = 1 + 0.2 * np.exp(-(np.log(ETA) ** 2))
    high = 1e6 * (1 + 0.4 * np.exp(-(np.log(ETA) ** 2)))
    found = response_peaks(ETA, np.stack([low, high]))
    assert np.isnan(found.scale[0])
    assert found.scale[1] == pytest.approx(1, rel=0.02)
    assert not found.at_end.any()


def test_invalid_rungs_are_skipped() -> None:
    noisy = profiles(np.array(5.0))
    noisy[:6] = np.nan
    assert response_peaks(ETA[::-1], noisy[::-1]).scale == pytest.approx(5, rel=0.02)


def test_quarter_of_the_rays() -> None:
    distance = np.array([[1.0, 2, 3, 4, 5, 6, 7, 8], [np.nan] * 8])
    np.testing.assert_array_equal(quarter(distance), [2, np.nan])


def test_share_that_keeps_its_class_at_the_peak() -> None:
    distance = np.array([1.0, 2, 3, 100]).reshape(1, 1, 2, 2)
    peak = np.array([[[2.5, np.nan, 150.0]]])
    np.testing.assert_array_equal(kept_at(peak, distance, distance == 100), [[[0.5, np.nan, np.nan]]])


def test_states_are_told_from_variant_epoch_and_seed() -> None:
    labels, found, seeds = states(bridge_tree()["response"].to_dataset())
    assert [f"{a} {b}".strip() for a, b in zip(labels, found, strict=True)] == [*STATES, *STATES]
    assert seeds == [0] * 5 + [1] * 5


def test_values_are_those_of_the_nodes() -> None:
    tree = with_tube(bridge_tree(), every=2)
    values = bridge_values(tree)
    b = tree["boundary-distance"]["distance"].isel(probeset=0)
    np.testing.assert_allclose(values["q25"], b * 1.4826 * np.sqrt(3072))
    np.testing.assert_allclose(values["q25_half"].sel(half="first"), values["q25"])
    assert not values["q25_censored"].any()
    late = values.isel(encoder=2)
    np.testing.assert_allclose(late["tube"][::2], 0.5 * (2.0 + np.arange(0, 40, 2)))
    assert late["tube"][1::2].isnull().all()
    assert set(np.unique(late["kept"])) <= {0.5, 0.75, 1.0}, "−u never crosses, half of u by q25, the rest by 3 q25"


def test_rays_that_reach_the_cap_are_counted() -> None:
    tree = bridge_tree()
    gi = tree["isotropic-gi"].to_dataset()
    tree["isotropic-gi"].dataset = gi.assign(
        distance=xr.full_like(gi["distance"], 100), censored=xr.full_like(gi["censored"], True)
    )
    ds = gf.BridgeSummary(replicates=10).compute(tree)
    assert (ds["q25_censored"] == 80).all()
    assert ds["rho"].sel(relation="q25").isnull().all(), "no spread, no correlation"


def test_what_follows_the_boundary_is_news_beyond_local_geometry(follows_q25: xr.Dataset) -> None:
    late = follows_q25.sel(state="true late")
    assert (late["rho"].sel(relation="q25") > 0.9).all()
    assert (late["rho_low"].sel(relation=GIVEN) > 0.5).all()
    assert (late["rho"].sel(relation="b") > 0.9).all()
    assert set(late["verdict"].values) == {"yes"}
    assert (late["rho_n"].sel(relation=GIVEN) == 80).all()
    assert (late["rho_seeds"].sel(relation=GIVEN) == 2).all()
    assert (abs(late["rho"].sel(relation="q25, permuted")) < 0.3).all()
    assert float(late["half_space"]) == pytest.approx(1)
    assert float(late["pair_rho"].sel(pair="q25 with b")) == pytest.approx(1)
    assert float(late["ceiling"].min()) == pytest.approx(1)


def test_what_follows_local_geometry_is_no_news() -> None:
    tree = bridge_tree("eta_j", seeds=4, images=120, noise=0.5)
    late = gf.BridgeSummary(replicates=300).compute(tree).sel(state="true late")
    assert (late["rho_low"].sel(relation="q25") > 0.2).all(), "q25 and η* share a cause"
    assert (abs(late["rho"].sel(relation=GIVEN)) < 0.15).all()
    assert set(late["verdict"].values) <= {"no", "inconclusive"}
    assert "no" in late["verdict"].values


def test_initial_networks_have_no_peaks_and_say_so(follows_q25: xr.Dataset) -> None:
    initial = follows_q25.sel(state="init")
    assert (initial["peaks"] == 0).all()
    assert (initial["absent"] == 80).all()
    assert (initial["at_end"] == 0).all()
    assert set(initial["verdict"].values) == {"inconclusive: few peaks"}


def test_one_seed_and_labels_that_were_not_memorised_decide_nothing() -> None:
    one = gf.BridgeSummary(replicates=100).compute(bridge_tree(seeds=1))
    assert set(one.sel(state="true late")["verdict"].values) == {"inconclusive: one seed"}
    ds = gf.BridgeSummary(replicates=100).compute(bridge_tree(memorised=0.62))
    assert set(ds.sel(state="random late")["verdict"].values) == {"inconclusive: fit 62 %"}
    assert set(ds.sel(state="random early")["verdict"].values) == {"yes"}


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 0.5, "yes"), (-0.5, -0.1, "yes, inversely"), (-0.1, 0.15, "no"), (-0.1, 0.5, "inconclusive")],
)
def test_verdicts_follow_the_rule(follows_q25: xr.Dataset, low: float, high: float, said: str) -> None:
    cell = follows_q25.sel(state="true late", output="logits")
    cell = cell.assign(rho_low=xr.full_like(cell["rho_low"], low), rho_high=xr.full_like(cell["rho_high"], high))
    assert verdict(cell, "true late") == said


def test_nodes_that_are_absent_leave_their_columns_out() -> None:
    tree = bridge_tree()
    few = xr.DataTree.from_dict({name: tree[name].to_dataset() for name in ("response", "isotropic-gi")})
    summary = gf.BridgeSummary(replicates=50)
    ds = summary.compute(few)
    assert ds["rho"].sel(relation=GIVEN).isnull().all()
    titles = [title for title, *_ in summary.tables(ds)]
    assert "bridge, other distances" not in titles
    assert titles[0] == "bridge"
    whole = [title for title, *_ in summary.tables(summary.compute(with_tube(tree)))]
    assert "bridge, other distances" in whole


def test_medians_between_checkpoints_draw_whole_seeds() -> None:
    x = np.array([1.0, 2, 3, 1.1, 2.1, 3.1])
    found = between_clusters(x, x**2, [0, 0, 0, 1, 1, 1], replicates=50)
    assert (found.rho, found.n, found.clusters) == (1.0, 6, 2)
    assert found.low == pytest.approx(1)
    alone = between_clusters(x[:3], x[:3], [0, 0, 0])
    assert alone.rho == pytest.approx(1)
    assert np.isnan(alone.low)


def test_other_images_are_refused() -> None:
    tree = bridge_tree()
    tree["isotropic-gi"].dataset = tree["isotropic-gi"].to_dataset().isel(image=slice(5))
    with pytest.raises(gf.BadInput, match="other images"):
        bridge_values(tree)
