"""Entries are checked, and the examples in the hooks' docstrings work."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest
import xarray as xr

import geoframe as gf
from geoframe.plugins import KINDS, Hooks
from geoframe.registry import resolve
from geoframe.testing import check_probe


def test_entry_keeps_a_one_line_summary():
    assert gf.Entry("norm", "my_pkg.norm:FeatureNorm", "length of\n  the feature vector").summary == (
        "length of the feature vector"
    )


@pytest.mark.parametrize("name", ["", "a b", "-x", "a/b", "a:b", None])
def test_entry_refuses_what_is_no_name(name):
    with pytest.raises(gf.BadInput, match="is not a name"):
        gf.Entry(name, "m:C")


@pytest.mark.parametrize("target", ["", "m", "m.C", "m:", ":C", "m:C.D", "m :C", None, len])
def test_entry_refuses_what_is_no_target(target):
    with pytest.raises(gf.BadInput, match="module:Class"):
        gf.Entry("norm", target)


def examples(kind):
    text = textwrap.dedent("    " * 2 + getattr(Hooks, KINDS[kind].hook).__doc__)
    return [textwrap.dedent(block) for block in re.findall(r"code-block:: python\n\n((?: {4,}.*\n|\n)+)", text)]


def example(kind):
    """Execute a hook's example; return the class that its entry names."""
    plugin, target = examples(kind)
    module = {}
    exec(plugin, module)
    (entry,) = module[KINDS[kind].hook]()
    exec(target, module)
    return module[entry.target.partition(":")[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_each_hook_is_of_its_kind(kind):
    assert issubclass(example(kind), resolve(KINDS[kind].base))


def test_the_example_probe_measures():
    assert check_probe(example("probe")())["norm"].dims == ("image",)


def test_the_example_probe_set_loads():
    images = example("probeset")().load((3, 16, 16))
    assert images.ids == ("grey-0", "grey-64", "grey-128", "grey-191", "grey-255")
    assert images.pixels[0].max() == 0
    assert images.pixels[-1].min() == 1


def test_the_example_figure_draws():
    norm = xr.DataArray(np.ones((2, 1, 3)), dims=("encoder", "probeset", "image"), coords={"encoder": ["a", "b"]})
    tree = xr.DataTree.from_dict({"featurenorm": xr.Dataset({"norm": norm})})
    assert list(example("figure")().draw(tree)) == ["norm-bars"]
