"""The paper's random controls (A, fig. 4), with no download: their shapes are known, so this only costs time."""

from __future__ import annotations

import numpy as np
import pytest

import geoframe as gf

pytestmark = pytest.mark.slow

CONTROLS = {
    "resnet50": gf.TorchvisionEncoder("resnet50", weights=None),
    "vit_small": gf.TimmEncoder("vit_small_patch16_224", pretrained=False),
    "convnext_tiny": gf.TorchvisionEncoder("convnext_tiny", weights=None),
}


def profile(name: str) -> np.ndarray:
    """Median over two photographs, 8 directions, 17 scales."""
    found = gf.measure(
        gf.RatioProbe(directions=8, jvp_directions=4), CONTROLS[name], gf.Photos(names=("astronaut", "coffee"))
    )
    assert found["valid"].all()
    median = found["ratio"].median("image").values
    print(name, np.array2string(median, precision=3, suppress_small=True, max_line_width=200))
    return median


@pytest.mark.parametrize("name", ["resnet50", "vit_small"])
def test_rises_monotonically_to_the_end_of_the_ladder(name: str) -> None:
    median = profile(name)
    assert abs(median[0] - 1) < 0.05
    assert (np.diff(np.log(median)) > -0.02).all()
    assert median[-1] > 2
    assert median.argmax() == len(median) - 1


def test_stays_near_one_then_decays() -> None:
    median = profile("convnext_tiny")
    assert abs(median[0] - 1) < 0.05
    assert median.max() < 1.3
    assert median[-1] < 0.95
    assert (np.diff(np.log(median[-3:])) < 0.02).all()
