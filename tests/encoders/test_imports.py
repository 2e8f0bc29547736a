from __future__ import annotations

import subprocess
import sys

import pytest

MODULES = ["timm", "torchvision", "checkpoint", "factory", "lite0", "published", "module", "hub", "weights"]


@pytest.mark.parametrize("made", ["", "published.robust_resnet50(3).key; published.cifar_resnet20().coords"])
def test_specs_import_no_torch(made):
    code = f"""
import sys, importlib
for name in {MODULES!r}:
    importlib.import_module("geoframe.encoders." + name)
from geoframe.encoders import published
{made}
assert not {{"torch", "timm", "torchvision", "huggingface_hub"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
