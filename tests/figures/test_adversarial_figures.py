"""Fig. 2a by ε, and prediction and peak against ε."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import geoframe as gf
from geoframe.encoders.published import EPSILONS
from geoframe.statistics.peaks import peaks
from tests.adversarial_trees import ETA, adversarial_tree

NOTE = "What has to be said beside the figure, at some length, so that it takes two lines or more. " * 2


def family(count: int, probesets: tuple[str, ...] = ("val64",)):
    """A family of so many ε; the last network's peak lies beyond the ladder."""
    places = [*np.geomspace(0.3, 10, count - 1), 300.0]
    drops, heights = np.geomspace(1, 2000, count), np.linspace(4, 9, count)
    return adversarial_tree(places, drops, EPSILONS[:count], heights=heights, probesets=probesets)


def test_each_median_has_its_peak_marked():
    tree = family(4)
    ((stem, figure),) = gf.BudgetProfiles(replicates=20).draw(tree).items()
    assert stem == "fig2a_adversarial"
    (ax,) = figure.axes
    lines = [line for line in ax.lines if len(line.get_xdata()) == len(ETA)]
    medians = tree["ratio"]["ratio"].median("image").isel(probeset=0).values
    np.testing.assert_allclose([line.get_ydata() for line in lines], medians)
    marks = [line for line in ax.lines if len(line.get_xdata()) == 1]
    found = peaks(ETA, medians)
    np.testing.assert_allclose([mark.get_xdata()[0] for mark in marks], found.scale)
    np.testing.assert_allclose([mark.get_ydata()[0] for mark in marks], found.height)
    assert [mark.get_marker() for mark in marks] == ["o", "o", "o", "^"]
    assert marks[-1].get_markerfacecolor() == "white"
    assert [text.get_text() for text in figure.legends[0].texts] == [f"ε = {e:g}" for e in EPSILONS[:4]]


def test_colours_go_from_dark_to_light_with_epsilon_whatever_the_order():
    tree = family(6)
    turned = tree["ratio"].to_dataset().isel(encoder=[3, 0, 5, 1, 4, 2])
    tree["ratio"].dataset = turned
    (figure,) = gf.BudgetProfiles(replicates=20).draw(tree).values()
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == len(ETA)]
    light = [
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), to_rgb(line.get_color()), strict=True)) for line in lines
    ]
    assert light == sorted(light)
    assert min(np.diff(light)) > 0.03
    assert max(light) < 0.8
    assert [line.get_label() for line in lines] == [f"ε = {e:g}" for e in EPSILONS[:6]]


def test_a_figure_a_probe_set_or_the_one_that_is_asked_for():
    tree = family(3, ("val64", "a64"))
    assert list(gf.BudgetProfiles(replicates=5).draw(tree)) == ["fig2a_adversarial_val64", "fig2a_adversarial_a64"]
    assert list(gf.BudgetProfiles(replicates=5, probeset="a64").draw(tree)) == ["fig2a_adversarial_a64"]
    tree["ratio"]["ratio"][:, 1] = np.nan
    assert list(gf.BudgetProfiles(replicates=5).draw(tree)) == ["fig2a_adversarial_val64"]


def test_two_families_have_figures_of_their_own():
    import xarray as xr

    one = family(3)["ratio"].to_dataset()
    names = {"encoder": [f"wide-{e}" for e in range(3)], "architecture": ("encoder", ["wide"] * 3)}
    tree = xr.DataTree.from_dict({"ratio": xr.concat([one, one.assign_coords(names)], "encoder", join="override")})
    assert list(gf.BudgetProfiles(replicates=5).draw(tree)) == ["fig2a_adversarial_net", "fig2a_adversarial_wide"]
    assert list(gf.BudgetTrends(replicates=5).draw(tree)) == ["adversarial_trends_net", "adversarial_trends_wide"]


def test_trends_show_medians_and_peaks_by_epsilon():
    tree = family(4, ("val64", "a64"))
    ((stem, figure),) = gf.BudgetTrends(replicates=20).draw(tree).items()
    assert stem == "adversarial_trends"
    left, right = figure.axes
    for j, container in enumerate(left.containers):
        middle = container.lines[0].get_ydata()
        np.testing.assert_allclose(middle, tree["ratio"]["prediction"].isel(probeset=j).median("image"))
    expected = peaks(ETA, tree["ratio"]["ratio"].median("image").values)
    drawn = [line.get_ydata() for line in right.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 4]
    np.testing.assert_allclose(drawn, expected.scale.T)
    open_ones = [line for line in right.lines if line.get_marker() == "^" and line.get_markerfacecolor() == "white"]
    assert [line.get_ydata().tolist() for line in open_ones] == [[100.0]] * 2
    assert [text.get_text() for text in left.get_xticklabels()] == ["0", "0.01", "0.03", "0.05"]
    assert (left.get_yscale(), right.get_yscale()) == ("log", "log")


def test_nothing_is_drawn_without_an_epsilon():
    tree = family(3)
    tree["ratio"]["epsilon"][:] = np.nan
    assert gf.BudgetProfiles().draw(tree) == {}
    assert gf.BudgetTrends().draw(tree) == {}


@pytest.mark.parametrize("note", ["", NOTE])
@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("probesets", [("val64",), ("val64", "a64", "o64", "sd64", "blur64")])
def test_no_text_is_cut_or_overlaps(count, probesets, note, faults):
    tree = family(count, probesets)
    for figure in (gf.BudgetProfiles(replicates=5, note=note), gf.BudgetTrends(replicates=5, note=note)):
        for stem, drawn in figure.draw(tree).items():
            assert faults(drawn) == [], stem
