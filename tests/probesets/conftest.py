from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geoframe.probesets.imagenet import class_index


@pytest.fixture
def picture(tmp_path):
    """Write a noise picture: picture("a/b.png", size=(w, h), mode="RGB") -> path."""

    def write(name, size=(20, 16), mode="RGB", seed=0, root=tmp_path):
        channels = len(Image.new(mode, (1, 1)).getbands())
        shape = (size[1], size[0]) + ((channels,) if channels > 1 else ())
        values = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.frombytes(mode, size, values.tobytes()).save(path)
        return path

    return write


@pytest.fixture
def imagenet(tmp_path, picture, monkeypatch):
    """$GEOFRAME_DATA with a tiny ImageNet: 40 classes in val, two images each; returns the wnids."""
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    wnids = list(class_index())[::25]
    for i, wnid in enumerate(wnids):
        for number in ("00000293", "00000007"):
            picture(f"imagenet/val/{wnid}/ILSVRC2012_val_{number}.JPEG", seed=i)
    return wnids


@pytest.fixture
def real_data():
    """real_data("MNIST"): the data root, if it holds that folder; skips where it doesn't."""

    def root(name):
        place = Path(os.environ.get("GEOFRAME_DATA", "data"))
        if not (place / name).is_dir():
            pytest.skip(f"{name} is not in $GEOFRAME_DATA")
        return place

    return root
