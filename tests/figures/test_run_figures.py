from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.figures.style import PALETTE
from tests.run_trees import expansion_tree, seeds_tree


def bold(ax):
    return [line for line in ax.lines if line.get_linewidth() > 1]


def test_three_panels_with_thin_runs_and_a_bold_mean(faults):
    (figure,) = gf.ExpansionCurves(note="a note").draw(expansion_tree()).values()
    assert [ax.get_title() for ax in figure.axes] == ["mean GI", "GI > 1", "test accuracy"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["diagonals of the input box", "rays (%)", "test images (%)"]
    assert [len(ax.lines) for ax in figure.axes] == [8, 8, 4]
    rsv, random = bold(figure.axes[0])
    assert rsv.get_ydata() == pytest.approx([2.0, 0.5, 0.7, 0.8, 0.9], abs=0.01)
    assert random.get_ydata()[-1] == pytest.approx(0.65, abs=0.01)
    assert (rsv.get_color(), random.get_color()) == PALETTE[:2]
    assert rsv.get_marker() != random.get_marker()
    (accuracy,) = bold(figure.axes[2])
    assert accuracy.get_ydata() == pytest.approx([10, 50, 70, 80, 90])
    assert not faults(figure)


def test_the_mean_is_over_runs_that_all_have_the_epoch():
    tree = expansion_tree()
    nodes = {name: node.to_dataset().isel(encoder=[*range(10), *range(12, 15)]) for name, node in tree.children.items()}
    nodes["gi"]["gi"][10:] *= 2
    nodes["gi"]["gi_negative"][10:] *= 2
    (figure,) = gf.ExpansionCurves().draw(xr.DataTree.from_dict(nodes)).values()
    assert bold(figure.axes[0])[0].get_xdata().tolist() == [2, 3, 4]
    assert bold(figure.axes[0])[0].get_ydata()[-1] == pytest.approx(0.9 * 4 / 3, abs=0.02)


def test_without_accuracy_its_panel_is_empty(faults):
    (figure,) = gf.ExpansionCurves().draw(expansion_tree(accuracy=(np.nan,) * 5)).values()
    assert not bold(figure.axes[2])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "right singular vectors (RSV)",
        "random directions",
    ]
    assert not faults(figure)


def test_a_figure_a_network():
    tree = expansion_tree()
    for node in tree.children.values():
        labels = np.where(node["seed"].values == 2, "cnn", "mlp").astype(object)
        node.dataset = node.to_dataset().assign_coords(architecture=("encoder", labels))
    assert list(gf.ExpansionCurves().draw(tree)) == ["expansion-mlp_digits-digits", "expansion-cnn_digits-digits"]


def test_a_line_a_run_coloured_by_optimiser(faults):
    (figure,) = gf.CoverageRuns().draw(seeds_tree()).values()
    (ax,) = figure.axes
    assert len(ax.lines) == 6
    assert [line.get_color() for line in ax.lines] == [PALETTE[0]] * 4 + [PALETTE[1], PALETTE[2]]
    assert ax.lines[1].get_ydata() == pytest.approx([50, 95.5, 95.5])
    assert ax.lines[1].get_xdata().tolist() == [0, 1, 5]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SGD (4 seeds)", "Adam", "RMSprop"]
    assert not faults(figure)


def test_a_panel_a_network(faults):
    tree = seeds_tree()
    ds = tree["coverage"].to_dataset()
    labels = np.where(ds["seed"].values == 2, "cnn", "mlp").astype(object)
    ds = ds.assign_coords(architecture=("encoder", labels))
    drawn = gf.CoverageRuns().draw(xr.DataTree.from_dict({"coverage": ds}))
    (figure,) = drawn.values()
    assert [ax.get_title() for ax in figure.axes] == ["mlp digits\ndigits", "cnn digits\ndigits"]
    assert not faults(figure)


def test_nothing_measured_draws_nothing():
    def empty(tree: xr.DataTree) -> xr.DataTree:
        nodes = {name: node.to_dataset() for name, node in tree.children.items()}
        return xr.DataTree.from_dict({n: ds.map(_unknown, keep_attrs=True) for n, ds in nodes.items()})

    assert gf.CoverageRuns().draw(empty(seeds_tree())) == {}
    assert gf.ExpansionCurves().draw(empty(expansion_tree())) == {}


def _unknown(values: xr.DataArray) -> xr.DataArray:
    return values * np.nan if values.dtype.kind == "f" else values


def test_epochs_are_whole_numbers():
    tree = expansion_tree()
    for node in tree.children.values():
        epochs = 2.5 * node["epoch"].values
        node.dataset = node.to_dataset().assign_coords(epoch=("encoder", epochs))
    (figure,) = gf.ExpansionCurves().draw(tree).values()
    for ax in figure.axes:
        ticks = ax.get_xticks()
        assert len(ticks) > 2
        assert (ticks == ticks.round()).all()
        assert ax.get_xlim()[0] <= ticks.min() <= ticks.max() <= ax.get_xlim()[1]
