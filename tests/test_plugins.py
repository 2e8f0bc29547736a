"""Entries are checked, and the examples in the hooks' docstrings work."""

from __future__ import annotations

import re
import textwrap

import pytest

import geoframe as gf
from geoframe.plugins import KINDS, Hooks
from geoframe.registry import resolve


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_each_hook_works(kind):
    plugin, *targets = examples(kind)
    module = {}
    exec(plugin, module)
    (entry,) = module[KINDS[kind].hook]()
    assert entry.summary
    for target in targets:
        exec(target, module)
        assert issubclass(module[entry.target.partition(":")[2]], resolve(KINDS[kind].base))
    assert targets or kind == "engine"
