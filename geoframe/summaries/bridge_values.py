"""Per image: the response's peak scale η*, how far the boundary is, and what local geometry says (the bridge study)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.pairing import along_encoder, in_order, initial, numbers_of
from geoframe.statistics.profile import Array, BumpRule, profile_shape
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

HALVES = ("first", "second")
QUARTER = 0.25  # of the signed rays: in a half-space half of them cross
MIDDLE = 0.5  # of a tube's ray: at an end, its radius is nearly the isotropic interval itself
TRUE, RANDOM = "true", "random"
INIT, EARLY, LATE = "init", "early", "late"


@attrs.frozen
class Nodes:
    """Names of the results' nodes; what isn't there is left out, but for the first two."""

    response: str = "response"
    gi: str = "isotropic-gi"
    local: str = "local-geometry"
    boundary: str = "boundary-distance"
    tube: str = "tube"


@attrs.frozen
class Peaks:
    """Peaks of response profiles; every field has the profiles' leading shape.

    Attributes
    ----------
    scale : array of float
        η*, the place of an interior maximum that is high enough for the rule, by a parabola; NaN where there is none.
    at_end : array of bool
        The profile is high enough, but its last valid rung is about as high as its largest: it rises still, or has no
        one place where it is largest. The peak is censored.
    """

    scale: Array
    at_end: Array


def response_peaks(scale: Array, response: Array, rule: BumpRule | None = None) -> Peaks:
    """Find η* of responses m_η / η², (..., scale), NaN where invalid.

    A profile is taken relative to its smallest valid rung, where the response is the linear one along the same
    directions: what is left is r_η without its denominator's error. High enough is the rule's `peak_minimum`, and
    about as high is within its `plateau_tolerance`.
    """
    rule = rule or BumpRule()
    values = np.where(np.isfinite(response) & (response > 0), response, np.nan)
    order = np.argsort(scale)
    ascending, eta = values[..., order], np.asarray(scale)[order]
    good = np.isfinite(ascending)
    first, last = (
        np.take_along_axis(ascending, place[..., None], axis=-1)
        for place in (good.argmax(-1), good.shape[-1] - 1 - good[..., ::-1].argmax(-1))
    )
    shape = profile_shape(eta, ascending / first, rule)
    highest = np.max(np.where(good, ascending, 0), axis=-1)
    end = (last[..., 0] >= (1 - rule.plateau_tolerance) * highest) & (highest >= rule.peak_minimum * first[..., 0])
    return Peaks(np.where(shape.peak & ~end, shape.scale, np.nan), end & good.any(-1))


def quarter(distance: Array) -> Array:
    """Return the distance within which a quarter of the last axis' rays have left the class; NaN where all are."""
    found = np.quantile(np.where(np.isfinite(distance), distance, np.inf), QUARTER, axis=-1, method="inverted_cdf")
    return np.where(np.isfinite(found), found, np.nan)


def states(ds: xr.Dataset) -> tuple[list[str], list[str], list[int]]:
    """Return each encoder's labels ("true", "random", or a variant's name), state ("init", "early", "late"), and seed.

    Early and late are the first and the last checkpoint of a variant and a seed; what lies between is "epoch 7". Where
    there is one, it is late. Initial weights have no labels: "".
    """
    variants = [str(v) for v in along_encoder(ds, "variant") or [""] * ds.sizes["encoder"]]
    names = [str(name) for name in ds["encoder"].values]
    when = numbers_of(ds, "epoch")
    seeds = [int(v) for v in along_encoder(ds, "seed") or [0] * ds.sizes["encoder"]]
    random = initial(ds).values.tolist()
    labels = ["" if r else {"": TRUE, "random-labels": RANDOM}.get(v, v) for v, r in zip(variants, random, strict=True)]
    found = []
    for name, group, is_initial in zip(names, zip(labels, seeds, strict=True), random, strict=True):
        mine = in_order((n for n, *other in zip(names, labels, seeds, strict=True) if tuple(other) == group), when)
        between = EARLY if name == mine[0] else f"epoch {when[name]:g}"
        found.append(INIT if is_initial else LATE if name == mine[-1] else between)
    return labels, found, seeds


