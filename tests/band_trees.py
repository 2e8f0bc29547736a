"""Made-up results of a classifier of long-tailed data, with known flows between frequency bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

COUNTS = {0: 650, 1: 500, 2: 400, 3: 300, 4: 250, 5: 220, 6: 180, 7: 140, 8: 120, 9: 100}
"""6.5:1; 0 to 3 are high, 4 to 6 medium, 7 to 9 low."""
LOW, MEDIUM, HIGH = 9, 5, 0
Moves = Sequence[tuple[int, int, int, float]]
"""True class, predicted class, how many images, and their coverage."""

CORRECT: Moves = [(label, label, 100, 0.95) for label in range(10)]
ERRORS: Moves = [
    (LOW, MEDIUM, 47, 0.9),
    (LOW, HIGH, 35, 0.92),
    (LOW, 8, 18, 0.9),
    (HIGH, 1, 12, 0.91),
    (MEDIUM, HIGH, 12, 0.94),
]


def band_tree(
    moves: Moves = (*CORRECT, *ERRORS), counts: Mapping[int, int] = COUNTS, dataset: str = "MNIST"
) -> xr.DataTree:
    """A trained network and its random copy on one probe set; coverage scatters a little, around its mean."""
    label, predicted = (np.repeat([move[i] for move in moves], [move[2] for move in moves]) for i in (0, 1))
    coverage = np.concatenate([level + 0.01 * np.linspace(-1, 1, n) for _, _, n, level in moves])
    dims = ("encoder", "probeset", "image")

    def both(values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
        return dims, np.stack([values, values])[:, None]

    about = {
        "encoder": np.array(["mlp", "mlp-random"], dtype=object),
        "training": ("encoder", np.array([dataset, "random"], dtype=object)),
        "dataset": ("encoder", np.array([dataset] * 2, dtype=object)),
    }
    rays = xr.Dataset(
        {"coverage": both(coverage), "predicted": both(predicted), "correct": both(label == predicted)},
        {**about, "probeset": np.array(["test"], dtype=object), "label": (("probeset", "image"), label[None])},
    )
    table = np.array([list(counts.values())] * 2)
    training = xr.Dataset({"class_counts": (("encoder", "class"), table)}, {**about, "class": list(counts)})
    return xr.DataTree.from_dict({"coverage": rays, "training": training})
