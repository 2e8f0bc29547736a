"""Turn the arrays that a probe returned into a labelled dataset with units and provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from geoframe.errors import BadInput
from geoframe.probe import Probe
from geoframe.probeset import Images
from geoframe.provenance import git_commit, readable, versions

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder
    from geoframe.settings import Settings

KNOWN = {"scale": ("perturbation size η", "raw-pixel L2")}


def label_block(
    probe: Probe,
    encoder: LoadedEncoder,
    images: Images,
    start: int,
    values: dict[str, np.ndarray],
    settings: Settings,
) -> xr.Dataset:
    """Label one block of a cell.

    Returns
    -------
    xarray.Dataset
        Variables as declared, with `long_name` and `units`; coordinates `image` (index in the set),
        `image_id`, `label` (also of probes of whole sets, whose outputs may hold indices of images), the shared
        outputs and those of the probe's `coords`; attributes with everything needed to repeat it.
    """
    variables = {name: _variable(name, probe, values[name]) for name in probe.declared()}
    shared = {name: variables.pop(name) for name, output in probe.declared().items() if output.shared}
    dataset = xr.Dataset(variables, coords=shared, attrs=_provenance(probe, encoder, images, settings))
    dataset = dataset.assign_coords(_own_coords(probe, dataset))
    n = dataset.sizes.get("image", len(images)) if probe.per == "set" else dataset.sizes["image"]
    if probe.per == "set" and n != len(images):
        return dataset  # a dimension of the probe's own
    rows = range(start, start + n)
    return dataset.assign_coords(
        image=("image", np.array(rows, dtype=np.int64), _described("index of the image in its set")),
        image_id=("image", np.array([images.ids[i] for i in rows], dtype=object), _described("id of the image")),
        label=(
            "image",
            np.array([images.labels[i] for i in rows], dtype=np.int64),
            _described("class label (−1: unknown)"),
        ),
    )


def _variable(name: str, probe: Probe, value: np.ndarray) -> xr.Variable:
    output = probe.declared()[name]
    described = {"long_name": output.long_name or name.replace("_", " "), "units": output.units}
    return xr.Variable(probe.dims_of(name), value, described)


def _described(long_name: str, units: str = "1") -> dict[str, str]:
    return {"long_name": long_name, "units": units}


def _own_coords(probe: Probe, dataset: xr.Dataset) -> dict[str, Any]:
    given = probe.coords()
    coords = {}
    for dim in dict.fromkeys(map(str, dataset.dims)):
        if dim in dataset.coords or (dim == "image" and probe.per == "image"):
            continue
        size = dataset.sizes[dim]
        labels = np.asarray(given[dim]) if dim in given else np.arange(size)
        if len(labels) != size:
            raise BadInput(f"{type(probe).__name__}.coords() has {len(labels)} labels for {dim!r}, which has {size}")
        coords[dim] = xr.Variable((dim,), labels, _described(*KNOWN.get(dim, (dim.replace("_", " "), "1"))))
    return coords


def _provenance(probe: Probe, encoder: LoadedEncoder, images: Images, settings: Settings) -> dict[str, str]:
    return {
        "probe": json.dumps(readable(probe.identity()), sort_keys=True, ensure_ascii=False),
        "weights": encoder.digest,
        "weights_source": encoder.source,
        "layer": encoder.layer,
        "images": images.digest,
        "settings": json.dumps(settings.to_json(), sort_keys=True),
        "versions": json.dumps(versions(), sort_keys=True),
        "git_commit": git_commit(Path.cwd()),
    }
