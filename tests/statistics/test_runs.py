"""Which encoders are one training, in which order, and what provenance says of it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.statistics.runs import accuracies, batch_norm, family, label, optimiser, probe_fields, recipe, runs
from tests.run_trees import expansion_tree, seeds_tree


def test_checkpoints_of_each_training_in_order():
    ds = expansion_tree()["gi"].to_dataset()
    order = np.random.default_rng(0).permutation(ds.sizes["encoder"])
    found = {run.name: run for run in runs(ds.isel(encoder=order))}
    assert sorted(found) == ["net-seed0", "net-seed1", "net-seed2"]
    run = found["net-seed1"]
    assert run.encoders == ("net-seed1-random", *(f"net-seed1-epoch{i}" for i in (1, 2, 3)), "net-seed1")
    assert run.epochs == (0, 1, 2, 3, 4)
    assert run.trained == run.encoders[1:]
    assert run.has_initial


def test_without_initial_weights_all_are_trained():
    ds = expansion_tree()["gi"].to_dataset()
    (run,) = runs(ds.isel(encoder=[3, 1]))
    assert run.encoders == run.trained == ("net-seed0-epoch1", "net-seed0-epoch3")
    assert not run.has_initial


def test_initial_weights_alone_are_a_run_with_nothing_trained():
    (run,) = runs(expansion_tree(runs=1)["gi"].to_dataset().isel(encoder=[0]))
    assert (run.name, run.trained) == ("net-seed0-random", ())


def test_accuracies_go_by_name():
    tree = expansion_tree()
    backwards = tree["gi"]["encoder"][::-1]
    found = accuracies(tree, backwards)
    assert found.values.tolist() == tree["training"]["test_accuracy"].values[::-1].tolist()
    bare = xr.DataTree.from_dict({"gi": tree["gi"].to_dataset()})
    assert accuracies(bare, backwards).isnull().all()


def test_provenance_is_read_in_both_ways_of_writing_numbers():
    ds = expansion_tree()["gi"].to_dataset()
    assert recipe(ds, "net-seed0")["lr"] == 0.0625
    assert recipe(ds, "unknown") == {}
    assert probe_fields(ds)["cap"] == 20
    assert batch_norm(recipe(ds, "net-seed0")) == "yes"
    assert batch_norm({}) == "?"
    assert optimiser(seeds_tree()["coverage"].to_dataset(), "mlp-adam") == "adam"
    assert optimiser(ds.drop_attrs(), "net-seed0") == "?"


@pytest.mark.parametrize(("drop", "expected"), [((), "mlp digits"), (("architecture", "dataset"), "net-seed0")])
def test_what_seeds_share(drop, expected):
    ds = expansion_tree()["gi"].to_dataset().drop_vars(drop)
    assert family(ds, "net-seed0") == expected
    assert label(ds, "net-seed2", "seed") == "2"
    assert label(ds, "net-seed2", "nothing") == ""
