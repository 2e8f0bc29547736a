"""§5.1.1's claims on made-up GI: the sign that initial weights decide, and pairing over images."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from tests.run_trees import expansion_tree

FALLING = (2.0, 0.9, 0.7, 0.6, 0.5)


def found(tree: xr.DataTree) -> dict[tuple[str, str], gf.Claim]:
    return {(claim.subject, claim.claim): claim for claim in gf.ExpansionClaims().claims(tree)}


def verdicts(tree: xr.DataTree, start: str) -> set[str]:
    return {claim.verdict for (_, text), claim in found(tree).items() if text.startswith(start)}


def test_initial_weights_decide_the_sign_of_r():
    claims = found(expansion_tree())
    counted = claims["net-seed0", "r: mean GI, RSV, epochs 0–4"]
    left_out = claims["net-seed0", "r: mean GI, RSV, epochs 1–4"]
    assert (counted.n, left_out.n) == (5, 4)
    expected = [np.corrcoef((2.0, 0.5, 0.7, 0.8, 0.9)[k:], (0.1, 0.5, 0.7, 0.8, 0.9)[k:])[0, 1] for k in (0, 1)]
    assert counted.value == pytest.approx(expected[0], abs=0.02)
    assert left_out.value == pytest.approx(expected[1], abs=0.02)
    assert counted.value < 0 < left_out.value
    assert left_out.verdict == "reported"
    assert left_out.published == "0.99"


def test_verdicts_rest_on_runs():
    claims = found(expansion_tree())
    pooled = claims["mlp digits, all runs", "r: mean GI, RSV, epochs 1–4"]
    z = np.arctanh([claims[f"net-seed{k}", "r: mean GI, RSV, epochs 1–4"].value for k in range(3)])
    half = 4.302653 * z.std(ddof=1) / 3**0.5  # Student's with two degrees of freedom
    expected = np.tanh([z.mean() - half, z.mean(), z.mean() + half])
    np.testing.assert_allclose([pooled.low, pooled.value, pooled.high], expected, rtol=1e-5)
    assert (pooled.n, pooled.verdict) == (3, "agrees")


def test_fewer_than_three_runs_decide_nothing():
    claims = found(expansion_tree(runs=1))
    assert claims["mlp digits, all runs", "r: mean GI, RSV, epochs 1–4"].verdict == "inconclusive: 1 run"


def test_a_falling_gi_disagrees():
    falling = expansion_tree(rsv=FALLING, random=FALLING)
    assert verdicts(falling, "r: mean GI, RSV, epochs 1") == {"disagrees", "reported"}


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [((np.nan,) * 5, "inconclusive: no test accuracy"), ((0.5,) * 5, "inconclusive: no spread")],
)
def test_without_accuracy_or_its_spread_there_is_no_r(accuracy, verdict):
    assert verdicts(expansion_tree(accuracy=accuracy), "r: mean GI") == {verdict, "inconclusive: 0 runs"}


def test_three_checkpoints_have_no_interval():
    tree = expansion_tree()
    nodes = {name: node.to_dataset().isel(encoder=[0, 1, 2, 4]) for name, node in tree.children.items()}
    claims = found(xr.DataTree.from_dict(nodes))
    assert claims["net-seed0", "r: mean GI, RSV, epochs 1–4"].verdict == "inconclusive: 3 checkpoints"
    assert claims["net-seed0", "r: mean GI, RSV, epochs 0–4"].verdict != "inconclusive: 4 checkpoints"


def test_gi_above_1_is_counted_along_both_signs():
    tree = expansion_tree(rsv=(0.5, 1.5, 1.5, 0.5, 1.5))
    tree["gi"]["gi_negative"] = tree["gi"]["gi"] * 0 + 0.5
    at = gf.ExpansionSummary().compute(tree).sel(kind="rsv", probeset="digits")
    assert at["gi_over_1"].values[:5].tolist() == [0, 0.5, 0.5, 0, 0.5]
    assert at["gi_mean"].values[1] == pytest.approx(1.0, abs=0.01)


def test_differences_between_directions_are_paired_over_images():
    """Images differ far more than directions do: only pairs show the difference."""
    tree = expansion_tree()
    spread = xr.DataArray(np.linspace(0, 50, 12), dims="image")
    for name in ("gi", "gi-random"):
        for variable in ("gi", "gi_negative"):
            tree[name][variable] = tree[name][variable] + spread
    claims = found(tree)
    end = claims["net-seed0", "RSV > random at the end"]
    assert end.verdict == "agrees"
    assert end.value == pytest.approx(0.25, abs=0.02)
    assert end.n == 12
    growth = claims["net-seed0", "RSV grows more, from epoch 1"]
    assert growth.value == pytest.approx(0.25, abs=0.02)
    assert growth.verdict == "agrees"
    assert claims["net-seed0", "RSV grows more, from epoch 0"].value == pytest.approx(0.25, abs=0.02)
    assert claims["net-seed0", "RSV grows more, from epoch 2"].value == pytest.approx(0.1, abs=0.02)


def test_random_directions_that_are_ahead_disagree():
    tree = expansion_tree(rsv=(2, 0.5, 0.5, 0.5, 0.5), random=(2, 0.5, 0.7, 0.8, 0.9))
    assert verdicts(tree, "RSV > random at the end") == {"disagrees"}
    assert verdicts(tree, "RSV grows more, from epoch 1") == {"disagrees"}


def test_few_images_have_no_interval():
    tree = expansion_tree()
    nodes = {
        n: d.to_dataset().isel(image=slice(5)) if n != "training" else d.to_dataset() for n, d in tree.children.items()
    }
    assert verdicts(xr.DataTree.from_dict(nodes), "RSV") == {"inconclusive: too few images"}


def test_the_settings_that_decide_are_printed():
    summary = gf.ExpansionClaims()
    (title, headers, rows), *topics = summary.tables(summary.compute(expansion_tree()))
    assert title == "expansion-claims, settings that decide"
    told = dict(zip(headers, rows[0], strict=True))
    assert len(rows) == 1, "three seeds of one recipe"
    assert told["batch norm"] == "yes"
    assert (told["lr"], told["cap"], told["layer"], told["RSV"], told["random"]) == ("0.0625", "20", "pre", "8", "100")
    assert [title for title, *_ in topics] == [
        f"expansion-claims, {text}" for text in ("mean GI", "GI > 1", "RSV against random directions")
    ]
    assert [len(rows) for *_, rows in topics] == [16, 16, 12]


def test_initial_weights_alone_give_nothing_to_compare():
    tree = expansion_tree(runs=1)
    nodes = {name: node.to_dataset().isel(encoder=[0]) for name, node in tree.children.items()}
    summary = gf.ExpansionClaims()
    ((_, headers, _),) = summary.tables(summary.compute(xr.DataTree.from_dict(nodes)))
    assert headers == ["nothing to compare"]


def test_the_table_has_a_row_an_epoch_of_means_over_seeds():
    tree = expansion_tree()
    summary = gf.ExpansionSummary()
    (_, headers, rows), (_, _, others) = summary.tables(summary.compute(tree))
    assert [row[2] for row in rows] == ["0", "1", "2", "3", "4"]
    told = dict(zip(headers, rows[0], strict=True))
    assert (told["network"], told["runs"], told["accuracy (%)"]) == ("mlp digits", "3", "10")
    assert float(told["mean GI"]) == pytest.approx(2.0, abs=0.01)
    assert (told["> 1 (%)"], told["cens. (%)"]) == ("100", "100")
    assert float(told["L2"]) == pytest.approx(16, abs=0.1)
    assert float(dict(zip(headers, others[4], strict=True))["median GI"]) == pytest.approx(0.65, abs=0.01)
