from __future__ import annotations

import numpy as np
import xarray as xr

from geoframe.figures.bounds import BoundsScatter
from geoframe.figures.spectrum import SpectrumProfiles
from tests.spectrum_trees import bounds_tree, spectrum_tree


def test_a_line_for_each_checkpoint_in_three_panels(faults):
    (figure,) = SpectrumProfiles(note="a note").draw(spectrum_tree()).values()
    assert [len(ax.lines) for ax in figure.axes] == [3, 3, 3]
    gi = spectrum_tree()["gi"]["gi"]
    drawn = figure.axes[0].lines[2].get_ydata()
    assert abs(drawn[0] - float(gi[2, ..., :2].mean())) < 1e-9
    assert drawn[-1] > drawn[0]
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_a_single_image_has_no_band():
    tree = xr.DataTree.from_dict({k: v.to_dataset().isel(image=[0]) for k, v in spectrum_tree().children.items()})
    (figure,) = SpectrumProfiles().draw(tree).values()
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    assert np.isfinite(band).all()


def test_bounds_lie_below_the_line(faults):
    (figure,) = BoundsScatter().draw(bounds_tree()).values()
    assert len(figure.axes) == 2
    x, y = figure.axes[0].lines[0].get_data()
    assert len(x) == 60
    assert (y <= x).all()
    assert not [fault for fault in faults(figure) if "10^" not in fault]


def test_nothing_to_draw():
    ds = bounds_tree()["bounds"].to_dataset()
    ds["gi"] = ds["gi"] * np.nan
    assert BoundsScatter().draw(xr.DataTree.from_dict({"bounds": ds})) == {}
