"""Of every summary: each variable says what it is, and the tables fit a terminal of 120 columns."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
import geoframe.statistics
from geoframe.errors import BadInput
from geoframe.summaries.adversarial import AdversarialClaims
from geoframe.summaries.adversarial_table import AdversarialSummary
from geoframe.summaries.attack_claims import AttackClaims
from geoframe.summaries.attacks import AttackSummary
from geoframe.summaries.blurring import BlurClaims
from geoframe.summaries.bounds import BoundsSummary
from geoframe.summaries.bridge import BridgeSummary
from geoframe.summaries.bump import BumpSummary
from geoframe.summaries.coverage import CoverageSummary, CoverageTests
from geoframe.summaries.expansion import ExpansionSummary
from geoframe.summaries.expansion_claims import ExpansionClaims
from geoframe.summaries.formation import FormationClaims
from geoframe.summaries.formation_table import FormationSummary
from geoframe.summaries.intervention_claims import InterventionClaims
from geoframe.summaries.interventions import InterventionSummary
from geoframe.summaries.long_tail import LongTailSummary
from geoframe.summaries.long_tail_claims import LongTailClaims
from geoframe.summaries.ood import OodClaims
from geoframe.summaries.profile_table import ProfileSummary
from geoframe.summaries.random_labels import RandomLabelClaims
from geoframe.summaries.randomised import RandomisedClaims
from geoframe.summaries.seed_claims import SeedClaims
from geoframe.summaries.seeds import SeedSummary
from geoframe.summaries.spectrum import SpectrumClaims, SpectrumSummary
from geoframe.summaries.tube import TubeSummary
from geoframe.summary import Summary, described
from tests.adversarial_trees import adversarial_tree
from tests.arm_trees import intervention_tree, labelled_tree
from tests.attack_trees import attack_tree
from tests.band_trees import band_tree
from tests.bridge_trees import bridge_tree
from tests.bump_trees import controls_tree, formation_tree
from tests.coverage_trees import coverage_tree, ood_tree, tube_tree
from tests.figures.conftest import PAIR, make_tree
from tests.run_trees import expansion_tree, seeds_tree
from tests.spectrum_trees import bounds_tree, spectrum_tree

WIDTH = 120


def ratio_tree() -> xr.DataTree:
    tree = make_tree(PAIR, ["photos"], [6])
    ds = tree["ratio"].to_dataset()
    used = xr.full_like(ds["ratio"], 32, dtype=np.int64)
    tree["ratio"].dataset = ds.assign(valid=ds["ratio"].notnull(), directions_used=used)
    return tree


TREES = {
    AdversarialClaims: adversarial_tree,
    AdversarialSummary: adversarial_tree,
    AttackClaims: attack_tree,
    AttackSummary: attack_tree,
    BlurClaims: controls_tree,
    BoundsSummary: bounds_tree,
    BridgeSummary: bridge_tree,
    BumpSummary: lambda: make_tree(PAIR, ["photos"], [6]),
    CoverageSummary: coverage_tree,
    CoverageTests: coverage_tree,
    ExpansionClaims: expansion_tree,
    ExpansionSummary: expansion_tree,
    InterventionClaims: intervention_tree,
    InterventionSummary: intervention_tree,
    SeedClaims: seeds_tree,
    SeedSummary: seeds_tree,
    LongTailClaims: band_tree,
    LongTailSummary: band_tree,
    OodClaims: ood_tree,
    FormationClaims: formation_tree,
    FormationSummary: formation_tree,
    RandomisedClaims: controls_tree,
    ProfileSummary: ratio_tree,
    RandomLabelClaims: labelled_tree,
    SpectrumClaims: spectrum_tree,
    SpectrumSummary: spectrum_tree,
    TubeSummary: tube_tree,
}
HOPS = {"minimum", "median", "minimum_by_point"}
UNITS = {  # what isn't a pure number
    BridgeSummary: dict.fromkeys(("peak_median", "q25_median", "b_median"), "raw-pixel L2"),
    ExpansionClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    ExpansionSummary: {
        **dict.fromkeys(("gi_median", "gi_mean", "gi_mean_low", "gi_mean_high"), "scaled direction"),
        "distance_mean": "raw-pixel L2",
    },
    SeedClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    InterventionClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    InterventionSummary: dict.fromkeys(("gi", "gi_sd"), "scaled direction"),
    RandomLabelClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    LongTailClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    OodClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    AdversarialClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    AttackClaims: dict.fromkeys(("value", "low", "high"), "see units"),
    AttackSummary: {"distance": "raw-pixel L2", "distance_inf": "raw-pixel L∞"},
    AdversarialSummary: {
        **dict.fromkeys(("budget", "peak_scale"), "L2 in raw [0, 1] pixels"),
        "log10_peak_scale_se": "decade",
        **{f"prediction{end}": "squared feature L2 / η²" for end in ("", "_low", "_high")},
    },
    **dict.fromkeys(
        (BlurClaims, FormationClaims, RandomisedClaims), dict.fromkeys(("value", "low", "high"), "see units")
    ),
    TubeSummary: {f"{n}{end}": "hop" for n in HOPS for end in ("", "_low", "_high")},
    SpectrumClaims: dict.fromkeys(("first", "second", "difference"), "scaled direction"),
    SpectrumSummary: {
        "gi_median": "scaled direction",
        "distance_mean": "raw-pixel L2",
        **{
            f"{name}{end}": "scaled direction"
            for name in ("gi_mean", "gi_first", "gi_last", "alpha_first", "alpha_last")
            for end in ("", "_low", "_high")
        },
    },
    BumpSummary: {
        "peak_scale": "L2 in raw [0, 1] pixels",
        **dict.fromkeys(("log10_peak_scale_se", "width", "width_se"), "decade"),
    },
    FormationSummary: {
        "peak_scale": "L2 in raw [0, 1] pixels",
        **dict.fromkeys(("log10_peak_scale_se", "width", "width_se"), "decade"),
    },
}


def tree_of(kind: type[Summary]) -> xr.DataTree:
    """The made-up tree, each of its variables with attributes that a summary must not inherit."""
    tree = TREES[kind]()
    for node in tree.children.values():
        for name in node.data_vars:
            node[name].attrs = {"units": "of the probe", "long_name": f"the probe's {name}", "more": "from the probe"}
    return tree


def test_every_summary_is_looked_at():
    for module in pkgutil.iter_modules(geoframe.summaries.__path__):
        importlib.import_module(f"geoframe.summaries.{module.name}")
    assert {kind for kind in kinds(Summary) if kind.__module__.startswith("geoframe.summaries")} == set(TREES)


def kinds(base: type[Summary]) -> set[type[Summary]]:
    """Every summary below a base, bases of others left out."""
    below = {kind for child in base.__subclasses__() for kind in kinds(child) | {child}}
    return below - {gf.Claims}


@pytest.mark.parametrize("kind", TREES, ids=lambda kind: kind.__name__)
def test_every_variable_has_units_and_a_long_name_of_its_own(kind):
    ds = kind().compute(tree_of(kind))
    assert ds.data_vars
    expected = UNITS.get(kind, {})
    for name, variable in ds.data_vars.items():
        assert set(variable.attrs) == {"units", "long_name"}, name
        assert variable.attrs["units"] == expected.get(name, "1"), name
    texts = [variable.attrs["long_name"] for variable in ds.data_vars.values()]
    assert len(set(texts)) == len(texts)
    assert not [text for text in texts if "the probe's" in text]


@pytest.mark.parametrize("kind", TREES, ids=lambda kind: kind.__name__)
def test_tables_fit_and_captions_name_the_paper(kind):
    tree = tree_of(kind)
    names = {"encoder": "mlp-digits-epoch1", "probeset": "digits-test300"}  # as long as those of preset quick
    if kind in (BumpSummary, ProfileSummary):
        names = {"encoder": "efficientnet_lite0-random", "probeset": "photos"}
    for node in tree.children.values():
        labels = {
            dim: np.array([f"{text[:-1]}{i}" for i in range(node.sizes[dim])], dtype=object)
            for dim, text in names.items()
            if dim in node.dims  # adversarial trees have a node of encoders alone
        }
        node.dataset = node.to_dataset().assign_coords(labels)
    summary = kind()
    for title, headers, rows in summary.tables(summary.compute(tree)):
        assert rows, title
        columns = zip(headers, *rows, strict=True)
        width = sum(max(map(len, column)) for column in columns) + 3 * len(headers) - 1
        assert width <= WIDTH, f"{title} has {width} columns"
        assert "nan" not in str(rows)
    for bare in ("B ", "B,", "(B", " A.4", "Table 6"):
        assert bare not in summary.caption
    if "F.1" in summary.caption or "§" in summary.caption:
        assert "Neural Expansion" in summary.caption


def test_a_variable_that_nothing_describes_is_refused():
    with pytest.raises(BadInput, match="computed b and doesn't say the units"):
        described(xr.Dataset({"a": 1, "b": 2}), {"a": ("1", "one")})
