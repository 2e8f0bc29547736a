"""Made-up results of one network trained with several budgets ε: peaks, predictions and responses that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

ETA = np.logspace(-2, 2, 17)
DIMS = ("encoder", "probeset", "image", "scale")
ACCURACIES = {"train_accuracy": 0.9, "test_accuracy": 0.8}


def shape(eta: np.ndarray, height: float) -> np.ndarray:
    """A profile that starts at 1, peaks near η = 1 and decays."""
    return (1 + (height - 1) * np.exp(-(np.log(eta) ** 2) / 2)) / (1 + (eta / 8) ** 2)


def adversarial_tree(
    places: Sequence[float] = (0.3, 1.0, 6.0),
    drops: Sequence[float] = (1.0, 30.0, 2000.0),
    epsilons: Sequence[float] = (0.0, 0.25, 1.0),
    *,
    heights: Sequence[float] = (4.0, 6.0, 9.0),
    images: int = 24,
    probesets: Sequence[str] = ("digits-test300",),
    training: str = "digits",
    spread: float = 0.3,
) -> xr.DataTree:
    """Networks with peaks near `places` and predictions lower by `drops` than that of the first; images differ."""
    rng = np.random.default_rng(0)
    own, level = (np.exp(rng.normal(0, s, (len(probesets), images))) for s in (spread, 1.0))
    ratio = np.stack([shape(ETA / (p * own[..., None]), h) for p, h in zip(places, heights, strict=True)])
    prediction = np.stack([level / drop * np.exp(rng.normal(0, 0.1, level.shape)) for drop in drops])
    ds = xr.Dataset(
        {
            "ratio": (DIMS, ratio),
            "ratio_se": (DIMS, 0.02 * ratio),
            "response": (DIMS, ratio * prediction[..., None]),
            "prediction": (DIMS[:3], prediction),
            "prediction_se": (DIMS[:3], 0.01 * prediction),
        },
        {
            "encoder": np.array([f"net-eps{e:g}" for e in epsilons], dtype=object),
            "architecture": ("encoder", np.array(["net"] * len(epsilons), dtype=object)),
            "training": ("encoder", np.array([training] * len(epsilons), dtype=object)),
            "epsilon": ("encoder", np.array(epsilons, dtype=float)),
            "probeset": np.array(probesets, dtype=object),
            "image": np.arange(images),
            "scale": ETA,
        },
    )
    scores = {name: ("encoder", np.full(len(epsilons), value)) for name, value in ACCURACIES.items()}
    node = xr.Dataset(scores, {"encoder": ds["encoder"].values})
    return xr.DataTree.from_dict({"ratio": ds, "training": node})
