"""Claims about blur and about random labels and data, on made-up networks with known peaks."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput
from geoframe.statistics.replicates import replicates_of
from geoframe.statistics.treatments import blur_levels, treated
from geoframe.summaries.blurring import BlurClaims
from geoframe.summaries.randomised import RandomisedClaims
from tests.bump_trees import GROWS, RISES, SETS, controls_tree, without_data

FLAT = (1.0,) * 6


def blur(**changes) -> dict[str, list[str]]:
    return blur_of(controls_tree(**changes))


def blur_of(tree: xr.DataTree) -> dict[str, list[str]]:
    ds = BlurClaims(replicates=200).compute(tree)
    claims = zip(ds["claim"].values, ds["verdict"].values, strict=True)
    found: dict[str, list[str]] = {}
    for claim, verdict in claims:
        found.setdefault(claim.split()[0], []).append(verdict)
    return found


def randomised(**changes) -> dict[str, str]:
    return randomised_of(controls_tree(**changes))


def randomised_of(tree: xr.DataTree) -> dict[str, str]:
    ds = RandomisedClaims(replicates=200).compute(tree)
    names = zip(ds["subject"].values, ds["claim"].values, strict=True)
    return dict(zip([f"{s}: {c}" for s, c in names], ds["verdict"].values.tolist(), strict=True))


def test_treatments_and_blurs_are_found_by_coordinates():
    ds = controls_tree()["ratio"].to_dataset()
    (one,) = treated(ds)
    assert one.label == "resnet18"
    assert {treatment: name.removeprefix("resnet18-") for treatment, name in one.encoders.items()} == {
        "clean": "clean",
        "blur1": "blur1",
        "blur2": "blur2",
        "random-labels": "random-labels",
        "random-data": "random-data",
        "initial": "random",
    }
    assert blur_levels(ds) == [(0.0, "cifar16"), (1.0, "cifar16b1"), (2.0, "cifar16b2")]


def test_seeds_are_told_apart_and_the_last_checkpoint_counts():
    ds = controls_tree()["ratio"].to_dataset()
    early = ds.isel(encoder=[0]).assign_coords(encoder=["early"], step=("encoder", [5]))
    other = ds.assign_coords(encoder=[f"{name}-1" for name in ds["encoder"].values], encoder_seed=("encoder", [1] * 6))
    found = treated(xr.concat([early, ds, other], "encoder", data_vars="minimal", coords="minimal", compat="override"))
    assert [one.label for one in found] == ["resnet18, seed 0", "resnet18, seed 1"]
    assert [one.encoders["clean"] for one in found] == ["resnet18-clean", "resnet18-clean-1"]


def test_growth_with_evaluation_blur_and_shrinking_with_training_blur():
    assert blur() == {"grows": ["agrees"] * 7, "shrinks": ["agrees"] * 7}


def test_the_opposite_disagrees():
    turned = {name: [row[i] for i in (3, 3, 2, 0, 4, 5)] for name, row in GROWS.items()}
    assert blur(heights=turned)["grows"] == ["disagrees"] * 7
    swapped = {"": GROWS["blur2"], "blur1": GROWS["blur1"], "blur2": GROWS[""]}
    assert blur(heights=swapped)["shrinks"] == ["disagrees"] * 7


def test_mostly_is_more_than_half():
    rows = {"": (4.0, 4.0, 6.0, 9.0, 4.0, 4.0), "blur1": (3.0, 3.0, 4.5, 4.5, 3.0, 3.0), "blur2": (2.0,) * 6}
    found = blur(heights=rows)["grows"]
    assert found[:3] == ["agrees"] * 3
    assert found[3:6].count("agrees") == 0
    assert found[-1] == "inconclusive"  # 3 of 6
    assert blur(heights={**rows, "blur2": (2.0, 2.0, 3.0, 3.0, 2.0, 2.0)})["grows"][-1] == "agrees"


def test_profiles_that_rise_to_the_end_are_not_compared():
    found = blur(heights={**GROWS, "": (4.0, 4.0, RISES, 9.0, 4.0, 4.0)})
    assert found["grows"][:2] == ["inconclusive: censored"] * 2
    assert found["grows"][-1] == "agrees"  # the other four of six


def test_no_bump_is_a_height_of_one():
    ds = BlurClaims(replicates=100).compute(controls_tree(heights={**GROWS, "blur2": FLAT}))
    last = ds.where(ds["subject"] == "σ 0: blur1, blur2", drop=True)
    np.testing.assert_allclose(last["value"], -2, atol=0.15)


def test_blurs_of_other_images_are_not_paired():
    ds = controls_tree()["ratio"].to_dataset()
    with pytest.raises(BadInput, match="hold other images"):
        replicates_of(ds, [("resnet18-clean", "cifar16"), ("resnet18-clean", "noise16")])


def test_without_a_peak_every_set_agrees_and_accuracies_stand_beside():
    found = randomised(train=0.895, test=0.106)
    told = {name for name, verdict in found.items() if verdict == "reported"}
    assert told == {"data: train accuracy", "data: test accuracy"}, "the paper gives none"
    assert {verdict for name, verdict in found.items() if name not in told} == {"agrees"}
    assert len(found) == 4 + 3 * len(SETS) - 2  # the clean network's bump on noise isn't claimed


@pytest.mark.parametrize(
    ("height", "verdict"),
    [(1.0, "agrees"), (1.2, "agrees"), (2.0, "agrees"), (RISES, "agrees"), (3.5, "disagrees"), (4.0, "disagrees")],
)
def test_a_peak_is_comparable_from_half_of_the_clean_networks(height, verdict):
    """The clean network's height is 4 on this set: half of its excess above 1 is reached at 2.5."""
    found = randomised(heights={**GROWS, "random-labels": (height, *FLAT[1:])})
    assert found["labels, cifar16: comparable peak"] == verdict
    assert found["labels, noise16: comparable peak"] == "agrees"


