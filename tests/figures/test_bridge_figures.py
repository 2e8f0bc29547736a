"""The bridge study's figures: every dot and mark is there, no text overlaps, and nothing is drawn from nothing."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.figures.bridge import SHOWN
from tests.bridge_trees import bridge_tree


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    made = bridge_tree()
    return xr.DataTree.from_dict(
        {
            **{name: node.to_dataset() for name, node in made.children.items()},
            "bridge": gf.BridgeSummary(replicates=50).compute(made),
        }
    )


def test_scatter_has_a_row_a_state_and_a_dot_an_image(tree, faults) -> None:
    (figure,) = gf.BridgeScatter(note="Small data.").draw(tree).values()
    assert len(figure.axes) == 4 * 3, "initial networks have no peaks"
    for ax in figure.axes:
        dots = [line for line in ax.lines if line.get_linestyle() == "None"]
        assert [len(line.get_xdata()) for line in dots] == [40, 40]
        assert "ρ = 0.9" in ax.get_title()
        assert ax.get_xscale() == ax.get_yscale() == "log"
    assert not faults(figure)


def test_rays_that_leave_at_once_are_on_the_left_edge(faults) -> None:
    made = bridge_tree()
    node = made["isotropic-gi"]
    found = node.to_dataset()
    found["distance"][{"image": 0}] = 0.0
    node.dataset = found
    (figure,) = gf.BridgeScatter().draw(made).values()
    for ax in figure.axes:
        edge = ax.get_xlim()[0]
        assert min(min(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "None") == pytest.approx(edge)
    assert not faults(figure)


def test_forest_has_a_mark_for_each_relation_that_was_measured(tree, faults) -> None:
    (figure,) = gf.BridgeForest().draw(tree).values()
    assert [ax.get_title() for ax in figure.axes] == ["features", "logits", "margin"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*SHOWN.values()]
    ds = tree["bridge"].to_dataset()
    for ax in figure.axes:
        assert len(ax.containers) == int(np.isfinite(ds["rho"].sel(output=ax.get_title(), relation=[*SHOWN])).sum())
    assert not faults(figure)


def test_without_peaks_nothing_is_drawn(tree) -> None:
    ds = tree["response"].to_dataset()
    flat = ds.assign(response=xr.ones_like(ds["response"]))
    bare = xr.DataTree.from_dict({"response": flat, "isotropic-gi": tree["isotropic-gi"].to_dataset()})
    assert gf.BridgeScatter().draw(bare) == {}
    empty = gf.BridgeSummary(replicates=10).compute(bare)
    assert gf.BridgeForest().draw(xr.DataTree.from_dict({"bridge": empty})) == {}
