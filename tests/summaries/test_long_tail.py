"""Flows between frequency bands and their coverage, from made-up predictions with known answers."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput
from geoframe.statistics.bands import banded, class_bands
from geoframe.summaries.long_tail import NOTHING, LongTailSummary, share
from geoframe.summaries.long_tail_claims import LongTailClaims, newcombe
from tests.band_trees import CORRECT, COUNTS, ERRORS, HIGH, LOW, MEDIUM, band_tree


def cell_of(tree: xr.DataTree) -> xr.Dataset:
    ds = LongTailSummary().compute(tree)
    assert ds.sizes["cell"] == 1, "the random copy has no bands"
    return ds.isel(cell=0)


def verdicts(tree: xr.DataTree) -> dict[str, str]:
    ds = LongTailClaims().compute(tree)
    return dict(zip(ds["claim"].values, ds["verdict"].values, strict=True))


def test_flows_are_the_shares_of_a_bands_errors():
    cell = cell_of(band_tree())
    low = cell.sel(true="low")
    assert low["images"].values.tolist() == [300, 18, 47, 35]
    np.testing.assert_allclose(low["flow"].values, [np.nan, 0.18, 0.47, 0.35])
    np.testing.assert_allclose(low["even"].values, [np.nan, 2 / 9, 3 / 9, 4 / 9])
    assert (float(low["flow_low"][2]), float(low["flow_high"][2])) == share([True] * 47 + [False] * 53)[1:]
    assert float(low["error"]) == pytest.approx(100 / 400)
    assert cell.sel(true="high", destination="high")["images"] == 12
    assert cell["class_counts"].values.tolist() == [*COUNTS.values()]
    assert float(cell.sel(true="medium")["error"]) == pytest.approx(12 / 312)


def test_coverage_is_that_of_each_combination():
    cell = cell_of(band_tree())["coverage"]
    assert float(cell.sel(true="low", destination="high")) == pytest.approx(0.92)
    assert float(cell.sel(true="medium", destination="high")) == pytest.approx(0.94)
    assert float(cell.sel(true="low", destination="correct")) == pytest.approx(0.95)
    assert np.isnan(cell.sel(true="medium", destination="low"))


def test_bands_go_by_the_training_images_and_not_by_the_order_of_labels():
    turned = {label: COUNTS[9 - label] for label in COUNTS}
    assert class_bands(turned) == {label: class_bands(COUNTS)[9 - label] for label in COUNTS}
    cell = cell_of(band_tree(counts=turned))
    assert cell.sel(true="high")["images"].values.tolist() == [400, 35 + 0, 47, 18]


def test_images_of_classes_that_were_not_trained_are_left_out():
    more = band_tree((*CORRECT, *ERRORS, (17, LOW, 30, 0.5)))
    xr.testing.assert_identical(cell_of(more), cell_of(band_tree()))


def test_the_papers_flows_agree_and_others_do_not():
    assert set(verdicts(band_tree()).values()) == {"agrees", "inconclusive"}
    assert verdicts(band_tree())["… than spread evenly: > 77.8 % (ours)"] == "inconclusive"
    stays = [(LOW, 8, 90, 0.5), (LOW, MEDIUM, 5, 0.9), (LOW, HIGH, 5, 0.9), (HIGH, 7, 200, 0.9)]
    found = verdicts(band_tree((*CORRECT, *stays)))
    assert found == dict.fromkeys(found, "disagrees")
    assert "least coverage (low → low) > 86.6" in found


def test_more_than_evenly_spread_errors():
    away = verdicts(band_tree((*CORRECT, (LOW, HIGH, 95, 0.9), (LOW, 8, 5, 0.9))))
    assert away["… than spread evenly: > 77.8 % (ours)"] == "agrees"


def test_a_wide_interval_agrees_with_no_published_share():
    """Of ten errors, of which one stays, the interval from 1.8 to 40.4 % holds most shares."""
    found = verdicts(band_tree((*CORRECT, (LOW, MEDIUM, 5, 0.9), (LOW, HIGH, 4, 0.9), (LOW, 8, 1, 0.9))))
    shares = [found[f"low-band errors {where}"] for where in ("to medium", "to high", "that stay low")]
    assert shares == ["inconclusive: wide interval"] * 3
    away = verdicts(band_tree((*CORRECT, (LOW, HIGH, 10, 0.9))))
    assert away["low-band errors to high"] == "disagrees", "the published share is outside, however wide"


def test_few_errors_are_inconclusive():
    found = verdicts(band_tree((*CORRECT, (LOW, HIGH, 9, 0.5))))
    assert [text for text, verdict in found.items() if verdict == "inconclusive: n < 10"] == [
        "low-band errors to medium",
        "low-band errors to high",
        "low-band errors that stay low",
        "low-band errors leave the band: > 50 %",
        "… than spread evenly: > 77.8 % (ours)",
    ]
    assert "least coverage (low → correct) > 86.6" in found, "nine images make no combination"


@pytest.mark.parametrize(
    ("dataset", "factor", "known"), [("MNIST", 1, True), ("digits", 1, False), ("MNIST", 12, False)]
)
def test_published_shares_are_of_mnist_at_that_imbalance(dataset, factor, known):
    counts = {label: n * factor if n > 600 else n for label, n in COUNTS.items()}
    tree = band_tree(counts=counts, dataset=dataset)
    assert ("low-band errors to medium" in verdicts(tree)) == known
    assert bool(cell_of(tree)["has_published_flows"]) == known


@pytest.mark.parametrize("what", ["one size", "counts unknown", "no counts", "random"])
def test_without_bands_there_is_nothing_to_compare(what):
    tree = band_tree(counts=dict.fromkeys(COUNTS, 7 if what == "one size" else -1))
    if what == "no counts":
        tree["training"].dataset = tree["training"].to_dataset().drop_vars("class_counts")
    if what == "random":
        tree = band_tree()
        random = ("encoder", np.array(["random"] * 2, dtype=object))
        tree["coverage"].dataset = tree["coverage"].to_dataset().assign_coords(training=random)
    assert banded(tree, "coverage") == []
    summary = LongTailSummary()
    assert summary.tables(summary.compute(tree)) == [("long-tail", ["nothing to compare"], [[NOTHING]])]
    assert not LongTailClaims().compute(tree).data_vars


def test_two_probe_sets_are_told_apart():
    one = band_tree()
    rays = one["coverage"].to_dataset()
    both = xr.concat([rays, rays.assign_coords(probeset=np.array(["more"], dtype=object))], "probeset")
    tree = xr.DataTree.from_dict({"coverage": both, "training": one["training"].to_dataset()})
    summary = LongTailSummary()
    tables = summary.tables(summary.compute(tree))
    assert [row[0] for row in tables[1][2]] == ["mlp, test"] * 3 + ["mlp, more"] * 3
    claims = LongTailClaims()
    assert [title for title, _, _ in claims.tables(claims.compute(tree))] == [
        "long-tail-claims, mlp on test",
        "long-tail-claims, mlp on more",
    ]


def test_many_classes_are_summed_up():
    counts = {label: 1000 - 10 * label for label in range(30)}
    summary = LongTailSummary()
    rows = summary.rows(summary.compute(band_tree(counts=counts)))[1]
    assert [row[3] for row in rows] == ["10 classes: 710–800", "10 classes: 810–900", "10 classes: 910–1000"]
    assert [row[4:] for row in rows[:2]] == [["0", "–"]] * 2, "of these classes there are no test images"


def test_newcombes_own_example():
    """Newcombe (1998), 56/70 against 48/80, method 10: 0.0524 to 0.3339."""
    found = newcombe(share([True] * 56 + [False] * 14), share([True] * 48 + [False] * 32))
    np.testing.assert_allclose(found, (0.2, 0.0524, 0.3339), atol=5e-5)


def test_another_probes_node_is_refused():
    tree = band_tree()
    tree["coverage"].dataset = tree["coverage"].to_dataset().drop_vars("predicted")
    with pytest.raises(BadInput, match="node 'coverage' holds no coverage and predictions: name a RayCoverageProbe's"):
        LongTailSummary().compute(tree)