def test_at_half_it_is_inconclusive():
    found = randomised(heights={**GROWS, "random-data": (2.5, *FLAT[1:])})
    assert found["data, cifar16: comparable peak"] == "inconclusive"


def test_where_the_clean_network_has_no_peak_any_peak_counts():
    found = randomised(
        heights={**GROWS, "": (4.0, 1.0, 1.0, 1.0, 1.0, 1.0), "random-data": (1.0, 1.6, 1.0, 1.0, 1.0, 1.0)}
    )
    assert found["data, cifar16train: comparable peak"] == "disagrees"
    assert found["clean, cifar16train: bump"] == "disagrees"


def test_a_network_that_learned_little_says_nothing():
    found = randomised(train=0.6)
    assert found["labels: train accuracy"] == "inconclusive: memorised only 60 %"
    assert found["labels, cifar16: comparable peak"] == "inconclusive: memorised only 60 %"
    assert found["data, cifar16: comparable peak"] == "agrees"
    assert randomised(train=0.8)["labels, cifar16: comparable peak"] == "agrees"


def test_without_a_clean_peak_nothing_can_be_missing():
    found = randomised(heights={**GROWS, "": FLAT})
    assert found["labels, noise16: comparable peak"] == "inconclusive: clean has no peak"


def test_a_clean_peak_is_enough_where_its_decay_is_beyond_the_ladder():
    found = randomised(heights={**GROWS, "": (-4.0,) * 6})
    assert found["clean, cifar16: bump"] == "inconclusive: censored"
    assert found["labels, cifar16: comparable peak"] == "agrees"


def peaks_of(found: dict[str, str], who: str) -> set[str]:
    return {verdict for name, verdict in found.items() if name.startswith(f"{who}, ")}


@pytest.mark.parametrize("rungs", [0, 2])
def test_a_network_without_data_says_nothing(rungs):
    found = randomised_of(without_data(controls_tree(), "resnet18-random-labels", rungs=rungs))
    assert peaks_of(found, "labels") == {"inconclusive: no data"}
    assert peaks_of(found, "data") == {"agrees"}


@pytest.mark.parametrize("height", [1.0, 4.0, RISES])
def test_scales_that_end_before_the_clean_peak_say_nothing(height):
    """The clean network's peak is at 3; eight scales end at 0.56, eleven at 3.2."""
    heights = {**GROWS, "random-labels": (height,) * 6}
    short, longer = (
        peaks_of(randomised_of(without_data(controls_tree(heights), "resnet18-random-labels", rungs=n)), "labels")
        for n in (8, 11)
    )
    assert short == {"inconclusive: ends before the peak"}
    assert longer == {"agrees"}, "a profile that rises to its end has no peak"


