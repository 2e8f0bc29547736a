"""Made-up results of trainings: profiles with known peaks, at checkpoints and under several treatments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

ETA = np.logspace(-2, 2, 17)
RISES = -1.0  # instead of a height: a profile that rises to the end of the ladder


def profile(height: float, images: int, rng: np.random.Generator, spread: float = 0.1, eta: np.ndarray = ETA) -> Any:
    """Plateau, peak of the given height at η = 3, decay, for each image; 1 and decay where the height is 1.

    A negative height is that of a peak whose decay the ladder doesn't reach.
    """
    if height < 0 and height != RISES:
        return profile(-height, images, rng, spread, eta * 0.06)  # peaks at η = 50, and the ladder ends at 100
    own = np.exp(spread * rng.normal(size=(images, 1)))
    if height == RISES:
        return 1 + own * eta / 5
    return (1 + (height - 1) * own * np.exp(-(np.log(eta / 3) ** 2) / 2)) / (1 + (eta / 30) ** 4)


def ratio_node(
    heights: Sequence[Sequence[float]], encoders: Mapping[str, Any], probesets: Mapping[str, Any], images: int = 16
) -> xr.Dataset:
    """A RatioProbe's node; `heights` (encoder, probe set), coordinates of both by name, `encoder`, `probeset` first."""
    rng = np.random.default_rng(0)
    ratio = np.array([[profile(height, images, rng) for height in row] for row in heights])
    dims = ("encoder", "probeset", "image", "scale")
    ids = np.array([[f"{name}/{i}" for i in range(images)] for name in probesets["source"]], dtype=object)
    labels = np.array([np.full(images, -1 if name.startswith("noise") else 1) for name in probesets["source"]])
    sides = {"encoder": encoders, "probeset": {k: v for k, v in probesets.items() if k != "source"}}
    coords = {name: (dim, _column(values)) for dim, side in sides.items() for name, values in side.items()}
    return xr.Dataset(
        {"ratio": (dims, ratio), "ratio_se": (dims, 0.02 * ratio)},
        {
            **coords,
            "image": np.arange(images),
            "scale": ETA,
            "label": (("probeset", "image"), labels),
            "image_id": (("probeset", "image"), ids),
        },
    )


def _column(values: Sequence[Any]) -> np.ndarray:
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def training_node(names: Sequence[str], train: Sequence[float], test: Sequence[float]) -> xr.Dataset:
    scores = {"train_accuracy": ("encoder", np.array(train)), "test_accuracy": ("encoder", np.array(test))}
    return xr.Dataset(scores, {"encoder": np.array(names, dtype=object)})


STEPS = (0, 10, 100, 1000, 10000)


def formation_tree(
    heights: Sequence[float] = (RISES, 1.0, 4.0, 5.0, 6.0),
    steps: Sequence[int] = STEPS,
    architectures: Sequence[str] = ("resnet18",),
    probesets: Sequence[str] = ("cifar16", "cifar16train"),
    images: int = 16,
) -> xr.DataTree:
    """Networks with the same heights of the bump at each step, on every probe set."""
    names = [f"{a}-cifar10-step{step}" if step else f"{a}-cifar10-random" for a in architectures for step in steps]
    encoders = {
        "encoder": names,
        "architecture": [a for a in architectures for _ in steps],
        "training": ["CIFAR10" if step else "random" for _ in architectures for step in steps],
        "network": [f"{a}-cifar10-random" for a in architectures for _ in steps],
        "control": [f"{a}-cifar10-random" if step else "" for a in architectures for step in steps],
        "step": [*steps] * len(architectures),
        "epoch": [step / 100 for step in steps] * len(architectures),
    }
    rows = [[height] * len(probesets) for _ in architectures for height in heights]
    node = ratio_node(rows, encoders, {"probeset": probesets, "source": probesets}, images)
    accuracy = np.linspace(0.1, 0.9, len(names))
    return xr.DataTree.from_dict({"ratio": node, "training": training_node(names, accuracy, accuracy - 0.05)})


def without_data(tree: xr.DataTree, encoder: str, probeset: str | None = None, rungs: int = 0) -> xr.DataTree:
    """The same results, of which an encoder has no more than so many valid scales, on one probe set or on all."""
    ds = tree["ratio"].to_dataset()
    there = (ds["encoder"] != encoder) | xr.DataArray(np.arange(ETA.size) < rungs, dims="scale")
    if probeset is not None:
        there = there | (ds["probeset"] != probeset)
    tree["ratio"].dataset = ds.assign({name: ds[name].where(there) for name in ("ratio", "ratio_se")})
    return tree


SETS = ("cifar16", "cifar16train", "cifar16b1", "cifar16b2", "noise16", "noise16train")
SOURCES = ("test", "train", "test", "test", "noise/0", "noise/1")
VARIANTS = ("", "blur1", "blur2", "random-labels", "random-data", "")
GROWS = {
    "": (4.0, 4.0, 6.0, 9.0, 4.0, 4.0),
    "blur1": (3.0, 3.0, 4.5, 6.5, 3.0, 3.0),
    "blur2": (2.0, 2.0, 3.0, 4.5, 2.0, 2.0),
}


def controls_tree(
    heights: Mapping[str, Sequence[float]] = GROWS, train: float = 0.95, test: float = 0.1, images: int = 16
) -> xr.DataTree:
    """A ResNet-18 under five treatments and with its initial weights; heights by variant, the others have no peak."""
    names = ["clean", "blur1", "blur2", "random-labels", "random-data", "random"]
    initial = [name == "random" for name in names]
    encoders = {
        "encoder": [f"resnet18-{name}" for name in names],
        "architecture": ["resnet18"] * 6,
        "training": ["random" if first else "CIFAR10" for first in initial],
        "variant": VARIANTS,
        "step": [0 if first else 100 for first in initial],
        "encoder_seed": [0] * 6,
    }
    rows = [(1.0,) * 6 if first else heights.get(v, (1.0,) * 6) for v, first in zip(VARIANTS, initial, strict=True)]
    sets = {"probeset": SETS, "source": SOURCES, "sigma": [np.nan, np.nan, 1.0, 2.0, np.nan, np.nan]}
    accuracies = training_node(encoders["encoder"], [0.9, 0.9, 0.9, train, 1.0, 0.1], [0.8, 0.8, 0.8, test, 0.1, 0.1])
    return xr.DataTree.from_dict({"ratio": ratio_node(rows, encoders, sets, images), "training": accuracies})
