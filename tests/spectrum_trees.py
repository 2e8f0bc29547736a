"""Made-up results of probes along singular vectors."""

from __future__ import annotations

import numpy as np
import xarray as xr

IMAGES, DIRECTIONS = 12, 40
RAYS = ("encoder", "probeset", "image", "direction")


def spectrum_tree(early: float = 1.0, late: float = 2.0, epochs: tuple[int, ...] = (0, 1, 5)) -> xr.DataTree:
    """GI and α that rise with the index by `late` at the last epoch; ten null directions."""
    rng = np.random.default_rng(0)
    shape = (len(epochs), 1, IMAGES, DIRECTIONS)
    rise = np.linspace(0, 1, DIRECTIONS)
    level = np.array([early if epoch < max(epochs) else late for epoch in epochs])[:, None, None, None]
    values = 0.5 + level * rise + 0.05 * rng.normal(size=shape)
    sigma = np.where(np.arange(DIRECTIONS) < 30, np.logspace(1, -2, DIRECTIONS), 0) * np.ones(shape)
    censored = np.zeros(shape, dtype=bool)
    coords = {
        "encoder": np.array([f"epoch{e}" for e in epochs], dtype=object),
        "epoch": ("encoder", list(epochs)),
        "architecture": ("encoder", np.array(["mlp"] * len(epochs), dtype=object)),
        "training": ("encoder", np.array(["digits" if e else "random" for e in epochs], dtype=object)),
        "probeset": np.array(["digits"], dtype=object),
        "image": np.arange(IMAGES),
    }
    gi = {"gi": (RAYS, values), "gi_negative": (RAYS, values), "distance": (RAYS, 8 * values)}
    gi |= {"censored": (RAYS, censored), "censored_negative": (RAYS, ~censored), "singular_value": (RAYS, sigma)}
    alpha = {"alpha": (RAYS, values), "alpha_negative": (RAYS, values), "singular_value": (RAYS, sigma)}
    counts = np.full(shape[:3], 30)
    jacobian = {
        "singular_value": ((*RAYS[:3], "component"), sigma[..., :35]),
        "rank": (RAYS[:3], counts),
        "n_significant": (RAYS[:3], counts // 2),
    }
    nodes = {"gi": gi, "linearity": alpha, "jacobian": jacobian}
    return xr.DataTree.from_dict({name: xr.Dataset(data, coords) for name, data in nodes.items()})


def two_sets(first: xr.DataTree, second: xr.DataTree, name: str = "other") -> xr.DataTree:
    """Join two trees along the probe set; the second one's is called `name`."""
    nodes = {}
    for node in first.children:
        other = second[node].to_dataset().assign_coords(probeset=np.array([name], dtype=object))
        nodes[node] = xr.concat([first[node].to_dataset(), other], "probeset", data_vars="minimal")
    return xr.DataTree.from_dict(nodes)


def bounds_tree(violations: int = 0) -> xr.DataTree:
    rng = np.random.default_rng(0)
    dims = ("encoder", "probeset", "image", "direction", "sign")
    gi = rng.uniform(0.1, 2, (2, 1, 5, 6, 2))
    ds = xr.Dataset(
        {
            "gi": (dims, gi),
            "useful": (dims, gi / 4),
            "theorem1": (dims, np.where(np.arange(2) == 0, 0.1, 0.0) * np.ones_like(gi)),
            "theorem2": (dims, np.zeros_like(gi)),
            "censored": (dims, gi > 1.9),
            "violations": (dims[:3], np.full((2, 1, 5), violations)),
        },
        {"encoder": np.array(["a", "b"], dtype=object), "probeset": np.array(["digits"], dtype=object)},
    )
    return xr.DataTree.from_dict({"bounds": ds})