def test_a_comparable_peak_counts_wherever_the_scales_end():
    tree = controls_tree({**GROWS, "random-labels": (4.0,) * 6})
    ds = tree["ratio"].to_dataset()
    moved = ds["ratio"].sel(encoder="resnet18-random-labels").shift(scale=-6).values  # peaks at 0.1, ends at 3.2
    ds["ratio"].loc[{"encoder": "resnet18-random-labels"}] = moved
    tree["ratio"].dataset = ds
    found = randomised_of(without_data(tree, "resnet18-random-labels", rungs=8))
    assert found["labels, cifar16: comparable peak"] == "disagrees"


def test_a_clean_network_without_data_has_no_height_to_compare_with():
    found = randomised_of(without_data(controls_tree(), "resnet18-clean"))
    assert peaks_of(found, "clean") == {"inconclusive: no data"}
    assert peaks_of(found, "labels") == {"inconclusive: clean has no data"}


@pytest.mark.parametrize("probeset", ["cifar16", "cifar16train"])
def test_each_set_is_judged_by_itself(probeset):
    tree = controls_tree({**GROWS, "random-labels": (1.6,) * 6})
    found = randomised_of(without_data(tree, "resnet18-clean", probeset))
    assert found.pop(f"clean, {probeset}: bump") == "inconclusive: no data"
    assert found.pop(f"labels, {probeset}: comparable peak") == "inconclusive: clean has no data"
    assert peaks_of(found, "clean") == peaks_of(found, "labels") == {"agrees"}


def test_blurs_without_data_are_not_compared():
    assert (
        blur_of(without_data(controls_tree(), "resnet18-clean", rungs=2))["grows"][:2] == ["inconclusive: no data"] * 2
    )


def test_a_test_accuracy_above_chance_disagrees():
    assert randomised(test=0.3)["labels: test accuracy"] == "disagrees"


@pytest.mark.parametrize(
    ("test", "images", "expected"),
    [
        (0.1, 40, "inconclusive"),
        (0.175, 40, "inconclusive"),
        (0.4, 40, "disagrees"),
        (0.106, 10000, "agrees"),
        (0.175, 10000, "disagrees"),
        (0.175, np.nan, "disagrees"),
    ],
)
def test_a_test_accuracy_counts_by_its_interval_where_its_images_are_known(test, images, expected):
    """Of 40 images and an accuracy of 10 %, 7 or more are right by a chance of one in ten."""
    tree = controls_tree(test=test)
    training = tree["training"].to_dataset()
    tree["training"].dataset = training.assign(test_images=xr.full_like(training["test_accuracy"], images))
    ds = RandomisedClaims(replicates=50).compute(tree)
    one = ds.isel(entry=int(np.flatnonzero((ds["subject"] == "labels") & (ds["claim"] == "test accuracy"))[0]))
    assert one["verdict"].item() == expected
    assert int(one["n"]) == np.nan_to_num(images)
    assert np.isnan(one["low"]) == np.isnan(images)


def test_without_accuracies_nothing_is_said_of_memorising():
    ds = RandomisedClaims(replicates=50, training="absent").compute(controls_tree())
    verdicts = dict(zip(ds["subject"].values, ds["verdict"].values, strict=True))
    assert verdicts["labels, cifar16"] == "inconclusive: accuracy not known"
    assert "labels" not in verdicts


def test_few_images_say_nothing():
    found = randomised(images=6)
    assert found["data, cifar16: comparable peak"] == "inconclusive: few images"
    assert set(blur(images=6)["grows"]) == {"inconclusive: few images", "inconclusive"}


def test_results_without_the_controls_have_no_claims():
    tree = controls_tree()
    tree["ratio"].dataset = tree["ratio"].to_dataset().drop_vars("variant")
    for summary in (BlurClaims(), RandomisedClaims()):
        assert summary.rows(summary.compute(tree))[0] == ["nothing to compare"]
