"""Made-up results of several trainings, each with its initial weights and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

EPOCHS = (0, 1, 2, 3, 4)
IMAGES, DIRECTIONS = 12, 8


def encoder_coords(trainings: Mapping[str, Mapping[str, Any]], epochs: Sequence[int] = EPOCHS) -> dict[str, Any]:
    """Coordinates over encoder, as the runner writes them: one encoder an epoch of each training."""
    names = [_name(run, epoch, epochs) for run in trainings for epoch in epochs]
    fields = [{"epoch": epoch, **about} for about in trainings.values() for epoch in epochs]
    control = [f"{run}-random" if epoch else "" for run in trainings for epoch in epochs]
    texts = {
        "architecture": [field.get("architecture", "mlp") for field in fields],
        "dataset": [field.get("dataset", "digits") for field in fields],
        "training": ["digits" if field["epoch"] else "random" for field in fields],
        "variant": [field.get("variant", "") for field in fields],
        "control": control,
        "network": [f"{run}-random" for run in trainings for _ in epochs],
    }
    return {
        "encoder": np.array(names, dtype=object),
        "epoch": ("encoder", [field["epoch"] for field in fields]),
        "seed": ("encoder", [field.get("seed", 0) for field in fields]),
        **{name: ("encoder", np.array(values, dtype=object)) for name, values in texts.items()},
    }


def _name(run: str, epoch: int, epochs: Sequence[int]) -> str:
    return run + ("-random" if epoch == 0 else "" if epoch == max(epochs) else f"-epoch{epoch}")


def recipes(trainings: Mapping[str, Mapping[str, Any]], epochs: Sequence[int] = EPOCHS) -> str:
    """Provenance of the encoders."""
    model = {"fields": {"factory": "geoframe.models.small:mlp"}}
    found = {
        _name(run, epoch, epochs): {
            "fields": {
                "training": {
                    "fields": {
                        "optimiser": about.get("optimiser", "sgd"),
                        "lr": (0.0625).hex(),
                        "batch": 32,
                        "epochs": max(epochs),
                        "model": model,
                    }
                }
            }
        }
        for run, about in trainings.items()
        for epoch in epochs
    }
    return json.dumps(found)


def expansion_tree(
    rsv: Sequence[float] = (2.0, 0.5, 0.7, 0.8, 0.9),
    random: Sequence[float] = (2.0, 0.5, 0.55, 0.6, 0.65),
    accuracy: Sequence[float] = (0.1, 0.5, 0.7, 0.8, 0.9),
    runs: int = 3,
) -> xr.DataTree:
    """GI at each epoch along both kinds of directions, the same in each run but for noise, and test accuracy."""
    trainings = {f"net-seed{i}": {"seed": i} for i in range(runs)}
    coords = {**encoder_coords(trainings), "probeset": np.array(["digits"], dtype=object), "image": np.arange(IMAGES)}
    nodes: dict[str, xr.Dataset] = {}
    for place, (name, levels) in enumerate({"gi": rsv, "gi-random": random}.items()):
        rng = np.random.default_rng(place)
        level = np.tile(levels, runs)[:, None, None, None]
        values = level * np.exp(0.02 * rng.normal(size=(len(level), 1, IMAGES, DIRECTIONS)))
        dims = ("encoder", "probeset", "image", "direction")
        data = {"gi": values, "gi_negative": values, "distance": 8 * values, "singular_value": values}
        flags = {"censored": values > 1.8, "censored_negative": values > 1.8}
        ds = xr.Dataset({key: (dims, array) for key, array in (data | flags).items()}, coords)
        ds["gi"].attrs["units"] = "diagonals of the input box"
        probe = {"cap": (20.0).hex(), "search": "exact", "layer": "pre", "n_directions": None if place else 8}
        nodes[name] = ds.assign_attrs(probe=json.dumps({"fields": probe}), encoders=recipes(trainings))
    scores = {"test_accuracy": ("encoder", np.tile(accuracy, runs).astype(float))}
    nodes["training"] = xr.Dataset(scores, {name: coords[name] for name in coords if name not in ("probeset", "image")})
    return xr.DataTree.from_dict(nodes)


SEEDS = {f"mlp-seed{i}": {"seed": i} for i in range(4)}
OPTIMISERS = {f"mlp-{name}": {"variant": name, "optimiser": name} for name in ("adam", "rmsprop")}


def seeds_tree(
    untrained: Sequence[float] = (0.2, 0.5, 0.8, 0.35, 0.2, 0.2),
    trained: Sequence[float] = (0.95, 0.955, 0.945, 0.95, 0.96, 0.965),
    images: int = 20,
    epochs: Sequence[int] = (0, 1, 5),
) -> xr.DataTree:
    """Coverage before and after training of four seeds with SGD, and of Adam and RMSprop with the first seed.

    Every fifth image is misclassified.
    """
    trainings = SEEDS | OPTIMISERS
    rng = np.random.default_rng(0)
    levels = np.array([[low, *[high] * (len(epochs) - 1)] for low, high in zip(untrained, trained, strict=True)])
    noise = 0.01 * rng.normal(size=(levels.size, 1, images))
    coverage = (levels.reshape(-1, 1, 1) + noise - noise.mean(-1, keepdims=True)).clip(0, 1)
    coords = {
        **encoder_coords(trainings, epochs),
        "probeset": np.array(["digits"], dtype=object),
        "image": np.arange(images),
        "label": (("probeset", "image"), np.arange(images)[None] % 10),
    }
    dims, correct = ("encoder", "probeset", "image"), np.broadcast_to(np.arange(images) % 5 > 0, coverage.shape)
    predicted = (np.arange(images) + ~correct) % 10
    ds = xr.Dataset({"coverage": (dims, coverage), "correct": (dims, correct), "predicted": (dims, predicted)}, coords)
    node = ds.assign_attrs(encoders=recipes(trainings, epochs))
    scores = {"test_accuracy": ("encoder", np.linspace(0.1, 0.9, levels.size))}
    return xr.DataTree.from_dict({"coverage": node, "training": xr.Dataset(scores, {"encoder": coords["encoder"]})})
