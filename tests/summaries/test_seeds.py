"""F.2's claims on made-up coverage: each verdict, both ways."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import geoframe as gf
from geoframe.summaries.seed_claims import of_all
from geoframe.summaries.seeds import (
    by_network,
    covered_runs,
    deviation_ratio,
    over_optimisers,
    over_seeds,
    variation_interval,
)
from tests.run_trees import seeds_tree


def found(**made: object) -> dict[tuple[str, str], gf.Claim]:
    return {(claim.subject, claim.claim): claim for claim in gf.SeedClaims().claims(seeds_tree(**made))}


def verdict(text: str, **made: object) -> str:
    (one,) = [
        claim.verdict for (subject, claim_text), claim in found(**made).items() if (subject, claim_text)[1] == text
    ]
    return one


def test_runs_that_rise():
    claims = found()
    one = claims["mlp-seed1", "trained > untrained"]
    assert one.value == pytest.approx(45.5, abs=0.1)
    assert one.low < one.value < one.high
    assert one.n == 20
    assert one.p < 1e-6
    assert one.verdict == "agrees"
    assert claims["all runs", "risen in 6 of 6 runs"].verdict == "agrees"


def test_a_run_that_falls_counts_against_however_small_its_p():
    claims = found(untrained=(0.99, 0.5, 0.8, 0.35, 0.2, 0.2))
    assert claims["mlp-seed0", "trained > untrained"].verdict == "disagrees"
    together = claims["all runs", "risen in 5 of 6 runs"]
    assert together.verdict == "agrees"
    assert together.value == pytest.approx(100 * 5 / 6)
    assert (together.low, together.high) == pytest.approx(
        [100 * x for x in stats.binomtest(5, 6).proportion_ci(method="wilson")]
    )


@pytest.mark.parametrize(("high", "expected"), [(2, "inconclusive"), (4, "disagrees")])
def test_two_runs_that_do_not_rise_are_open_most_disagree(high, expected):
    untrained = [0.99] * high + [0.2] * (6 - high)
    assert verdict(f"risen in {6 - high} of 6 runs", untrained=untrained) == expected


def test_runs_that_say_nothing_count_for_neither_side():
    """Of five images, coverages that scatter far more than they rise."""
    tree = seeds_tree(untrained=(0.5,) * 6, trained=(0.52,) * 6, images=5)
    scatter = 0.2 * np.random.default_rng(2).normal(size=tree["coverage"]["coverage"].shape)
    tree["coverage"]["coverage"] += scatter
    claims = {(claim.subject, claim.claim): claim for claim in gf.SeedClaims().claims(tree)}
    together = claims["all runs", "risen in 0 of 0 runs"]
    assert (together.n, together.verdict) == (0, "inconclusive: 6 open")
    assert np.isnan(together.value)


@pytest.mark.parametrize(
    ("risen", "fallen", "runs", "expected"),
    [
        (5, 0, 6, "agrees"),
        (4, 0, 6, "inconclusive: 2 open"),
        (4, 2, 6, "inconclusive"),
        (0, 3, 6, "inconclusive: 3 open"),
        (0, 4, 6, "disagrees"),
        (1, 4, 6, "disagrees"),
        (2, 0, 2, "inconclusive: 2 runs"),
    ],
)
def test_all_runs_are_judged_by_what_the_open_ones_could_come_to(risen, fallen, runs, expected):
    assert of_all(risen, fallen, runs) == expected


def test_variation_over_seeds_is_that_of_sgd_alone():
    claims = found(trained=(0.95, 0.955, 0.945, 0.95, 0.5, 0.4))
    seeds = claims["mlp digits", "trained: CV over seeds"]
    assert seeds.n == 4
    assert seeds.value == pytest.approx(100 * stats.variation([0.95, 0.955, 0.945, 0.95], ddof=1))
    assert seeds.verdict == "agrees"
    assert claims["mlp digits", "trained: CV over all runs"].verdict == "disagrees"
    assert verdict("trained: CV over seeds", trained=(0.95, 0.93, 0.91, 0.95, 0.95, 0.95)) == "inconclusive"


def test_untrained_coverage_varies_more():
    assert verdict("SD untrained > SD trained") == "agrees"
    even = (0.2, 0.2001, 0.2002, 0.2003, 0.2, 0.2)
    assert verdict("SD untrained > SD trained", untrained=even, trained=(0.9, 0.7, 0.8, 0.6, 0.9, 0.9)) == "disagrees"


def test_optimisers_share_the_first_seed():
    claim = found()["mlp digits", "optimisers differ mildly"]
    assert claim.n == 3
    assert claim.value == pytest.approx(1.5)
    assert claim.verdict == "agrees"
    assert verdict("optimisers differ mildly", trained=(0.95, 0.2, 0.95, 0.95, 0.8, 0.9)) == "disagrees"


def test_without_initial_weights_no_run_is_judged():
    ds = seeds_tree()["coverage"].to_dataset()
    bare = ds.isel(encoder=[i for i, epoch in enumerate(ds["epoch"].values) if epoch])
    claims = gf.SeedClaims().claims(xr.DataTree.from_dict({"coverage": bare}))
    single = [claim for claim in claims if claim.claim == "trained > untrained"]
    assert {claim.verdict for claim in single} == {"inconclusive: no control"}
    assert all(np.isnan(claim.value) for claim in single)
    assert not [claim for claim in claims if claim.subject == "all runs"]


def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    values = 10 + rng.normal(size=(400, 5))
    inside = [low <= 0.1 <= high for _, low, high in map(variation_interval, values)]
    assert 0.92 < np.mean(inside) < 0.98
    pairs = zip(3 * rng.normal(size=(400, 5)), rng.normal(size=(400, 5)), strict=True)
    inside = [low <= 3 <= high for _, low, high in (deviation_ratio(*pair) for pair in pairs)]
    assert 0.92 < np.mean(inside) < 0.98
    assert np.isnan(variation_interval([1.0])).all()
    assert np.isnan(deviation_ratio([1.0, 2.0], [1.0, 1.0])).all()


def test_tables_of_runs_and_of_spread():
    summary = gf.SeedSummary()
    (_, headers, rows), (_, heads, spread) = summary.tables(summary.compute(seeds_tree()))
    assert headers[-3:] == ["0", "1", "5"]
    told = dict(zip(headers, rows[1], strict=True))
    assert (told["run"], told["optimiser"], told["seed"], told["n"]) == ("mlp-seed1", "sgd", "1", "20")
    assert (told["0"], told["5"]) == ("50", "95.5")
    assert dict(zip(headers, rows[5], strict=True))["optimiser"] == "rmsprop"
    by_group = {row[2]: dict(zip(heads, row, strict=True)) for row in spread}
    assert by_group["seeds"]["untrained (%)"] == "20–80"
    assert (by_group["optimisers"]["runs"], by_group["optimisers"]["trained (%)"]) == ("3", "95–96.5")
    assert by_group["all runs"]["runs"] == "6"


def test_another_variant_is_another_network_and_one_seed_counts_once():
    ds = seeds_tree()["coverage"].to_dataset()
    runs = covered_runs(ds, ds["coverage"].isel(probeset=0))
    assert len(by_network(runs)) == 1
    twice = [*runs, runs[0]]
    assert [one.seed for one in over_seeds(twice)] == [one.seed for one in over_seeds(runs)]
    assert [one.optimiser for one in over_optimisers(twice)] == [one.optimiser for one in over_optimisers(runs)]
    smooth = ["smooth" if str(name).startswith("mlp-seed1") else "" for name in ds["encoder"].values]
    other = ds.assign_coords(variant=("encoder", np.array(smooth, dtype=object)))
    assert len(by_network(covered_runs(other, other["coverage"].isel(probeset=0)))) == 2