def bridge_values(tree: xr.DataTree, nodes: Nodes | None = None, probeset: str | None = None) -> xr.Dataset:
    """Collect what the bridge study correlates, image by image.

    Parameters
    ----------
    tree : xarray.DataTree
        Published results.
    nodes : Nodes, optional
    probeset : str, optional
        Default: the first one.

    Returns
    -------
    xarray.Dataset
        (encoder, image, output): `peak` (η*), `at_end`, `kept` (share of signed rays that hold the class at η*), and
        `peak_half` with dimension half. (encoder, image): `q25`, `q25_half`, `q25_censored`, and, where they were
        measured, `q0`, `eta_j`, `b_j`, `trace`, `norm`, `b`, `tube`. Over encoder: `labels`, `state`, `seed`.
    """
    import xarray as xr

    nodes = nodes or Nodes()
    response = _on(stored_node(tree, nodes.response), probeset).transpose("encoder", "image", "half", "output", "scale")
    rays = _on(stored_node(tree, nodes.gi), probeset).transpose("encoder", "image", "direction", "sign")
    if response.sizes["image"] != rays.sizes["image"]:
        raise BadInput(f"nodes {nodes.response!r} and {nodes.gi!r} hold other images: measure both in one study")
    pixel = ("encoder", "image")
    labels, found, seeds = states(response)
    ds = xr.Dataset(
        {**_peaks(response), **_intervals(rays), "predicted": (pixel, response["predicted"].values)},
        {
            "encoder": response["encoder"].values,
            "output": response["output"].values,
            "half": list(HALVES),
            "labels": ("encoder", np.array(labels, dtype=object)),
            "state": ("encoder", np.array(found, dtype=object)),
            "seed": ("encoder", seeds),
        },
    )
    ds["kept"] = ((*pixel, "output"), kept_at(ds["peak"].values, rays["distance"].values, rays["censored"].values))
    for node, renamed in ((nodes.local, {}), (nodes.boundary, {"distance": "b"})):
        if node in tree.children:
            there = _on(stored_node(tree, node), probeset).rename(renamed)
            wanted = [name for name in ("q0", "eta_j", "b_j", "trace", "norm", "b") if name in there]
            ds = ds.assign({name: (pixel, there[name].transpose(*pixel).values) for name in wanted})
    if nodes.tube in tree.children:
        ds["tube"] = (pixel, tube_radii(_on(stored_node(tree, nodes.tube), probeset), ds.sizes["image"]))
    return ds


def _on(ds: xr.Dataset, probeset: str | None) -> xr.Dataset:
    return ds.isel(probeset=0) if probeset is None else ds.sel(probeset=probeset)


def _peaks(response: xr.Dataset) -> dict[str, tuple[tuple[str, ...], Array]]:
    scale, valid = response["scale"].values, response["valid"].transpose("encoder", "image", "output", "scale").values
    whole = response["response"].transpose("encoder", "image", "output", "scale").values
    halves = response["response_half"].values
    found = response_peaks(scale, np.where(valid, whole, np.nan))
    parts = response_peaks(scale, np.where(valid[:, :, None], halves, np.nan))
    dims = ("encoder", "image", "output")
    return {
        "peak": (dims, found.scale),
        "at_end": (dims, found.at_end),
        "valid": (dims, np.asarray(valid.any(-1))),
        "peak_half": (("encoder", "image", "half", "output"), parts.scale),
    }


def _intervals(rays: xr.Dataset) -> dict[str, tuple[tuple[str, ...], Array]]:
    distance, censored = rays["distance"].values, rays["censored"].values.astype(bool)
    n = distance.shape[2]
    halves = [
        quarter(part.reshape(*part.shape[:2], -1)) for part in (distance[:, :, : n // 2], distance[:, :, n // 2 :])
    ]
    found = quarter(distance.reshape(*distance.shape[:2], -1))
    cap = np.asarray(np.max(np.where(censored, distance, 0), axis=(2, 3)))
    return {
        "q25": (("encoder", "image"), found),
        "q25_censored": (("encoder", "image"), np.asarray((cap > 0) & (found >= cap))),
        "q25_half": (("encoder", "image", "half"), np.stack(halves, 2)),
    }


def kept_at(peak: Array, distance: Array, censored: Array) -> Array:
    """Share of signed rays (encoder, image, direction, sign) that hold the class at η* (encoder, image, output).

    NaN without a peak, and where it is beyond the search's cap.
    """
    flat = np.where(np.isfinite(distance), distance, np.nan).reshape(*distance.shape[:2], 1, -1)
    beyond = np.where(censored.astype(bool), distance, np.inf).min(axis=(2, 3))[..., None] < peak
    with np.errstate(invalid="ignore"):
        held = np.mean(flat > peak[..., None], axis=-1)
    known = np.isfinite(peak) & np.isfinite(flat).all(-1) & ~beyond
    return np.where(known, held, np.nan)


def tube_radii(tube: xr.Dataset, images: int) -> Array:
    """Tube radius of each image's rays half-way along them, in raw-pixel L2, (encoder, image).

    Of each ray, the distance within which a quarter of the directions have left the class; of an image, the median of
    its rays. NaN where no ray ends at an image.
    """
    middle = int(np.abs(tube["point"].values - MIDDLE).argmin())
    radius = tube["radius"].transpose("encoder", "ray", "point", "direction").values[:, :, middle]
    absolute = quarter(radius) * tube["hop"].transpose("encoder", "ray").values
    places = tube["test_image"].transpose("encoder", "ray").values
    out = np.full((len(absolute), images), np.nan)
    for encoder, image in np.ndindex(out.shape):
        mine = absolute[encoder, places[encoder] == image]
        if np.isfinite(mine).any():
            out[encoder, image] = np.nanmedian(mine)
    return out
