"""Adversarial training's claims and table, on made-up results whose shifts, drops and shares are known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.summaries.adversarial_table import VARIABLES
from tests.adversarial_trees import ACCURACIES, ETA, adversarial_tree

STEP = ETA[1] / ETA[0]
PUBLISHED = {"training": "adversarial-l2", "probesets": ("val64",)}


def claims(tree: xr.DataTree, **fields: object) -> dict[tuple[str, str], xr.Dataset]:
    ds = gf.AdversarialClaims(**{"replicates": 200, **fields}).compute(tree)
    return {
        (str(c["subject"].item()), str(c["claim"].item())): c
        for c in (ds.isel(entry=i) for i in range(ds.sizes["entry"]))
    }


def said(claim: xr.Dataset) -> str:
    return str(claim["verdict"].item())


def numbers(claim: xr.Dataset) -> tuple[float, float, float]:
    return tuple(float(claim[name]) for name in ("value", "low", "high"))


def test_known_shifts_and_drops_are_found():
    found = claims(adversarial_tree())
    for epsilon, move, drop in ((0.25, 1 / 0.3, 30), (1, 20, 2000)):
        subject = f"digits-test300, ε={epsilon:g}"
        value, low, high = numbers(found[subject, "peak η ×"])
        assert value == pytest.approx(move, rel=0.15)
        assert low < move < high
        assert high / low < 2
        value, low, high = numbers(found[subject, "prediction m̃ ÷"])
        assert value == pytest.approx(drop, rel=0.1)
        assert low < drop < high
        assert int(found[subject, "prediction m̃ ÷"]["n"]) == 24
        assert said(found[subject, "peak η ×"]) == said(found[subject, "prediction m̃ ÷"]) == "agrees"
    assert [said(found["digits-test300", f"{what} rises with ε: ρ"]) for what in ("peak η", "height")] == ["agrees"] * 2
    assert float(found["digits-test300", "peak η rises with ε: ρ"]["value"]) == 1
    base = found["digits-test300", "ε=0 has a peak, at η"]
    assert said(base) == "agrees"
    assert numbers(base)[0] == pytest.approx(0.3, rel=0.15)
    assert not [key for key in found if key[1].startswith("some ε")]


def test_replicates_are_paired():
    """Images differ a hundredfold in their peak's place, and each one's moves by exactly four rungs."""
    tree = adversarial_tree((0.1, 0.1 * STEP**4), (1, 10), (0, 1), heights=(5, 5), spread=1.2)
    tree["ratio"]["ratio_se"][:] = 0
    value, low, high = numbers(claims(tree)["digits-test300, ε=1", "peak η ×"])
    np.testing.assert_allclose((value, low, high), 10, rtol=0.02)
    places = claims(tree)["digits-test300", "ε=0 has a peak, at η"]
    assert float(places["high"] / places["low"]) > 1.5


def test_the_other_direction_disagrees_and_no_change_is_inconclusive():
    found = claims(adversarial_tree((6, 1, 0.3), (2000, 30, 1), heights=(9, 6, 4)))
    assert said(found["digits-test300, ε=1", "peak η ×"]) == "disagrees"
    assert said(found["digits-test300, ε=1", "prediction m̃ ÷"]) == "disagrees"
    assert said(found["digits-test300", "peak η rises with ε: ρ"]) == "disagrees"
    assert said(found["digits-test300", "height rises with ε: ρ"]) == "disagrees"
    same = claims(adversarial_tree((1, 1), (1, 1), (0, 1), heights=(5, 5)))
    assert said(same["digits-test300, ε=1", "peak η ×"]) == "inconclusive"
    assert said(same["digits-test300, ε=1", "prediction m̃ ÷"]) == "inconclusive"
    assert said(same["digits-test300", "peak η rises with ε: ρ"]) == "inconclusive: too few peaks"


def test_the_published_range_counts_for_the_published_family_on_its_probe_set_only():
    def moved(**where: object) -> dict[tuple[str, str], xr.Dataset]:
        return claims(adversarial_tree(**where))

    def verdicts(found: dict[tuple[str, str], xr.Dataset], name: str) -> list[str]:
        return [said(found[f"{name}, ε={e}", c]) for c in ("peak η ×", "prediction m̃ ÷") for e in ("0.25", "1")]

    low = "inconclusive: below range"
    found = moved(**PUBLISHED)
    assert verdicts(found, "val64") == [low, "agrees", low, "agrees"]
    assert said(found["val64", "some ε: peak η ×"]) == said(found["val64", "some ε: m̃ ÷"]) == "agrees"
    assert verdicts(moved(training="digits", probesets=("val64",)), "val64") == ["agrees"] * 4
    assert verdicts(moved(training="adversarial-l2", probesets=("a64",)), "a64") == ["agrees"] * 4
    far = claims(adversarial_tree((0.05, 0.1, 6), (1, 30, 9000), **PUBLISHED))
    assert said(far["val64, ε=1", "peak η ×"]) == "inconclusive: above range"
    assert said(far["val64", "some ε: peak η ×"]) == "disagrees"
    assert said(far["val64", "some ε: m̃ ÷"]) == "disagrees"


def test_a_peak_at_the_end_of_the_ladder_is_a_lower_bound_and_says_so():
    summary = gf.AdversarialClaims(replicates=200)
    tree = adversarial_tree((0.3, 1, 300))
    found = claims(tree)
    move = found["digits-test300, ε=1", "peak η ×"]
    assert said(move) == "agrees, censored"
    assert bool(move["at_least"])
    assert float(move["value"]) == pytest.approx(100 / 0.3, rel=0.15)
    assert np.isinf(float(move["high"]))
    assert float(found["digits-test300", "peak η rises with ε: ρ"]["value"]) == 1
    assert said(found["digits-test300", "height rises with ε: ρ"]) == "inconclusive: too few peaks"
    rows = {(row[0], row[1]): row for row in summary.rows(summary.compute(tree))[1]}
    assert rows["digits-test300, ε=1", "peak η ×"][3].startswith("≥ 3")
    assert "∞]" in rows["digits-test300, ε=1", "peak η ×"][3]


def test_without_a_peak_nothing_is_compared():
    censored = claims(adversarial_tree((300, 1, 6)))
    assert said(censored["digits-test300, ε=1", "peak η ×"]) == "inconclusive: ε=0 censored"
    assert said(censored["digits-test300", "ε=0 has a peak, at η"]) == "inconclusive: censored"
    assert not np.isfinite(numbers(censored["digits-test300, ε=1", "peak η ×"])).any()
    flat = claims(adversarial_tree(heights=(1, 6, 9)))
    assert said(flat["digits-test300, ε=1", "peak η ×"]) == "inconclusive: no peak at ε=0"
    other = claims(adversarial_tree(heights=(4, 1, 9)))
    assert said(other["digits-test300, ε=0.25", "peak η ×"]) == "inconclusive: no peak"
    assert said(other["digits-test300, ε=0.25", "share by m̃"]) == "inconclusive: no peak"
    assert said(other["digits-test300, ε=1", "peak η ×"]) == "agrees"


@pytest.mark.parametrize(
    ("drop", "rise", "verdict"),
    [
        (100.0, 1.0, "agrees"),
        (1.0, 100.0, "disagrees"),
        (100.0, 3.0, "agrees"),
        (3.0, 100.0, "disagrees"),
        (1000.0, 0.1, "agrees"),
    ],
)
def test_the_share_of_the_rise_is_that_of_the_prediction(drop, rise, verdict):
    """The response is multiplied by `rise` at every scale, the prediction divided by `drop`: log r rises by both."""
    tree = adversarial_tree((1, 1), (1, 1), (0, 1), heights=(5, 5))
    node = tree["ratio"].to_dataset()
    noise = xr.DataArray(np.exp(np.random.default_rng(1).normal(0, 0.1, (2, 24))), dims=("encoder", "image"))
    node["prediction"][1] = node["prediction"][0] / drop
    node["response"][1] = node["response"][0] * rise
    node["response"] = node["response"] * noise
    tree["ratio"].dataset = node
    found = claims(tree)["digits-test300, ε=1", "share by m̃"]
    assert float(found["value"]) == pytest.approx(np.log(drop) / np.log(drop * rise), abs=0.03)
    assert said(found) == verdict


def test_where_r_does_not_rise_there_is_no_share():
    tree = adversarial_tree((1, 1), (1, 1), (0, 1), heights=(5, 5))
    tree["ratio"]["response"][1] = tree["ratio"]["response"][0] / 3
    tree["ratio"]["prediction"][1] = tree["ratio"]["prediction"][0] / 2
    assert said(claims(tree)["digits-test300, ε=1", "share by m̃"]) == "inconclusive: rise not certain"


def test_few_images_have_no_interval_and_images_without_a_rung_are_left_out():
    few = claims(adversarial_tree(images=8))
    assert said(few["digits-test300, ε=1", "peak η ×"]) == "inconclusive: no interval"
    assert said(few["digits-test300, ε=1", "prediction m̃ ÷"]) == "inconclusive: no interval"
    tree = adversarial_tree()
    tree["ratio"]["ratio"][1, 0, 5] = np.nan
    found = claims(tree)
    assert int(found["digits-test300, ε=1", "peak η ×"]["n"]) == 23


def test_few_images_do_not_show_that_the_baseline_has_a_peak():
    for images in (1, 9):
        base = claims(adversarial_tree(images=images))["digits-test300", "ε=0 has a peak, at η"]
        assert said(base) == "inconclusive: few images"
    assert said(claims(adversarial_tree(images=10))["digits-test300", "ε=0 has a peak, at η"]) == "agrees"


PAIR = ("peak η ×", "prediction m̃ ÷", "share by m̃")


@pytest.mark.parametrize("rungs", [0, 2])
def test_a_baseline_without_data_leaves_every_claim_open_and_says_so(rungs):
    tree = adversarial_tree(**PUBLISHED)
    tree["ratio"]["ratio"][0, ..., rungs:] = np.nan
    found = claims(tree)
    assert len(found) == len(claims(adversarial_tree(**PUBLISHED)))
    for epsilon in ("0.25", "1"):
        verdicts = {said(found[f"val64, ε={epsilon}", claim]) for claim in PAIR}
        assert verdicts == {"inconclusive: no data at ε=0"}
    assert said(found["val64", "ε=0 has a peak, at η"]) == "inconclusive: no data"
    assert said(found["val64", "some ε: m̃ ÷"]) == "inconclusive: none"


def test_a_network_without_data_takes_nothing_from_the_others():
    tree = adversarial_tree()
    tree["ratio"]["ratio"][1] = np.nan
    found = claims(tree)
    assert {said(found["digits-test300, ε=0.25", claim]) for claim in PAIR} == {"inconclusive: no data"}
    assert {said(found["digits-test300, ε=1", claim]) for claim in PAIR} == {"agrees"}
    assert said(found["digits-test300", "ε=0 has a peak, at η"]) == "agrees"


def test_without_any_valid_ratio_claims_are_open_and_what_was_not_measured_has_none():
    tree = adversarial_tree(probesets=("first", "second"))
    tree["ratio"]["ratio"][:] = np.nan
    tree["ratio"]["response"][:, 1] = np.nan
    found = claims(tree)
    assert {subject.split(",")[0] for subject, _ in found} == {"first"}
    assert all(said(claim).startswith("inconclusive: ") for claim in found.values())


def test_families_that_cannot_be_compared_say_why():
    tree = adversarial_tree(epsilons=(0.1, 0.25, 1.0))
    assert said(claims(tree)["net", "ε > 0 against ε = 0"]) == "inconclusive: no ε = 0"
    tree["ratio"]["epsilon"][:] = np.nan
    summary = gf.AdversarialClaims()
    assert summary.rows(summary.compute(tree))[0] == ["nothing to compare"]
    table = gf.AdversarialSummary()
    assert table.rows(table.compute(tree))[0] == ["nothing to compare"]


def test_two_families_are_told_apart():
    one, other = adversarial_tree()["ratio"].to_dataset(), adversarial_tree((0.3, 0.3, 0.3))["ratio"].to_dataset()
    names = {"encoder": [f"wide-{e}" for e in range(3)], "architecture": ("encoder", ["wide"] * 3)}
    both = xr.concat([one, other.assign_coords(names)], "encoder", join="override")
    found = claims(xr.DataTree.from_dict({"ratio": both}))
    assert said(found["net digits-test300, ε=1", "peak η ×"]) == "agrees"
    assert said(found["wide digits-test300, ε=1", "peak η ×"]) != "agrees"


def test_the_table_has_accuracies_peaks_and_predictions_by_epsilon():
    tree = adversarial_tree((300, 0.3, 1.0), epsilons=(1.0, 0.0, 0.25), heights=(9, 4, 6))
    summary = gf.AdversarialSummary(replicates=50)
    ds = summary.compute(tree)
    assert list(ds.data_vars) == list(VARIABLES)
    assert ds["budget"].values.tolist() == [0, 0.25, 1]
    assert ds["censored"].values[:, 0].tolist() == [False, False, True]
    expected = tree["ratio"]["prediction"].median("image").sel(encoder=ds["encoder"])
    np.testing.assert_allclose(ds["prediction"], expected)
    for name, value in ACCURACIES.items():
        assert ds[name].values.tolist() == [value] * 3
    bump = gf.BumpSummary(replicates=50).compute(tree).sel(encoder=ds["encoder"])
    inside = ~ds["censored"]
    for name in ("peak_scale", "peak_height", "peak_height_se", "log10_peak_scale_se"):
        np.testing.assert_allclose(ds[name].where(inside), bump[name].where(inside))
    headers, rows = summary.rows(ds)
    last = dict(zip(headers, rows[-1], strict=True))
    assert (last["ε"], last["peak η"], last["train %"], last["test %"]) == ("1", "≥ 100", "90", "80")
    del tree["training"]
    assert summary.compute(tree)["train_accuracy"].isnull().all()
