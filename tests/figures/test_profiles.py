"""Fig. 1a and 1b: what is drawn, how, and whether it can be read."""

from __future__ import annotations

import numpy as np
import pytest

from geoframe.errors import UnknownName
from geoframe.figures.profiles import RatioProfiles
from geoframe.figures.style import log_limits, log_ticks, looks, wrap

NOTE = "A long note about what the picture can't say by itself, which has to be wrapped to the figure's width. " * 2


def only(figures):
    (figure,) = figures.values()
    return figure, figure.axes[0]


def lines_of(ax):
    """Lines with data: the reference line apart."""
    return [line for line in ax.lines if len(line.get_xdata()) > 2]


def test_images_are_thin_and_their_median_is_bold(pair):
    _, ax = only(RatioProfiles().draw(pair))
    *thin, bold = lines_of(ax)
    ratio = pair["ratio"]["ratio"].sel(encoder="lite0", probeset="photos")
    assert len(thin) == 6
    assert max(line.get_linewidth() for line in thin) < bold.get_linewidth() / 2
    np.testing.assert_allclose(bold.get_ydata(), ratio.median("image"))
    np.testing.assert_array_equal([line.get_ydata() for line in thin], ratio)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one image", "median of 6 images"]


def test_axes_are_logarithmic_labelled_and_have_the_line_at_one(pair):
    for figure in (RatioProfiles(), RatioProfiles(median=True)):
        _, ax = only(figure.draw(pair))
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert "η" in ax.get_xlabel()
        assert "L2 in raw [0,1] pixels" in ax.get_xlabel()
        assert "response ratio" in ax.get_ylabel()
        reference = [line for line in ax.lines if len(line.get_xdata()) == 2]
        assert [list(line.get_ydata()) for line in reference] == [[1, 1]]


def test_trained_is_solid_random_is_dashed_in_the_same_colour(pair):
    figure, ax = only(RatioProfiles(median=True).draw(pair))
    trained, random = lines_of(ax)
    assert (trained.get_linestyle(), random.get_linestyle()) == ("-", "--")
    assert trained.get_color() == random.get_color()
    np.testing.assert_allclose(
        random.get_ydata(), pair["ratio"]["ratio"].sel(encoder="lite0-random").median("image")[0]
    )
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["lite0", "lite0-random"]
    assert len(ax.collections) == 2  # the bands


def test_the_band_lies_within_the_axes(pair):
    _, ax = only(RatioProfiles(median=True).draw(pair))
    low, high = ax.get_ylim()
    for collection in ax.collections:
        heights = collection.get_paths()[0].vertices[:, 1]
        heights = heights[np.isfinite(heights)]
        assert low <= heights.min()
        assert heights.max() <= high


def test_the_band_is_one_standard_error(pair):
    from geoframe.summaries.bump import bump

    _, ax = only(RatioProfiles(median=True, replicates=50, seed=3).draw(pair))
    expected = bump(pair["ratio"].to_dataset(), replicates=50, seed=3).sel(encoder="lite0", probeset="photos")
    top = ax.collections[0].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(float((expected["median_ratio"] + expected["median_ratio_se"]).max()))


def test_encoder_and_probe_set_can_be_chosen(many):
    drawn = RatioProfiles(encoder="resnet50-random", probeset="a64").draw(many)
    assert list(drawn) == ["fig1a_profiles_resnet50-random_a64"]
    assert len(lines_of(only(drawn)[1])) == 4 + 1  # padded images are not drawn
    assert list(RatioProfiles(median=True, probeset="a64").draw(many)) == ["fig1b_medians_a64"]
    with pytest.raises(UnknownName, match="no encoder 'resnet5'; did you mean 'resnet50'"):
        RatioProfiles(encoder="resnet5").draw(many)
    with pytest.raises(UnknownName, match="no probeset"):
        RatioProfiles(median=True, probeset="b").draw(many)


@pytest.mark.parametrize("note", ["", NOTE])
@pytest.mark.parametrize("figure", [RatioProfiles(), RatioProfiles(median=True), RatioProfiles(encoder="wide" * 12)])
def test_no_text_is_cut_or_overlaps(many, faults, figure, note):
    for drawn in figure.evolve(note=note).draw(many).values():
        assert faults(drawn) == []


