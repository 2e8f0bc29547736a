"""Claims about the bump's formation, on made-up checkpoints with known peaks."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.statistics.courses import courses
from geoframe.summaries.formation import FormationClaims
from geoframe.summaries.formation_table import FormationSummary
from tests.bump_trees import RISES, STEPS, formation_tree, without_data

CLAIMS = ["no bump at first", "bump at the end", "emerges early", "kept afterwards"]


def verdicts(**changes) -> list[str]:
    """Verdicts on the first probe set."""
    ds = FormationClaims(replicates=200).compute(formation_tree(**changes))
    assert ds["claim"].values.tolist()[:4] == CLAIMS
    return ds["verdict"].values.tolist()[:4]


def test_a_bump_that_forms_early_and_stays_agrees_on_every_set():
    ds = FormationClaims(replicates=200).compute(formation_tree())
    assert ds["verdict"].values.tolist() == ["agrees"] * 8
    assert {text.split(" on ")[1] for text in ds["subject"].values} == {"cifar16", "cifar16train"}
    assert ds["value"].values[2:4].tolist() == [1.0, 100.0]  # step 100 of 10000; both later checkpoints
    height = ds.isel(entry=1)
    assert float(height["low"]) < 6 < float(height["high"])


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ((3.0, 3.0, 4.0, 5.0, 6.0), ["disagrees", "agrees", "inconclusive: bump at first", "agrees"]),
        ((RISES, 1.0, 1.0, 1.0, 1.0), ["agrees", "disagrees", "inconclusive: no bump", "inconclusive: no bump"]),
        ((1.0, 1.0, 1.0, 1.0, 4.0), ["agrees", "agrees", "disagrees", "inconclusive: no later one"]),
        ((1.0, 1.0, 4.0, RISES, RISES), ["agrees", "inconclusive: censored", "agrees", "disagrees"]),
        ((1.0, 1.0, 4.0, 4.0, -4.0), ["agrees", "inconclusive: censored", "agrees", "disagrees"]),
        ((1.0, 4.0, 1.0, 1.0, 4.0), ["agrees", "agrees", "agrees", "disagrees"]),
    ],
)
def test_each_claim_can_fail(heights, expected):
    assert verdicts(heights=heights) == expected


def test_a_peak_at_the_rules_edge_decides_nothing():
    assert verdicts(heights=(1.0, 1.0, 4.0, 4.0, 1.3))[1] == "inconclusive"


def test_few_images_say_nothing():
    assert verdicts(images=6) == ["inconclusive: few images"] * 4


def test_steps_beyond_a_tenth_are_late():
    assert verdicts(steps=(0, 1, 1000, 5000, 10000))[2] == "agrees"
    assert verdicts(steps=(0, 1, 1001, 5000, 10000))[2] == "disagrees"


def test_short_trainings_have_no_early():
    assert verdicts(steps=(0, 1, 10, 100, 600))[2] == "inconclusive: only 600 steps"


def test_checkpoints_of_two_networks_are_kept_apart_and_in_order():
    tree = formation_tree(architectures=("resnet18", "vgg16"))
    tree["ratio"].dataset = tree["ratio"].to_dataset().isel(encoder=slice(None, None, -1))
    found = courses(tree["ratio"].to_dataset())
    assert [course.label for course in found] == ["vgg16", "resnet18"]
    assert [course.steps for course in found] == [STEPS, STEPS]
    assert all(name.startswith(course.label) for course in found for name in course.names)


def test_initial_weights_alone_give_no_claims():
    tree = formation_tree(steps=(0,), heights=(RISES,))
    summary = FormationClaims()
    assert summary.rows(summary.compute(tree))[0] == ["nothing to compare"]


def test_without_initial_weights_three_claims_are_left():
    ds = FormationClaims(replicates=100).compute(formation_tree(steps=(1, 10, 10000), heights=(1.0, 4.0, 5.0)))
    assert ds["claim"].values.tolist() == CLAIMS[1:] * 2


def test_an_empty_checkpoint_takes_no_images_from_the_others():
    tree = formation_tree()
    ds = tree["ratio"].to_dataset()
    ratio = ds["ratio"].copy()
    ratio[1] = np.nan
    tree["ratio"].dataset = ds.assign(ratio=ratio)
    found = FormationClaims(replicates=100).compute(tree)
    assert found["verdict"].values.tolist()[:4] == ["agrees"] * 4
    assert found["n"].values[0] == 16


def judged(tree: xr.DataTree) -> list[tuple[str, float, int]]:
    """Verdict, value and n of the claims on the first probe set."""
    ds = FormationClaims(replicates=100).compute(tree).isel(entry=slice(4))
    return list(zip(*(ds[name].values.tolist() for name in ("verdict", "value", "n")), strict=True))


@pytest.mark.parametrize("rungs", [0, 2])
def test_initial_weights_without_data_decide_nothing(rungs):
    first, end, early, kept = judged(without_data(formation_tree(), "resnet18-cifar10-random", rungs=rungs))
    assert (first[0], first[2]) == ("inconclusive: no data", 0)
    assert [claim[0] for claim in (end, early, kept)] == ["agrees"] * 3


def test_a_last_checkpoint_without_data_neither_lacks_the_bump_nor_loses_it():
    first, end, early, kept = judged(without_data(formation_tree(), "resnet18-cifar10-step10000"))
    assert end[0] == "inconclusive: no data"
    assert kept == ("agrees", 100, 16)
    assert (first[0], early) == ("agrees", ("agrees", 1, 16))


def test_a_checkpoint_without_data_in_the_middle_has_not_lost_the_bump():
    assert judged(without_data(formation_tree(), "resnet18-cifar10-step1000"))[3] == ("agrees", 100, 16)


def test_without_data_of_any_trained_weights_nothing_is_known():
    tree = formation_tree()
    for step in STEPS[1:]:
        tree = without_data(tree, f"resnet18-cifar10-step{step}", rungs=2)
    assert [claim[0] for claim in judged(tree)] == ["agrees", *["inconclusive: no data"] * 3]
    without_data(tree, "resnet18-cifar10-random", rungs=2)
    assert [claim[0] for claim in judged(tree)] == ["inconclusive: no data"] * 4


def test_the_table_has_a_row_a_checkpoint_with_accuracies():
    summary = FormationSummary(replicates=50)
    ds = summary.compute(formation_tree(architectures=("resnet18", "vgg16")))
    first, second = summary.tables(ds)
    assert (first[0], second[0]) == ("formation: resnet18", "formation: vgg16")
    rows = [dict(zip(first[1], row, strict=True)) for row in first[2]]
    assert [row["step"] for row in rows] == [*map(str, STEPS)] * 2
    assert [row["bump"] for row in rows[:5]] == ["censored: rises", "no: no peak", "yes", "yes", "yes"]
    assert (rows[0]["test %"], rows[0]["train %"]) == ("5", "10")
    assert rows[2]["peak height"].startswith("4.")
    assert rows[0]["peak η"] == "–"
    assert summary.rows(ds)[1][0] == ["formation: resnet18", *first[2][0]]


def test_a_checkpoint_without_a_valid_ratio_has_a_row_that_says_so():
    tree = formation_tree()
    ds = tree["ratio"].to_dataset()
    ratio = ds["ratio"].copy()
    ratio[1] = np.nan
    tree["ratio"].dataset = ds.assign(ratio=ratio, response=xr.ones_like(ratio))
    summary = FormationSummary(replicates=20)
    _, headers, rows = summary.tables(summary.compute(tree))[0]
    assert [row[headers.index("bump")] for row in rows[:2]] == ["censored: rises", "no data"]


def test_accuracies_are_missing_where_nothing_was_trained():
    ds = FormationSummary(replicates=20, training="absent").compute(formation_tree())
    assert ds["test_accuracy"].isnull().all()
    assert ds["test_accuracy"].dims == ("encoder",)
