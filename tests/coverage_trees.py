"""Made-up results of coverage and tube probes."""

from __future__ import annotations

import numpy as np
import xarray as xr

ENCODERS = ["mlp", "mlp-random", "cnn", "cnn-random"]
TRAINING = ["MNIST", "random", "FashionMNIST", "random"]
DATASET = ["MNIST", "MNIST", "FashionMNIST", "FashionMNIST"]
PROBESETS = ["mnist", "fashion"]


def _node(levels: list[float], spread: float, images: int, seed: int) -> xr.Dataset:
    """Coverage around a level for each encoder, on its own data set only."""
    rng = np.random.default_rng(seed)
    coverage = np.full((4, 2, images), np.nan)
    correct = np.zeros((4, 2, images), dtype=bool)
    for i, level in enumerate(levels):
        column = DATASET[i] == "FashionMNIST"
        coverage[i, int(column)] = np.clip(level + spread * rng.normal(size=images), 0, 1)
        correct[i, int(column)] = rng.uniform(size=images) < 0.8
    label = np.arange(2 * images).reshape(2, images) % 10
    dims = ("encoder", "probeset", "image")
    return xr.Dataset(
        {
            "coverage": (dims, coverage),
            "correct": (dims, correct),
            "predicted": (dims, np.where(correct, label, (label + 1) % 10)),
            "elsewhere": (dims, np.where(np.isnan(coverage), np.nan, 0.1)),
            "reentry": (dims, np.where(np.isnan(coverage), np.nan, 0.01)),
        },
        {
            "encoder": np.array(ENCODERS, dtype=object),
            "probeset": np.array(PROBESETS, dtype=object),
            "architecture": ("encoder", np.array(["mlp", "mlp", "cnn", "cnn"], dtype=object)),
            "training": ("encoder", np.array(TRAINING, dtype=object)),
            "dataset": ("encoder", np.array(DATASET, dtype=object)),
            "seed": ("encoder", [0, 0, 0, 0]),
            "label": (("probeset", "image"), label),
            "image": np.arange(images),
        },
    )


def coverage_tree(same: float = 0.95, untrained: float = 0.4, spread: float = 0.03, images: int = 30) -> xr.DataTree:
    nodes = {
        "coverage": _node([same, untrained] * 2, spread, images, 0),
        "coverage-different": _node([0.01, untrained] * 2, spread, images, 1),
    }
    return xr.DataTree.from_dict(nodes)


def tube_tree(least: tuple[float, float] = (1.5, 0.4), rays: int = 30) -> xr.DataTree:
    """Two encoders; on the second the last ray wasn't found."""
    rng = np.random.default_rng(0)
    radius = np.array(least)[:, None, None, None, None] + rng.exponential(0.5, (2, 1, rays, 5, 4))
    radius = radius.clip(max=3)
    radius[1, 0, -1] = np.nan
    dims = ("encoder", "probeset", "ray", "point", "direction")
    ds = xr.Dataset(
        {
            "radius": (dims, radius),
            "censored": (dims, radius == 3),
            "minimum": (dims[:3], radius.min((3, 4))),
            "reference_id": (("encoder", "probeset", "reference_image"), np.full((2, 1, 7), "x", dtype=object)),
        },
        {
            "encoder": np.array(["wide", "narrow"], dtype=object),
            "probeset": np.array(["digits"], dtype=object),
            "point": np.linspace(0, 1, 5),
        },
    )
    return xr.DataTree.from_dict({"tube": ds})


def ood_tree(inside: float = 0.95, outside: float = 0.1, dataset: str = "MNIST", images: int = 40) -> xr.DataTree:
    """An MLP and its random copy on its own data set and on CIFAR-10, with means that are known.

    Half of the images are taken for class 0, half for class 1, which have 30 and 10 of 100 training images.
    """
    scatter = 0.04 * np.linspace(-1, 1, images)
    coverage = np.array([[inside + scatter, outside + scatter], [0.4 + scatter, 0.02 + scatter / 3]])
    dims = ("encoder", "probeset", "image")
    ds = xr.Dataset(
        {
            "coverage": (dims, coverage),
            "correct": (dims, np.arange(coverage.size).reshape(coverage.shape) % 3 == 0),
            "predicted": (dims, np.broadcast_to(np.arange(images) % 2, coverage.shape)),
            "elsewhere": (dims, np.full(coverage.shape, 0.1)),
            "reentry": (dims, np.full(coverage.shape, 0.01)),
        },
        {
            "encoder": np.array(["mlp", "mlp-random"], dtype=object),
            "probeset": np.array(["own", "elsewhere"], dtype=object),
            "training": ("encoder", np.array([dataset, "random"], dtype=object)),
            "dataset": ("encoder", np.array([dataset] * 2, dtype=object)),
            "probeset_dataset": ("probeset", np.array([dataset, "CIFAR10"], dtype=object)),
            "stand_in": ("probeset", np.array(["", "JPEG stand-in: low-passed"], dtype=object)),
            "label": (("probeset", "image"), np.arange(2 * images).reshape(2, images) % 10),
        },
    )
    counts = (("encoder", "class"), np.array([[30, 10, 60]] * 2))
    training = xr.Dataset({"class_counts": counts}, {"encoder": ds["encoder"].values, "class": [0, 1, 2]})
    return xr.DataTree.from_dict({"coverage": ds, "training": training})
