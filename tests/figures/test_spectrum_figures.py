from __future__ import annotations

import json

import numpy as np
import xarray as xr

from geoframe.figures.bounds import BoundsScatter
from geoframe.figures.spectrum import SpectrumProfiles
from tests.spectrum_trees import bounds_tree, spectrum_tree, two_sets


def test_a_line_for_each_checkpoint_in_three_panels(faults):
    (figure,) = SpectrumProfiles(note="a note").draw(spectrum_tree()).values()
    assert [len(ax.lines) for ax in figure.axes] == [3, 3, 3]
    gi = spectrum_tree()["gi"]["gi"]
    drawn = figure.axes[0].lines[2].get_ydata()
    assert abs(drawn[0] - float(gi[2, ..., :2].mean())) < 1e-9
    assert drawn[-1] > drawn[0]
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_a_figure_for_each_probe_set(faults):
    drawn = SpectrumProfiles().draw(two_sets(spectrum_tree(), spectrum_tree(late=5.0)))
    assert list(drawn) == ["spectrum-digits", "spectrum-other"]
    ends = [figure.axes[0].lines[2].get_ydata()[-1] for figure in drawn.values()]
    assert ends[1] > 2 * ends[0]
    for figure, name in zip(drawn.values(), ("digits", "other"), strict=True):
        assert f"Probe set: {name}." in words(figure)
        assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_axes_have_units(faults):
    tree = spectrum_tree()
    tree["gi"]["gi"].attrs["units"] = "diagonals of the input box"
    tree["linearity"]["alpha"].attrs["units"] = "raw-pixel L2"
    (figure,) = SpectrumProfiles().draw(tree).values()
    units = [ax.get_ylabel() for ax in figure.axes]
    assert units == ["diagonals of the input box", "raw-pixel L2", "share of the largest"]
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_a_single_image_has_no_band():
    tree = xr.DataTree.from_dict({k: v.to_dataset().isel(image=[0]) for k, v in spectrum_tree().children.items()})
    (figure,) = SpectrumProfiles().draw(tree).values()
    assert not [ax for ax in figure.axes if ax.collections]
    assert "One image: no bands." in words(figure)


def words(figure) -> str:
    """The text under a figure, unwrapped."""
    return " ".join(text.get_text().replace("\n", " ") for text in figure.texts)


def test_bands_and_the_threshold_are_explained(faults):
    tree = spectrum_tree()
    fields = json.dumps({"fields": {"threshold": (0.9).hex()}})
    tree["linearity"].attrs["probe"] = fields
    (figure,) = SpectrumProfiles().draw(tree).values()
    assert figure.axes[1].get_title() == "α (cosine ≥ 0.9)"
    assert f"± one standard error over {tree['gi'].sizes['image']} images" in words(figure)
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["--", "-", "-"], "initial weights are dashed"
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_a_spectrum_of_nothing():
    nodes = {k: v.to_dataset() for k, v in spectrum_tree().children.items()}
    empty = {k: ds.map(lambda v: v * np.nan if v.dtype.kind == "f" else v) for k, ds in nodes.items()}
    assert SpectrumProfiles().draw(xr.DataTree.from_dict(empty)) == {}


def test_bounds_lie_below_the_line(faults):
    (figure,) = BoundsScatter().draw(bounds_tree()).values()
    assert len(figure.axes) == 2
    x, y = marks(figure.axes[0], ".")
    kept = marks(figure.axes[0], ">")
    assert len(x) + len(kept[0]) == 60
    assert (y <= x).all()
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def marks(ax, marker: str):
    return next((line.get_data() for line in ax.lines if line.get_marker() == marker), ([], []))


def test_bounds_of_0_have_a_row_and_kept_rays_their_mark(faults):
    ds = bounds_tree()["bounds"].to_dataset()
    ds["useful"][0, 0, 0] = 0.0
    (figure,) = BoundsScatter(note="a note").draw(xr.DataTree.from_dict({"bounds": ds})).values()
    ax = figure.axes[0]
    assert "0" in [label.get_text() for label in ax.get_yticklabels()]
    row = ax.get_yticks()[[label.get_text() for label in ax.get_yticklabels()].index("0")]
    drawn = np.concatenate([marks(ax, marker)[1] for marker in ".>"])
    assert np.isclose(drawn, row).sum() == 12
    assert (row > ax.get_ylim()[0]) & (row < drawn[~np.isclose(drawn, row)].min())
    assert "T* = 0: 20 %" in ax.texts[0].get_text()
    assert len(figure.legends[0].get_texts()) == 2
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_bounds_that_are_all_0_or_rays_that_are_all_kept(faults):
    ds = bounds_tree()["bounds"].to_dataset()
    kept = ds.assign(gi=xr.full_like(ds["gi"], 3.0), censored=xr.ones_like(ds["censored"]))
    (figure,) = BoundsScatter().draw(xr.DataTree.from_dict({"bounds": kept})).values()
    assert len(figure.legends[0].get_texts()) == 1
    assert not [fault for fault in faults(figure) if "10^" not in fault]
    nothing = ds.assign(gi=ds["gi"] * 0, useful=ds["useful"] * 0, censored=xr.zeros_like(ds["censored"]))
    (figure,) = BoundsScatter().draw(xr.DataTree.from_dict({"bounds": nothing})).values()
    assert len(marks(figure.axes[0], ".")[0]) == 60
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_nothing_to_draw():
    ds = bounds_tree()["bounds"].to_dataset()
    ds["gi"] = ds["gi"] * np.nan
    assert BoundsScatter().draw(xr.DataTree.from_dict({"bounds": ds})) == {}
