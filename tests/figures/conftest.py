"""Trees of made-up ratios, and what a reader would complain about in a drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

DIMS = ("encoder", "probeset", "image", "scale")


def profiles(eta: np.ndarray, random: bool, images: int, rng: np.random.Generator) -> np.ndarray:
    own = np.exp(rng.normal(0, 0.3, (images, 1)))
    if random:
        return 1 + own * eta
    return (1 + rng.uniform(3, 8) * own * np.exp(-(np.log(eta / 3) ** 2) / 2)) / (1 + (eta / 20) ** 2)


def make_tree(
    encoders: Sequence[tuple[str, str, str]], probesets: Sequence[str], counts: Sequence[int], scales: int = 9
) -> xr.DataTree:
    """A results tree: encoders as (name, architecture, training), image counts of the probe sets."""
    rng, eta, most = np.random.default_rng(0), np.logspace(-2, 2, scales), max(counts)
    ratio = np.full((len(encoders), len(probesets), most, scales), np.nan)
    for i, (_, _, training) in enumerate(encoders):
        for j, count in enumerate(counts):
            ratio[i, j, :count] = profiles(eta, training == "random", count, rng)
    names, architectures, trainings = (np.array(column, dtype=object) for column in zip(*encoders, strict=True))
    ds = xr.Dataset(
        {"ratio": (DIMS, ratio), "ratio_se": (DIMS, 0.05 * ratio)},
        {
            "encoder": names,
            "architecture": ("encoder", architectures),
            "training": ("encoder", trainings),
            "epsilon": ("encoder", np.linspace(0, 3, len(encoders))),
            "probeset": np.array(probesets, dtype=object),
            "image": np.arange(most),
            "scale": eta,
        },
    )
    return xr.DataTree.from_dict({"ratio": ds})


def text_faults(figure) -> list[str]:
    """Texts that are cut off by the figure's edge or that overlap another text."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, (width, height) = canvas.get_renderer(), canvas.get_width_height()
    shown = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in shown if _is_drawn(t)]
    cut = [f"{s!r} is cut off" for s, b in boxes if b.x0 < 0 or b.y0 < 0 or b.x1 > width or b.y1 > height]
    over = [
        f"{s!r} overlaps {other!r}"
        for i, (s, b) in enumerate(boxes)
        for other, c in boxes[:i]
        if min(b.x1, c.x1) > max(b.x0, c.x0) and min(b.y1, c.y1) > max(b.y0, c.y0)
    ]
    return cut + over


def _is_drawn(text: Text) -> bool:
    """Tick labels of an axis that shows none still exist; they are switched off through their tick."""
    axes = text.axes
    if axes is None:
        return True
    ticks = [*axes.xaxis.get_major_ticks(), *axes.yaxis.get_major_ticks()]
    return all(tick.label1.get_visible() for tick in ticks if text is tick.label1)


@pytest.fixture
def tree_of() -> Callable[..., xr.DataTree]:
    return make_tree


@pytest.fixture
def faults() -> Callable[..., list[str]]:
    return text_faults


PAIR = [("lite0", "lite0", "trained"), ("lite0-random", "lite0", "random")]
MANY = [
    ("resnet50", "resnet50", "trained"),
    ("vit_small_patch16_224.augreg_in1k", "vit_small", "trained"),
    ("vit_small_patch16_224.augreg_in1k-random", "vit_small", "random"),
    ("resnet50-random", "resnet50", "random"),
    *((f"resnet50-l2-eps{e}", "resnet50", "adversarial") for e in (0, 0.1, 1, 3)),
    ("convnext_tiny-random", "convnext_tiny", "random"),
    ("synclr_vit_base_patch16_224", "vit_base", "synthetic"),
    ("wide" * 12, "", ""),
    ("price_$1_and_$2", "", "trained"),
]


@pytest.fixture
def pair() -> xr.DataTree:
    """One trained encoder and its random copy on six images."""
    return make_tree(PAIR, ["photos"], [6])


@pytest.fixture
def many() -> xr.DataTree:
    """Twelve encoders on five sets of unequal size."""
    return make_tree(MANY, ["val64", "a64", "o64", "sd64", "a_probe_set_with_a_long_name"], [6, 4, 6, 1, 5])
