from __future__ import annotations

import numpy as np
import xarray as xr

from geoframe.figures.coverage import CoverageByOutcome
from geoframe.figures.interventions import InterventionCourses
from tests.arm_trees import COVERAGE, intervention_tree, labelled_tree


def test_a_row_a_network_with_seeds_and_means(faults):
    (figure,) = InterventionCourses(note="a note").draw(intervention_tree()).values()
    assert len(figure.axes) == 6
    assert [ax.get_title() for ax in figure.axes] == ["", "mlp on MNIST", "", "", "cnn on FashionMNIST", ""]
    coverage = figure.axes[2]
    assert coverage.get_ylabel() == "ray coverage (%)"
    thick = [line for line in coverage.lines if line.get_marker() != "None"]
    assert len(thick) == 3
    assert len(coverage.lines) == 3 * (3 + 1)
    np.testing.assert_allclose(thick[0].get_ydata(), [100 * COVERAGE["control"] * g for g in (0.5, 0.75, 1)])
    assert figure.axes[1].get_ylabel() == "mean GI\n(diagonals of the input box)"
    assert len({line.get_color() for line in thick}) == len({line.get_marker() for line in thick}) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["control", "expand", "restrict"]
    assert any("λ = 0.5, τ = 1, ε = 0.3 (ours). a note" in text.get_text().replace("\n", " ") for text in figure.texts)
    assert not faults(figure)


def test_one_network_and_what_is_missing(faults):
    tree = intervention_tree(networks={"mlp": "digits"})
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    nodes["training"] = nodes["training"].where(nodes["training"]["variant"] != "expand")
    (figure,) = InterventionCourses().draw(xr.DataTree.from_dict(nodes)).values()
    accuracy, gi, _ = figure.axes
    assert sum(line.get_marker() != "None" for line in accuracy.lines) == 2
    assert sum(line.get_marker() != "None" for line in gi.lines) == 3
    assert not faults(figure)


def test_nothing_trained():
    tree = intervention_tree()
    for child in tree.children.values():
        child.dataset = child.to_dataset().assign(training=("encoder", np.array(["random"] * 54, dtype=object)))
    assert InterventionCourses().draw(tree) == {}


def test_outcomes_of_random_labels(faults):
    (figure,) = CoverageByOutcome().draw(labelled_tree()).values()
    (ax,) = figure.axes
    assert len(ax.get_xticklabels()) == 3, "initial weights are left out"
    assert not faults(figure)
