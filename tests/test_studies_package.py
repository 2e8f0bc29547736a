"""`geoframe.studies` finds the studies of a checkout, and only there."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

import geoframe.studies


@pytest.mark.parametrize(("is_checkout", "found"), [(True, True), (False, False)])
def test_top_level_studies_are_found_beside_a_pyproject_only(tmp_path, is_checkout, found):
    package = tmp_path / "geoframe" / "studies"
    package.mkdir(parents=True)
    (tmp_path / "studies").mkdir()
    if is_checkout:
        (tmp_path / "pyproject.toml").touch()
    init = package / "__init__.py"
    shutil.copy(geoframe.studies.__file__, init)
    spec = importlib.util.spec_from_file_location("some_studies", init, submodule_search_locations=[str(package)])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (str(tmp_path / "studies") in module.__path__) == found
