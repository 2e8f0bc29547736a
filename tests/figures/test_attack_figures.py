"""Figures of attacked images: what is drawn, for whom, and what can't be."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.figures.figure import save_all
from tests.attack_trees import attack_tree


def test_a_figure_of_coverage_for_each_network_on_its_own_data() -> None:
    drawn = gf.AttackCoverage().draw(attack_tree())
    assert list(drawn) == [
        "attack_coverage-mlp-mnist-mnist-test",
        "attack_coverage-resnet20-cifar10-cifar10-test",
        "attack_coverage-mlp-digits-digits-test",
    ]
    (ax,) = drawn["attack_coverage-mlp-mnist-mnist-test"].axes
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "no attack\n38 / 2",
        "cw\n28 / 12",
        "ifgsm\n24 / 16",
        "pgd\n20 / 20",
    ]
    spans = [patch.get_y() for patch in ax.patches]
    assert sorted(spans) == [83.9, 91.2]
    assert not drawn["attack_coverage-mlp-digits-digits-test"].axes[0].patches


def test_images_of_classes_without_references_are_not_drawn() -> None:
    tree = attack_tree(("MNIST",))
    for name in ("coverage", "coverage-cw", "coverage-ifgsm", "coverage-pgd"):
        node = tree[name].to_dataset()
        tree[name].dataset = node.assign(coverage=node["coverage"].where(node["correct"]))
    (figure,) = gf.AttackCoverage().draw(tree).values()
    assert figure.axes[0].get_xticklabels()[3].get_text() == "pgd\n20 / 0"


def test_curves_are_means_over_images_and_both_baselines_are_there() -> None:
    tree = attack_tree()
    (figure,) = gf.AlignmentCurves().draw(tree).values()
    first = figure.axes[0]
    gradient, difference, attack, pulled, isotropic = first.lines[:5]
    mean = 100 * tree["alignment"]["energy"].isel(encoder=0, probeset=0).mean(("image", "vector"))
    np.testing.assert_allclose(gradient.get_ydata(), mean)
    np.testing.assert_allclose(isotropic.get_ydata(), 100 * np.arange(1, 9) / 8)
    np.testing.assert_allclose(pulled.get_ydata(), 100 * np.sqrt(np.arange(1, 9) / 8))
    assert gradient.get_ydata()[4] > attack.get_ydata()[4] > difference.get_ydata()[4]
    assert len([ax for ax in figure.axes if ax.has_data()]) == 3
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["loss gradient", "image difference", "attack (pgd)", "random, Jᵀz", "random, isotropic"]


def test_nothing_is_drawn_of_nothing_and_other_nodes_are_refused(tmp_path) -> None:
    tree = attack_tree(("MNIST",))
    empty = {name: node.to_dataset().where(False) for name, node in tree.children.items()}
    for name in ("coverage", "coverage-cw", "coverage-ifgsm", "coverage-pgd"):
        empty[name]["correct"] = tree[name]["correct"] & False
    bare = xr.DataTree.from_dict(empty)
    assert gf.AttackCoverage().draw(bare) == {}
    assert gf.AlignmentCurves().draw(bare) == {}
    with pytest.raises(gf.BadInput, match="holds no coverage"):
        gf.AttackCoverage(probe="alignment").draw(tree)
    paths = save_all((gf.AttackCoverage(), gf.AlignmentCurves()), tree, tmp_path)
    assert [path.name for path in paths] == ["attack_coverage-mlp-mnist-mnist-test.png", "alignment_curves.png"]
