from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from geoframe.figures.long_tail import LongTailCoverage, LongTailFlows
from tests.band_trees import COUNTS, band_tree

KINDS = (LongTailFlows, LongTailCoverage)


def twice(tree: xr.DataTree) -> xr.DataTree:
    """The same two times, under long names."""
    nodes = {}
    for name, node in tree.children.items():
        ds = node.to_dataset()
        names = [
            np.array([f"{text}-fashionmnist-lt{i}" for text in ds["encoder"].values], dtype=object) for i in (1, 2)
        ]
        nodes[name] = xr.concat([ds.assign_coords(encoder=one) for one in names], "encoder", data_vars="minimal")
    return xr.DataTree.from_dict(nodes)


def test_bars_are_the_flows_with_the_published_one_beside(faults):
    (figure,) = LongTailFlows().draw(band_tree()).values()
    (ax,) = figure.axes
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["low\nn = 100", "medium\nn = 12", "high\nn = 12", "low,\npublished"]
    heights = [patch.get_height() for patch in ax.patches]
    np.testing.assert_allclose(heights[:3], [18, 47, 35])
    np.testing.assert_allclose(heights[-3:], [17.6, 47.2, 35.2])
    assert "Hatched" in figure.texts[0].get_text()
    assert not faults(figure)


def test_no_published_flow_of_other_trainings(faults):
    (figure,) = LongTailFlows(note="a note").draw(band_tree(dataset="digits")).values()
    assert len(figure.axes[0].patches) == 9
    assert "Hatched" not in figure.texts[0].get_text()
    assert not faults(figure)


def test_points_are_the_means(faults):
    (figure,) = LongTailCoverage().draw(band_tree()).values()
    (ax,) = figure.axes
    drawn = dict(zip(*ax.containers[0].lines[0].get_data(), strict=True))
    assert drawn == pytest.approx({0: 95, 1: 90, 2: 90, 3: 92, 4: 95, 7: 94, 8: 95, 11: 91})
    assert ax.get_ylim()[1] >= 100
    assert not faults(figure)


def test_few_images_are_hollow(faults):
    (figure,) = LongTailCoverage().draw(band_tree([(9, 0, 4, 0.9), (9, 9, 20, 0.9)])).values()
    (ax,) = figure.axes
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in hollow] == [[3]]
    assert not faults(figure)


@pytest.mark.parametrize("kind", KINDS)
def test_several_networks(kind, faults):
    (figure,) = kind().draw(twice(band_tree())).values()
    assert not faults(figure)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_draw(kind):
    assert kind().draw(band_tree(counts=dict.fromkeys(COUNTS, 5))) == {}