def test_medians_are_drawn_for_every_probe_set(many):
    sets = many["ratio"]["probeset"].values
    assert list(RatioProfiles(median=True).draw(many)) == [f"fig1b_medians_{name}" for name in sets]
    assert list(RatioProfiles(median=True, name="mine").draw(many)) == [f"mine_{name}" for name in sets]
    assert list(RatioProfiles(median=True, probeset=str(sets[0])).draw(many)) == [f"fig1b_medians_{sets[0]}"]


def test_results_without_coordinates_are_drawn_as_trained(pair):
    bare = pair["ratio"].to_dataset().drop_vars(["architecture", "training", "epsilon"])
    pair["ratio"] = bare
    _, ax = only(RatioProfiles(median=True).draw(pair))
    assert {line.get_linestyle() for line in lines_of(ax)} == {"-"}
    assert len({line.get_color() for line in lines_of(ax)}) == 2


@pytest.mark.parametrize("median", [False, True])
def test_nothing_measured_is_said(pair, faults, median):
    pair["ratio"]["ratio"][:] = np.nan
    figure, ax = only(RatioProfiles(median=median).draw(pair))
    words = [t.get_text() for t in (*ax.texts, *(t for legend in figure.legends for t in legend.get_texts()))]
    assert any("no data" in w.replace("\u00a0", " ") for w in words)
    assert faults(figure) == []


@pytest.mark.parametrize("median", [False, True])
def test_holes_zeros_and_wide_ranges(pair, faults, median):
    ratio = pair["ratio"]["ratio"].values
    ratio *= np.logspace(-4, 2, 9)
    ratio[:, :, :, 0] = np.nan
    ratio[:, :, 2:5, 4] = 0
    figure, ax = only(RatioProfiles(median=median).draw(pair))
    assert faults(figure) == []
    low, high = ax.get_ylim()
    assert low < np.nanmin(ratio[ratio > 0][:1]) * 10
    assert high > 1


def test_one_image_and_three_scales(tree_of, faults):
    tree = tree_of([("solo", "solo", "trained")], ["photos"], [1], scales=3)
    for figure in (RatioProfiles(), RatioProfiles(median=True)):
        drawn, _ = only(figure.draw(tree))
        assert faults(drawn) == []


def test_figures_of_other_encoders_have_other_names():
    figures = (RatioProfiles(), RatioProfiles(encoder="a"), RatioProfiles(probeset="p"), RatioProfiles(median=True))
    assert [figure.label for figure in figures] == ["fig1a", "fig1a_a", "fig1a_p", "fig1b"]


def test_a_random_copy_follows_its_trained_sibling_even_listed_first():
    a, b, c, d = looks(["net", "net", "net", "other"], [True, False, False, True])
    assert (a.colour, a.marker) == (b.colour, b.marker)
    assert c.colour != b.colour
    assert d.colour not in (b.colour, c.colour)
    assert [x.dashed for x in (a, b, c, d)] == [True, False, False, True]


def test_forty_nine_encoders_look_different():
    chosen = looks([f"n{i}" for i in range(49)], [False] * 49)
    assert len({(x.colour, x.marker) for x in chosen}) == 49


@pytest.mark.parametrize("limits", [(1e-5, 2e3), (0.02, 8), (0.5, 2), (0.3, 6), (1, 3), (1e-12, 1e9)])
def test_ticks_lie_inside_and_there_are_two_at_least(limits):
    places, labels = log_ticks(*limits, 6)
    assert 2 <= len(places) == len(labels) <= 7
    assert limits[0] <= min(places)
    assert max(places) <= limits[1] * (1 + 1e-9)


def test_limits_hold_the_values_and_one():
    low, high = log_limits([np.nan, 0.0, 5.0, 2.0])
    assert low < 1
    assert high > 5
    assert log_limits([]) == pytest.approx((0.5, 2.0))


def test_names_are_wrapped_without_losing_a_letter():
    name = "vit_small_patch16_224.augreg_in1k-random"
    wrapped = wrap(name, 18)
    assert wrapped.replace("\n", "") == name
    assert max(map(len, wrapped.split("\n"))) <= 18
    assert max(map(len, wrap("x" * 50, 18).split("\n"))) <= 18
