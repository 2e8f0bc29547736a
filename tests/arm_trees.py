"""Made-up results of arms of trainings: interventions on coverage, and random labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

NETWORKS = {"mlp": "MNIST", "cnn": "FashionMNIST"}
ACCURACY = {"control": 0.87, "expand": 0.89, "restrict": 0.75}  # about as published
COVERAGE = {"control": 0.7, "expand": 0.8, "restrict": 0.5}
GI = {"control": 1.0, "expand": 1.2, "restrict": 0.8}
NOISE = (-0.004, 0.0, 0.004)  # of the seeds
GROWTH = {1: 0.5, 2: 0.75, 3: 1.0}  # of everything, by epoch


def _texts(values: Sequence[str]) -> tuple[str, np.ndarray]:
    return "encoder", np.array(values, dtype=object)


def intervention_tree(
    accuracy: Mapping[str, float] = ACCURACY,
    coverage: Mapping[str, float] = COVERAGE,
    gi: Mapping[str, float] = GI,
    seeds: int = 3,
    noise: float = 1.0,
    networks: Mapping[str, str] = NETWORKS,
    images: int = 4,
) -> xr.DataTree:
    """Each network in each arm, seed and epoch: the arm's level, times the epoch's growth, plus the seed's noise."""
    rows = [(n, d, a, s, e) for n, d in networks.items() for a in accuracy for s in range(seeds) for e in GROWTH]
    names = [f"{n}-{d.lower()}-{a}-seed{s}-epoch{e}" for n, d, a, s, e in rows]
    sets = list(dict.fromkeys(networks.values()))

    def level(levels: Mapping[str, float]) -> np.ndarray:
        return np.array([levels[a] * GROWTH[e] + noise * NOISE[s] for _, _, a, s, e in rows])

    def measured(levels: Mapping[str, float], *more: int) -> np.ndarray:
        """On the network's own probe set only; the images average to the level."""
        values = np.full((len(rows), len(sets), images, *more), np.nan)
        offsets = np.linspace(-0.1, 0.1, images).reshape(images, *(1 for _ in more))
        for i, one in enumerate(level(levels)):
            values[i, sets.index(rows[i][1])] = one + offsets
        return values

    coords = {
        "encoder": np.array(names, dtype=object),
        "architecture": _texts([row[0] for row in rows]),
        "training": _texts([row[1] for row in rows]),
        "dataset": _texts([row[1] for row in rows]),
        "variant": _texts([row[2] for row in rows]),
        "seed": ("encoder", [row[3] for row in rows]),
        "epoch": ("encoder", [row[4] for row in rows]),
        **{
            f"loss_{name}": ("encoder", [np.nan if row[2] == "control" else value for row in rows])
            for name, value in {"weight": 0.5, "margin": 1.0, "epsilon": 0.3}.items()
        },
    }
    outer = {**coords, "probeset": np.array(sets, dtype=object)}
    dims = ("encoder", "probeset", "image")
    share = measured(coverage)
    uncovered = 1 - share
    test = level(accuracy)
    intervals = measured(gi, 3)
    rays = {"coverage": (dims, share), "elsewhere": (dims, 0.75 * uncovered), "reentry": (dims, 0.25 * uncovered)}
    along = (*dims, "direction")
    every = {
        "gi": (along, intervals + 0.1, {"units": "diagonals of the input box"}),
        "gi_negative": (along, intervals - 0.1),
        "censored": (along, intervals > 1),
        "censored_negative": (along, intervals > 1),
    }
    scores = {"test_accuracy": ("encoder", test), "train_accuracy": ("encoder", test - 0.013)}
    nodes = {
        "training": xr.Dataset(scores, coords),
        "coverage": xr.Dataset(rays, outer),
        "gi": xr.Dataset(every, outer),
    }
    return xr.DataTree.from_dict(nodes)


def labelled_tree(
    coverage: Sequence[float] = (0.9, 0.2, 0.22),
    train: Sequence[float] = (1.0, 0.95, 0.9),
    dataset: str = "MNIST",
    images: int = 40,
) -> xr.DataTree:
    """Networks of true labels, RANDOM-10 and RANDOM-100, each on its own test images, and one with initial weights."""
    rng = np.random.default_rng(0)
    variants = ["true", "random10", "random100", "true"]
    names = [f"mlp-{dataset.lower()}-{variant}" for variant in variants[:3]] + ["mlp-random"]
    values = np.full((4, 2, images), np.nan)
    for i, level in enumerate([*coverage, 0.5]):
        values[i, int(i == 2)] = np.clip(level + 0.05 * rng.normal(size=images), 0, 1)
    dims = ("encoder", "probeset", "image")
    known = ~np.isnan(values)
    encoders = {
        "encoder": np.array(names, dtype=object),
        "architecture": _texts(["mlp"] * 4),
        "training": _texts([dataset] * 3 + ["random"]),
        "dataset": _texts([dataset] * 4),
        "variant": _texts(variants),
        "seed": ("encoder", [0] * 4),
    }
    sets = {
        "probeset": np.array(["mnist-test", "mnist-test-random100"], dtype=object),
        "label": (("probeset", "image"), np.tile(np.arange(images) % 10, (2, 1))),
    }
    rays = {
        "coverage": (dims, values),
        "correct": (dims, known & (rng.uniform(size=values.shape) < 0.3)),
        "elsewhere": (dims, np.where(known, 0.1, np.nan)),
        "reentry": (dims, np.where(known, 0.3, np.nan)),
    }
    scores = {
        "train_accuracy": ("encoder", [*train, 0.1]),
        "test_accuracy": ("encoder", [0.97, 0.11, 0.01, 0.1]),
        "class_counts": (("encoder", "class"), [[30, 20], [25, 25], [50, -1], [-1, -1]]),
    }
    nodes = {"coverage": xr.Dataset(rays, {**encoders, **sets}), "training": xr.Dataset(scores, encoders)}
    return xr.DataTree.from_dict(nodes)
