from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from geoframe.errors import BadInput
from geoframe.statistics.pairing import (
    ABSENT,
    UNCLEAR,
    Network,
    in_order,
    initial,
    network_names,
    networks,
    numbers_of,
)


def results(names: list[str], **coords: list[Any]) -> xr.Dataset:
    texts = {"encoder": np.array(names, dtype=object)}
    for name, values in coords.items():
        dtype = object if isinstance(values[0], str) else None
        texts[name] = ("encoder", np.array(values, dtype=dtype))
    return xr.Dataset(coords=texts)


def test_checkpoints_share_the_control_that_is_stored():
    ds = results(
        ["a-init", "a1", "a", "b"],
        training=["random", "x", "x", "x"],
        network=["a-init", "a-init", "a-init", "b"],
        control=["", "a-init", "a-init", ""],
    )
    assert networks(ds) == [Network("a-init", ("a1", "a")), Network("", ("b",), ABSENT)]
    assert network_names(ds) == ["a-init", "a-init", "a-init", ""]


def test_a_control_may_not_say_that_it_is_random():
    ds = results(["a", "plain"], network=["a", "a"], control=["plain", ""])
    assert initial(ds).values.tolist() == [False, True]
    assert networks(ds) == [Network("plain", ("a",))]


def test_a_control_that_was_selected_away_is_absent():
    ds = results(["a", "r"], training=["x", "random"], network=["a", "a"], control=["r", ""])
    assert networks(ds.sel(encoder=["a"])) == [Network("", ("a",), ABSENT)]


def test_coordinates_whose_names_were_taken():
    ds = results(["a", "r"], training=["x", "random"], encoder_network=["a", "a"], encoder_control=["r", ""])
    assert networks(ds.assign_coords(control=("encoder", [1.0, 2.0]))) == [Network("r", ("a",))]


def test_older_results_are_paired_by_what_both_have():
    ds = results(
        ["m", "m-r", "f", "f-r", "lone", "seed1"],
        architecture=["mlp"] * 4 + ["cnn", "mlp"],
        dataset=["MNIST", "MNIST", "Fashion", "Fashion", "MNIST", "MNIST"],
        seed=[0, 0, 0, 0, 0, 1],
        training=["x", "random", "x", "random", "x", "x"],
    )
    found = {network.trained: network for network in networks(ds)}
    assert found["m",].control == "m-r"
    assert found["f",].control == "f-r"
    assert found["lone",] == Network("", ("lone",), ABSENT)
    assert found["seed1",] == Network("", ("seed1",), ABSENT), "other seeds start elsewhere"
    pretrained = results(["t", "t-r"], architecture=["vit"] * 2, seed=[-1, 0], training=["imagenet", "random"])
    assert networks(pretrained) == [Network("t-r", ("t",))]


def test_older_results_that_could_be_paired_in_two_ways_are_not():
    two = results(["a", "a-r", "b", "b-r"], architecture=["net"] * 4, training=["x", "random"] * 2)
    assert {network.problem for network in networks(two)} == {UNCLEAR}
    one_copy = results(["a", "b", "a-r"], architecture=["net"] * 3, training=["x", "x", "random"])
    assert [network.problem for network in networks(one_copy)] == [UNCLEAR]
    assert network_names(one_copy) == ["", "", ""]


def test_results_without_architectures_are_not_paired():
    ds = results(["a", "r"], training=["x", "random"])
    assert networks(ds) == [Network("", ("a",), ABSENT), Network("r", ())]


def test_an_unknown_step_is_never_sorted_as_one():
    steps = numbers_of(results(["a", "b", "c"], step=[30, -1, 2]), "step")
    assert in_order(["a", "c"], steps) == ["c", "a"]
    with pytest.raises(BadInput, match="how long 'b' was trained isn't known"):
        in_order(["a", "b"], steps)


def test_checkpoints_without_steps_stay_as_they_come():
    unknown = numbers_of(results(["z", "a"]), "step")
    assert in_order(["z", "a"], unknown) == ["z", "a"]
