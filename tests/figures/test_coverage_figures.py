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
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[-2:] == ["published, same class", "published, different class"]
    assert len(legend) == 6
    assert not faults(figure)


def test_two_networks_of_one_architecture_have_groups_of_their_own(faults):
    """Each with its own random copy, as the results know it; without that, copies stand apart."""
    names = np.array(["relu", "relu-random", "gelu", "gelu-random"], dtype=object)
    known = {"network": ["relu", "relu", "gelu", "gelu"], "control": ["relu-random", "", "gelu-random", ""]}
    coords = {name: ("encoder", np.array(values, dtype=object)) for name, values in known.items()}
    plain = {}
    for name, node in coverage_tree().children.items():
        ds = node.to_dataset().isel(encoder=[0, 1, 0, 1], probeset=[0])
        plain[name] = ds.assign_coords(encoder=names)
    exact = {name: ds.assign_coords(coords) for name, ds in plain.items()}
    for nodes, labels, means in (
        (exact, ["relu\nmnist", "gelu\nmnist"], 8),
        (plain, [f"{name}\nmnist" for name in names], 8),
    ):
        (figure,) = CoverageDesign().draw(xr.DataTree.from_dict(nodes)).values()
        (ax,) = figure.axes
        assert [label.get_text().replace("-\n", "-") for label in ax.get_xticklabels()] == labels
        assert len(ax.containers) == means
        places = [container.lines[0].get_xdata()[0] for container in ax.containers]
        assert len(set(places)) == means, "no marker hides another"
        assert not faults(figure)


def test_a_single_image(faults):
    tree = xr.DataTree.from_dict({k: v.to_dataset().isel(image=[0]) for k, v in coverage_tree().children.items()})
    for kind in (CoverageDesign, CoverageByOutcome):
        (figure,) = kind().draw(tree).values()
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
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:2] == ["from the least to the largest radius", "median radius"]
    assert legend[-2:] == ["as wide as the ray is long", "the search's cap"]
    assert not faults(figure)


def test_rays_that_all_reach_the_cap(faults):
    ds = tube_tree()["tube"].to_dataset()
    ds["radius"], ds["minimum"] = xr.full_like(ds["radius"], 3.0), xr.full_like(ds["minimum"], 3.0)
    tree = xr.DataTree.from_dict({"tube": ds.assign(censored=xr.ones_like(ds["censored"]))})
    (figure,) = TubeRadii().draw(tree).values()
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "median beyond the cap" in legend
    assert "median radius" not in legend
    assert not faults(figure)


def test_tubes_without_any_ray():
    ds = tube_tree()["tube"].to_dataset()
    assert TubeRadii().draw(xr.DataTree.from_dict({"tube": ds.assign(radius=ds["radius"] * np.nan)})) == {}


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
