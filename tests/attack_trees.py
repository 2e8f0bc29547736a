"""Made-up results of attacked images and of alignments."""

from __future__ import annotations

import numpy as np
import xarray as xr

NETWORKS = {"MNIST": "mlp", "CIFAR10": "resnet20", "digits": "mlp"}
COVERED = {"MNIST": (0.85, 0.93), "CIFAR10": (0.66, 0.45), "digits": (0.9, 0.8)}
DIMS = ("encoder", "probeset", "image")


def _coords(datasets: list[str], stand_in: bool, images: int) -> dict[str, object]:
    names = np.array([f"{NETWORKS[name]}-{name.lower()}" for name in datasets], dtype=object)
    data = np.array(datasets, dtype=object)
    copied = np.array(["JPEG" if stand_in and name == "CIFAR10" else "" for name in datasets], dtype=object)
    return {
        "encoder": names,
        "probeset": np.array([f"{name.lower()}-test" for name in datasets], dtype=object),
        "architecture": ("encoder", np.array([NETWORKS[name] for name in datasets], dtype=object)),
        "dataset": ("encoder", data),
        "probeset_dataset": ("probeset", data),
        "stand_in": ("probeset", copied),
        "label": (("probeset", "image"), np.tile(np.arange(images) % 10, (len(datasets), 1))),
        "image": np.arange(images),
    }


def coverage_node(
    datasets: list[str], images: int, fooled: float, *, attacked: bool, shift: float = 0.0, stand_in: bool = False
) -> xr.Dataset:
    """Each network on its own data: a share of images is misclassified, and covered as I.3 says, plus a shift."""
    rng = np.random.default_rng(int(100 * fooled))
    n = len(datasets)
    ds = xr.Dataset(coords=_coords(datasets, stand_in, images))
    shape = (n, n, images)
    coverage, correct = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    predicted, distance = np.full(shape, -1), np.full(shape, np.nan)
    for i, name in enumerate(datasets):
        right = np.arange(images) >= round(fooled * images)
        levels = np.where(right, *COVERED[name]) + shift
        coverage[i, i] = np.clip(levels + 0.01 * rng.normal(size=images), 0, 1)
        correct[i, i] = right
        predicted[i, i] = np.where(right, np.arange(images) % 10, (np.arange(images) + 1) % 10)
        distance[i, i] = rng.uniform(0.5, 1.5, images)
    ds["coverage"], ds["correct"], ds["predicted"] = (DIMS, coverage), (DIMS, correct), (DIMS, predicted)
    if attacked:
        before = np.where(predicted >= 0, np.arange(images) % 10, -1)
        before[..., 0] = np.where(predicted[..., 0] >= 0, 5, -1)  # the first image was wrong before
        ds["predicted_before"], ds["misclassified"] = (DIMS, before), (DIMS, ~correct & (predicted >= 0))
        ds["distance"], ds["distance_inf"] = (DIMS, distance), (DIMS, distance / 30)
    return ds


def alignment_node(
    datasets: list[str], images: int, top: float, vectors: int = 1, stand_in: bool = False
) -> xr.Dataset:
    """`top` of the energy on the first five of eight vectors, on average."""
    rng = np.random.default_rng(0)
    n = len(datasets)
    ds = xr.Dataset(coords=_coords(datasets, stand_in, images))
    share = np.array([0.4, 0.6, 0.75, 0.9, 1.0, 1.02, 1.04, 1.05])
    energy = np.full((n, n, images, vectors, 8), np.nan)
    base = np.full((n, n, images, 8), np.nan)
    for i in range(n):
        energy[i, i] = top * share * (1 + 0.02 * rng.normal(size=(images, vectors, 1)))
        base[i, i] = np.arange(1, 9) / 8
    ds["energy"] = ((*DIMS, "vector", "component"), energy)
    ds["cosine"] = ((*DIMS, "vector"), np.sqrt(energy[..., 0]))
    ds["baseline"] = ((*DIMS, "component"), base)
    ds["baseline_pullback"] = ((*DIMS, "component"), base**0.5)
    return ds


def attack_tree(
    datasets: tuple[str, ...] = ("MNIST", "CIFAR10", "digits"),
    images: int = 40,
    gradient: float = 0.85,
    difference: float = 0.3,
    shift: float = 0.0,
    stand_in: bool = False,
) -> xr.DataTree:
    names = list(datasets)
    nodes = {"coverage": coverage_node(names, images, 0.05, attacked=False, stand_in=stand_in)}
    for attack, fooled in (("cw", 0.3), ("ifgsm", 0.4), ("pgd", 0.5)):
        nodes[f"coverage-{attack}"] = coverage_node(
            names, images, fooled, attacked=True, shift=shift, stand_in=stand_in
        )
    nodes["alignment"] = alignment_node(names, images, gradient, stand_in=stand_in)
    nodes["alignment-difference"] = alignment_node(names, images, difference, vectors=4, stand_in=stand_in)
    nodes["alignment-pgd"] = alignment_node(names, images, 0.5, stand_in=stand_in)
    return xr.DataTree.from_dict(nodes)
