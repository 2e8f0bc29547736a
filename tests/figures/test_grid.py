"""Fig. 3 and 4: the grid of encoders and probe sets."""

from __future__ import annotations

import numpy as np
import pytest

from geoframe.figures.grid import RatioGrid


def lines_of(ax):
    return [line for line in ax.lines if len(line.get_xdata()) > 2]


def test_each_cell_has_a_line_an_image(many):
    (figure,) = RatioGrid().draw(many).values()
    axes = np.array(figure.axes).reshape(12, 5)
    counts = [[len(lines_of(ax)) for ax in row] for row in axes]
    assert counts == [[6, 4, 6, 1, 5]] * 12
    ratio = many["ratio"]["ratio"].values
    np.testing.assert_array_equal(lines_of(axes[3, 1])[2].get_ydata(), ratio[3, 1, 2])


def test_axes_are_shared_logarithmic_and_titled(many):
    (figure,) = RatioGrid(training="trained").draw(many).values()
    axes = figure.axes
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    assert {(ax.get_xscale(), ax.get_yscale()) for ax in axes} == {("log", "log")}
    assert [ax.get_title().replace("\n", "") for ax in axes[:5]] == [str(n) for n in many["ratio"]["probeset"].values]
    words = " ".join(t.get_text() for t in figure.texts)
    assert "L2 in raw [0,1] pixels" in words
    assert "response ratio" in words


@pytest.mark.parametrize(("training", "rows", "stem"), [("trained", 9, "fig3_trained"), ("random", 3, "fig4_random")])
def test_training_chooses_the_rows(many, training, rows, stem):
    drawn = RatioGrid(training=training).draw(many)
    assert list(drawn) == [stem]
    assert len(drawn[stem].axes) == rows * 5


def test_nothing_of_the_kind_draws_nothing(tree_of):
    tree = tree_of([("a", "a", "trained")], ["photos"], [2])
    assert RatioGrid(training="random").draw(tree) == {}


def test_an_empty_cell_says_so(many):
    many["ratio"]["ratio"][1, 2] = np.nan
    (figure,) = RatioGrid().draw(many).values()
    said = [[t.get_text() for t in ax.texts] for ax in figure.axes]
    assert said[7] == ["no data"]
    assert sum(map(len, said)) == 1


@pytest.mark.parametrize("note", ["", "What has to be said beside the figure, at length. " * 4])
@pytest.mark.parametrize("training", [None, "trained", "random"])
def test_no_text_is_cut_or_overlaps(many, faults, training, note):
    (figure,) = RatioGrid(training=training, note=note).draw(many).values()
    assert faults(figure) == []


@pytest.mark.parametrize("note", ["", "A note that is longer than the one cell is wide, so it is wrapped."])
@pytest.mark.parametrize("shape", [(1, 1), (20, 5), (1, 5), (6, 1), (20, 1), (1, 7)])
def test_sizes_from_one_cell_to_a_hundred(tree_of, faults, shape, note):
    encoders = [(f"vit_small_patch16_{i}.augreg_in1k", "", "trained") for i in range(shape[0])]
    tree = tree_of(encoders, [f"a_long_set_name_{j}" for j in range(shape[1])], [1] * shape[1], scales=17)
    (figure,) = RatioGrid(note=note).draw(tree).values()
    assert sum(ax.axison for ax in figure.axes) == shape[0] * shape[1]
    assert faults(figure) == []


@pytest.mark.parametrize(("shape", "across"), [((20, 1), 5), ((41, 1), 6), ((1, 7), 4)])
def test_one_long_row_or_column_is_wrapped(tree_of, shape, across):
    encoders = [(f"e{i}", "", "trained") for i in range(shape[0])]
    tree = tree_of(encoders, [f"s{j}" for j in range(shape[1])], [1] * shape[1])
    (figure,) = RatioGrid().draw(tree).values()
    shown = [ax for ax in figure.axes if ax.axison]
    assert {ax.get_subplotspec().get_gridspec().ncols for ax in shown} == {across}
    names = tree["ratio"]["encoder" if shape[1] == 1 else "probeset"].values
    assert [ax.get_title() for ax in shown] == [*names]
    ratio = tree["ratio"]["ratio"].values.reshape(max(shape), -1)
    for ax, values in zip(shown, ratio, strict=True):
        np.testing.assert_array_equal(lines_of(ax)[0].get_ydata(), values)
    labelled = [ax.xaxis.get_tick_params()["labelbottom"] for ax in shown]
    assert labelled == [False] * (max(shape) - across) + [True] * across
