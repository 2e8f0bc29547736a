from __future__ import annotations

import numpy as np
import xarray as xr

from geoframe.figures.ood import OodCoverage
from tests.coverage_trees import ood_tree


def test_own_data_beside_elsewhere(faults):
    (figure,) = OodCoverage(note="a note").draw(ood_tree()).values()
    (ax,) = figure.axes
    means = [container.lines[0].get_ydata()[0] for container in ax.containers]
    np.testing.assert_allclose(means, [95, 10, 40, 2])
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "mlp\n40 / 40 images",
        "mlp-random\n40 / 40 images",
    ]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["own", "elsewhere", "published, own data", "published, elsewhere"]
    assert "JPEG stand-in: low-passed. a note" in figure.texts[0].get_text().replace("-\n", "-").replace("\n", " ")
    assert not faults(figure)


def test_long_names(faults):
    ds = ood_tree()["coverage"].to_dataset()
    names = np.array(["fashionmnist-test-50each", "cifar10-jpeg-test-whole-50each"], dtype=object)
    (figure,) = OodCoverage().draw(xr.DataTree.from_dict({"coverage": ds.assign_coords(probeset=names)})).values()
    assert not faults(figure)


def test_nothing_from_elsewhere():
    ds = ood_tree()["coverage"].to_dataset().sel(probeset=["own"])
    assert OodCoverage().draw(xr.DataTree.from_dict({"coverage": ds})) == {}
