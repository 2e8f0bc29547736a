"""Made-up results of the bridge study, in which what η* follows is known."""

from __future__ import annotations

import numpy as np
import xarray as xr

OUTPUTS = ["features", "logits", "margin"]
ETA = np.logspace(-2, 2, 33)
PIXELS = 3072
LEAD = ("encoder", "probeset", "image")


def profiles(peak: np.ndarray) -> np.ndarray:
    """m_η / η² with a peak of four times the plateau at each place (…), and none where it is NaN."""
    log = np.log(ETA / np.where(np.isfinite(peak), peak, 1)[..., None])
    return np.where(np.isfinite(peak)[..., None], 1 + 3 * np.exp(-(log**2)), 1 / (1 + ETA / 10))


def networks(seeds: int, random_labels: bool = True) -> list[tuple[str, str, int, int]]:
    """Name, variant, epoch and seed of each encoder."""
    found = []
    for seed in range(seeds):
        found += [(f"s{seed}-init", "", 0, seed), (f"s{seed}-early", "", 2, seed), (f"s{seed}-late", "", 20, seed)]
        if random_labels:
            found += [(f"r{seed}-{name}", "random-labels", epoch, seed) for name, epoch in (("early", 2), ("late", 20))]
    return found


def bridge_tree(
    follows: str = "q25", seeds: int = 2, images: int = 40, memorised: float = 1.0, rays: int = 8, noise: float = 0.1
) -> xr.DataTree:
    """Results in which η* follows q25, or η_J alone, which q25 follows too; initial networks have no peaks.

    η_J has its own causes of variance; q25 is η_J times something that only finite steps see.
    """
    rng = np.random.default_rng(0)
    known = networks(seeds)
    shape = (len(known), 1, images)
    eta_j = np.exp(rng.normal(1, 0.5, shape))
    q25 = eta_j * np.exp(rng.normal(0, 0.5, shape))
    source = {"q25": q25, "eta_j": eta_j}[follows]
    peak = source[..., None] * np.exp(noise * rng.normal(size=(*shape, 3)))
    epochs = np.array([epoch for _, _, epoch, _ in known])
    peak[epochs == 0] = np.nan
    names = np.array([name for name, *_ in known], dtype=object)
    coords = {
        "encoder": names,
        "variant": ("encoder", np.array([variant for _, variant, *_ in known], dtype=object)),
        "training": ("encoder", np.array(["random" if not epoch else "CIFAR10" for epoch in epochs], dtype=object)),
        "epoch": ("encoder", epochs),
        "seed": ("encoder", [seed for *_, seed in known]),
        "probeset": np.array(["cifar"], dtype=object),
        "image": np.arange(images),
    }
    predicted = (LEAD, rng.integers(0, 4, shape))
    response = profiles(peak)
    nodes = {
        "response": xr.Dataset(
            {
                "response": ((*LEAD, "output", "scale"), response),
                "response_half": ((*LEAD, "half", "output", "scale"), np.stack([response, response], 3)),
                "valid": ((*LEAD, "output", "scale"), np.ones_like(response, dtype=bool)),
                "predicted": predicted,
            },
            {**coords, "output": OUTPUTS, "half": ["first", "second"], "scale": ETA},
        ),
        "isotropic-gi": xr.Dataset(
            {**_rays(q25, rays), "predicted": predicted}, {**coords, "sign": [1, -1], "direction": np.arange(rays)}
        ),
        "local-geometry": xr.Dataset(
            {
                "eta_j": (LEAD, eta_j),
                "b_j": (LEAD, eta_j / np.sqrt(PIXELS)),
                "q0": (LEAD, rng.exponential(1, shape)),
                "trace": (LEAD, rng.exponential(1, shape)),
                "norm": (LEAD, rng.exponential(1, shape)),
            },
            coords,
        ),
        "boundary-distance": xr.Dataset({"distance": (LEAD, q25 / (1.4826 * np.sqrt(PIXELS)))}, coords),
        "training": _training(names, known, memorised),
    }
    return xr.DataTree.from_dict(nodes)


def _rays(q25: np.ndarray, rays: int) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Signed rays: −u never crosses, and of u, half before q25; in each half of the directions too."""
    place = np.where(np.arange(rays) % 2 == 0, 1.0, 3.0)
    ahead = q25[..., None] * place
    distance = np.stack([ahead, np.full_like(ahead, 100.0)], -1)
    dims = (*LEAD, "direction", "sign")
    return {"distance": (dims, distance), "censored": (dims, distance == 100.0)}


def _training(names: np.ndarray, known: list[tuple[str, str, int, int]], memorised: float) -> xr.Dataset:
    fit = [memorised if variant and epoch == 20 else 0.5 for _, variant, epoch, _ in known]
    return xr.Dataset(
        {"train_accuracy": ("encoder", fit), "test_accuracy": ("encoder", [0.4] * len(fit))}, {"encoder": names}
    )


def with_tube(tree: xr.DataTree, every: int = 1) -> xr.DataTree:
    """The same with tubes whose radius half-way is 0.5 hops, on rays to each image; the hop is 2, 3, …."""
    encoders, images = tree["response"].sizes["encoder"], tree["response"].sizes["image"]
    radius = np.full((encoders, 1, images, 3, 8), 2.0)
    radius[..., 1, :4] = 0.5
    place = np.where(np.arange(images) % every == 0, np.arange(images), -1)
    ds = xr.Dataset(
        {
            "radius": (("encoder", "probeset", "ray", "point", "direction"), radius),
            "hop": (("encoder", "probeset", "ray"), np.broadcast_to(2.0 + np.arange(images), (encoders, 1, images))),
            "test_image": (("encoder", "probeset", "ray"), np.broadcast_to(place, (encoders, 1, images))),
        },
        {"encoder": tree["response"]["encoder"], "probeset": tree["response"]["probeset"], "point": [0.0, 0.5, 1.0]},
    )
    return xr.DataTree.from_dict({**{n: c.to_dataset() for n, c in tree.children.items()}, "tube": ds})
