"""Which encoders are one network at several ε."""

from __future__ import annotations

import numpy as np
import xarray as xr

import geoframe as gf
from geoframe.encoders.published import EPSILONS, robust_resnet50
from geoframe.merge import spec_coords
from geoframe.statistics.families import NO_BASELINE, UNCLEAR, epsilons_of, families
from geoframe.training.published import adversarial_family, photo_training


def of_specs(*encoders: gf.Encoder) -> xr.Dataset:
    names = np.array([encoder.label for encoder in encoders], dtype=object)
    return xr.Dataset(coords={"encoder": names, **spec_coords(encoders, (), taken={"encoder"})})


def test_published_and_own_networks_say_their_epsilon_alike():
    recipe = photo_training("resnet18", width=0.125)
    own = adversarial_family(recipe, (1, 0, 0.25))
    ds = of_specs(*own, *(robust_resnet50(e) for e in EPSILONS))
    assert ds["epsilon"].dims == ("encoder",)
    assert ds["epsilon"].dtype == float
    mine, public = families(ds)
    assert mine.names == tuple(f"resnet18-photo-crops-eps{e}" for e in ("0", "0.25", "1"))
    assert (mine.epsilons, mine.training, mine.problem) == ((0.0, 0.25, 1.0), "photo-crops", "")
    assert public.epsilons == EPSILONS
    assert (public.label, public.training, public.problem) == ("resnet50", "adversarial-l2", "")


def test_initial_weights_and_plain_trainings_are_in_no_family():
    recipe = photo_training("resnet18", width=0.125)
    copies = (gf.TrainedEncoder(recipe), gf.TrainedEncoder(recipe, step="init"))
    ds = of_specs(*copies, *adversarial_family(recipe, (0, 0.5)))
    assert list(epsilons_of(ds)) == ["resnet18-photo-crops-eps0", "resnet18-photo-crops-eps0.5"]
    assert families(of_specs(*copies)) == []
    adversarial = adversarial_family(recipe, (0.5,))[0].evolve(step="init", name="copy")
    assert families(of_specs(adversarial)) == []


def test_seeds_and_checkpoints_are_families_of_their_own():
    recipe = photo_training("resnet18", width=0.125, checkpoints=(2,))
    seeds = [recipe.evolve(seed=seed, name=f"seed{seed}") for seed in (0, 1)]
    trained = [encoder for one in seeds for encoder in adversarial_family(one, (0, 1))]
    early = [encoder.evolve(step=2, name=f"{encoder.label}-early") for encoder in trained]
    found = families(of_specs(*trained, *early))
    assert [family.epsilons for family in found] == [(0.0, 1.0)] * 4
    assert {family.problem for family in found} == {""}


def test_what_cannot_be_compared_says_why():
    recipe = photo_training("resnet18", width=0.125)
    (alone,) = families(of_specs(*adversarial_family(recipe, (0.5, 1))))
    assert alone.problem == NO_BASELINE
    wider = photo_training("resnet18", width=0.25).evolve(name="wider")  # width is no coordinate
    (mixed,) = families(of_specs(*adversarial_family(recipe, (0, 1)), *adversarial_family(wider, (0, 1))))
    assert mixed.problem == UNCLEAR
