"""`import geoframe` is light, and the stub that editors read tells the truth."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import geoframe

HEAVY = ("torch", "torchvision", "timm", "matplotlib", "xarray", "zarr", "scipy", "numpy", "PIL")
WITH_TORCH = {"geoframe.loaded", "geoframe.measuring", "geoframe.runner"}
WITHOUT_TORCH = sorted({*geoframe._PUBLIC, "geoframe.builtin", "geoframe.cli"} - WITH_TORCH)


def loaded_by(code: str) -> tuple[set[str], float]:
    """Return which heavy packages a fresh interpreter has loaded after `code`, and how many seconds it took."""
    script = f"""
import json, sys, time
start = time.perf_counter()
{code}
seconds = time.perf_counter() - start
print(json.dumps([[name for name in {HEAVY!r} if name in sys.modules], seconds]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names, seconds = json.loads(done.stdout.splitlines()[-1])
    return set(names), seconds


def test_import_geoframe_is_light():
    loaded, seconds = loaded_by("import geoframe")
    assert not loaded
    assert seconds < 0.3


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_specs_figures_and_the_command_line_load_without_torch(module):
    assert not loaded_by(f"import {module}")[0] & {"torch", "torchvision", "timm"}


def test_the_command_line_loads_nothing_heavy():
    assert not loaded_by("import geoframe.cli")[0]


def test_listing_what_is_registered_loads_nothing_heavy():
    code = """
from geoframe.registry import Registry
from geoframe.plugins import KINDS
registry = Registry.discover(only=[])
assert all(registry.names(kind) for kind in KINDS)
"""
    assert not loaded_by(code)[0]


def test_stub_and_lazy_names_agree():
    tree = ast.parse(Path(geoframe.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    stub = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "geoframe"
        for alias in node.names
        if alias.asname == alias.name
    }
    own = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "geoframe")
    submodules = {alias.name for node in own for alias in node.names}
    assert submodules == set(geoframe._SUBMODULES)
    assert stub == {(module, name) for module, names in geoframe._PUBLIC.items() for name in names.split()}


@pytest.mark.parametrize("name", geoframe.__all__)
def test_every_public_name_loads(name):
    assert getattr(geoframe, name) is not None


def test_dir_lists_lazy_names():
    assert {"RatioProbe", "measure", "run", "open"} <= set(dir(geoframe))


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        geoframe.nope  # noqa: B018


def test_statistics_are_there_without_an_import_of_their_own():
    code = "import geoframe; assert geoframe.statistics.mann_whitney.__name__ == 'mann_whitney'"
    assert not loaded_by(code)[0] & {"torch", "matplotlib"}
    code = "import geoframe; geoframe.statistics; geoframe.statistics.__dir__()"
    assert not loaded_by(code)[0]
    for name in geoframe.statistics.__all__:
        assert callable(getattr(geoframe.statistics, name))
    with pytest.raises(AttributeError, match="no attribute 'mann_whitny'; did you mean 'mann_whitney'"):
        geoframe.statistics.mann_whitny  # noqa: B018


@pytest.mark.parametrize("name", geoframe.__all__)
def test_signatures_of_specs_name_their_fields(name):
    spec = getattr(geoframe, name)
    if isinstance(spec, type) and issubclass(spec, geoframe.Spec):
        shown = inspect.signature(spec).parameters
        assert list(shown) == list(inspect.signature(spec.__init__).parameters)[1:]
        assert "name" in shown
