from __future__ import annotations

import numpy as np
import xarray as xr

from geoframe.figures.coverage import CoverageByOutcome, CoverageDesign
from geoframe.figures.figure import save_all
from geoframe.figures.tube import TubeRadii
from tests.coverage_trees import coverage_tree, tube_tree


def test_the_design_has_four_means_for_each_classifier(faults):
    (figure,) = CoverageDesign(note="a note").draw(coverage_tree()).values()
    (ax,) = figure.axes
    assert len(ax.containers) == 8  # one bar and marker each
    tree = coverage_tree()["coverage"].to_dataset()
    expected = 100 * float(tree["coverage"].sel(encoder="mlp", probeset="mnist").mean())
    means = [container.lines[0].get_ydata()[0] for container in ax.containers]
    assert any(abs(mean - expected) < 1e-9 for mean in means)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["mlp\nmnist", "cnn\nfashion"]
    assert len(figure.legends[0].get_texts()) == 4
    assert not faults(figure)


def test_outcomes_of_trained_encoders_with_their_counts(faults):
    (figure,) = CoverageByOutcome().draw(coverage_tree()).values()
    (ax,) = figure.axes
    assert len(ax.containers) == 4
    right = int(coverage_tree()["coverage"]["correct"].sel(encoder="mlp", probeset="mnist").sum())
    assert ax.get_xticklabels()[0].get_text() == f"mlp\nmnist\n{right} / {30 - right}"
    assert not faults(figure)


def test_the_legend_names_what_the_first_group_lacks():
    ds = coverage_tree()["coverage"].to_dataset()
    ds["correct"] = ds["correct"] | (ds["encoder"] == "mlp")
    (figure,) = CoverageByOutcome().draw(xr.DataTree.from_dict({"coverage": ds})).values()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["correct", "misclassified"]


def test_nothing_to_draw():
    tree = coverage_tree()
    unlabelled = tree["coverage"].to_dataset().assign_coords(label=(("probeset", "image"), np.full((2, 30), -1)))
    assert CoverageByOutcome().draw(xr.DataTree.from_dict({"coverage": unlabelled})) == {}


def test_tubes_are_ordered_and_missing_rays_left_out(faults):
    (figure,) = TubeRadii().draw(tube_tree()).values()
    wide, narrow = figure.axes
    assert [ax.get_title() for ax in (wide, narrow)] == ["wide\ndigits", "narrow\ndigits"]
    lows = [segment[0][1] for segment in narrow.collections[0].get_segments()]
    assert len(lows) == 29
    assert lows == sorted(lows)
    assert wide.texts[0].get_text() == "100 % of 30 rays ≥ 1"
    assert not faults(figure)


def test_many_panels(faults):
    ds = tube_tree()["tube"].to_dataset()
    more = [ds.assign_coords(encoder=np.array([f"{name}-{i}" for name in ("a", "b")], dtype=object)) for i in range(2)]
    tree = xr.DataTree.from_dict({"tube": xr.concat(more, "encoder")})
    (figure,) = TubeRadii(note="a note that is long enough to be wrapped " * 4).draw(tree).values()
    assert sum(ax.axison for ax in figure.axes) == 4
    assert not faults(figure)


def test_file_names(tmp_path):
    tree = xr.DataTree.from_dict({**coverage_tree().to_dict(), **tube_tree().to_dict()})
    paths = save_all((CoverageDesign(), CoverageByOutcome(), TubeRadii()), tree, tmp_path)
    assert [path.name for path in paths] == ["coverage_design.png", "coverage_by_outcome.png", "tube_radii.png"]
