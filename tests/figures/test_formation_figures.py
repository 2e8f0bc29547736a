"""Fig. 1c, 2b and 2c: what is drawn, and that a reader can read it."""

from __future__ import annotations

import numpy as np
import pytest

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.figures.controls import ControlProfiles
from geoframe.figures.formation import FormationProfiles
from tests.bump_trees import RISES, STEPS, controls_tree, formation_tree

NOTE = "What has to be said beside the figure, at length. " * 4


def curves(ax) -> list:
    return [line for line in ax.lines if len(line.get_xdata()) > 2]


def panels(figure) -> list:
    return [ax for ax in figure.axes if ax.get_title()]


def test_a_panel_a_network_and_set_with_a_line_a_checkpoint():
    tree = formation_tree(architectures=("resnet18", "vgg16"))
    (figure,) = FormationProfiles().draw(tree).values()
    axes = panels(figure)
    assert [ax.get_title().split("\n") for ax in axes] == [
        [a, s] for a in ("resnet18", "vgg16") for s in ("cifar16", "cifar16train")
    ]
    assert [len(curves(ax)) for ax in axes] == [len(STEPS)] * 4
    median = tree["ratio"]["ratio"].isel(encoder=5 + 2, probeset=1).median("image")  # VGG-16 after step 100
    np.testing.assert_allclose(curves(axes[3])[2].get_ydata(), median)


def test_initial_weights_are_dashed_and_later_steps_lighter():
    (figure,) = FormationProfiles().draw(formation_tree()).values()
    lines = curves(panels(figure)[0])
    assert [line.get_linestyle() for line in lines] == ["--", "-", "-", "-", "-"]
    light = [np.dot(line.get_color()[:3], (0.21, 0.72, 0.07)) for line in lines[1:]]
    assert light == sorted(light)
    bar = next(ax for ax in figure.axes if ax not in panels(figure))
    assert bar.get_ylabel() == "optimiser steps"
    assert bar.get_yscale() == "log"


def test_panels_share_logarithmic_axes():
    (figure,) = FormationProfiles().draw(formation_tree()).values()
    axes = panels(figure)
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    assert {(ax.get_xscale(), ax.get_yscale()) for ax in axes} == {("log", "log")}
    assert "L2 in raw [0,1] pixels" in axes[-1].get_xlabel()


def test_initial_weights_alone_are_drawn_and_unknown_steps_are_not():
    tree = formation_tree(steps=(0,), heights=(RISES,))
    (figure,) = FormationProfiles().draw(tree).values()
    assert [line.get_linestyle() for line in curves(panels(figure)[0])] == ["--"]
    tree["ratio"].dataset = tree["ratio"].to_dataset().drop_vars("step")
    assert FormationProfiles().draw(tree) == {}


def test_a_panel_without_data_says_so():
    tree = formation_tree()
    tree["ratio"]["ratio"][:, 1] = np.nan
    (figure,) = FormationProfiles().draw(tree).values()
    assert [[text.get_text() for text in ax.texts] for ax in panels(figure)] == [[], ["no data"]]


@pytest.mark.parametrize("note", ["", NOTE])
@pytest.mark.parametrize("sets", [("cifar16",), ("a", "b", "c", "d")])
@pytest.mark.parametrize("architectures", [("resnet18",), ("resnet18", "vgg16", "wrn28_10")])
def test_no_text_is_cut_or_overlaps(architectures, sets, note, faults):
    tree = formation_tree(architectures=architectures, probesets=sets, images=3)
    (figure,) = FormationProfiles(note=note).draw(tree).values()
    assert faults(figure) == []


def test_fig_2b_has_the_blurs_on_the_test_images_and_their_blurs():
    ((stem, figure),) = ControlProfiles(blurs=True, replicates=20).draw(controls_tree()).items()
    assert stem == "fig2b_blur"
    assert [ax.get_title() for ax in panels(figure)] == ["clean", "blur1", "blur2"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["cifar16", "cifar16b1", "cifar16b2"]
    tree = controls_tree()
    median = tree["ratio"]["ratio"].sel(encoder="resnet18-blur1", probeset="cifar16b2").median("image")
    np.testing.assert_allclose(curves(panels(figure)[1])[2].get_ydata(), median)


def test_fig_2c_has_the_randomised_networks_on_every_set():
    figure = ControlProfiles(treatments=("random-labels", "random-data", "initial"), replicates=20)
    ((stem, drawn),) = figure.draw(controls_tree()).items()
    assert stem == "fig2c_controls"
    assert [ax.get_title() for ax in panels(drawn)] == ["random-labels", "random-data", "initial"]
    assert [len(curves(ax)) for ax in panels(drawn)] == [6, 6, 6]


@pytest.mark.parametrize("treatments", [("clean",), ("clean", "blur1", "blur2", "random-labels", "random-data")])
@pytest.mark.parametrize("blurs", [True, False])
def test_no_text_of_controls_is_cut_or_overlaps(treatments, blurs, faults):
    figure = ControlProfiles(treatments=treatments, blurs=blurs, note=NOTE if blurs else "", replicates=10)
    (drawn,) = figure.draw(controls_tree(images=3)).values()
    assert faults(drawn) == []


def test_results_without_treatments_or_blurs_draw_nothing():
    assert ControlProfiles().draw(formation_tree()) == {}
    tree = controls_tree()
    tree["ratio"].dataset = tree["ratio"].to_dataset().drop_vars("sigma")
    assert ControlProfiles(blurs=True).draw(tree) == {}


def test_an_unknown_treatment_is_refused():
    with pytest.raises(BadInput, match="some of clean, blur1"):
        gf.ControlProfiles(treatments=("blurred",))
