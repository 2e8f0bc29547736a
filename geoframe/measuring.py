"""Measure one probe on one encoder and one set of images: what `gf.measure` and a cell of a run share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from geoframe.encoder import Encoder
from geoframe.errors import BadInput
from geoframe.field_types import check_memory
from geoframe.geometry.directions import stream_key
from geoframe.labelling import label_block
from geoframe.loaded import LoadedEncoder
from geoframe.numerics import exact_numerics, threads
from geoframe.output_checks import check_outputs
from geoframe.passbar import pass_bar
from geoframe.probe import Batch, Probe
from geoframe.probeset import Images, ProbeSet
from geoframe.references import forget_changed
from geoframe.settings import FIXED, Settings, choose_settings, resolve_device

BLOCK_PASSES = 50_000  # planned for a block at most, unless it is one call: what an interruption may lose


def check_needs(probe: Probe, encoder: LoadedEncoder, images: Images) -> None:
    """Refuse by name what a probe needs and an encoder or a set of images hasn't got."""
    check_outputs(probe)
    if "logits" in probe.needs and encoder.head is None:
        raise BadInput(f"{type(probe).__name__} needs logits, but encoder {encoder.label!r} has no head: give it one")
    if "labels" in probe.needs and all(label < 0 for label in images.labels):
        raise BadInput(f"{type(probe).__name__} needs labels, but the images have none: give the probe set labels")


def blocks(probe: Probe, n_images: int, encoder: LoadedEncoder | None = None) -> list[tuple[int, int]]:
    """Split a cell into blocks of images, each stored when it is done; results don't depend on the split.

    A block has `images_per_block` images, or as many as `BLOCK_PASSES` planned passes of an encoder allow where these
    are fewer. Not where calls are as large as the encoder's batches: they would be padded.
    """
    size = n_images if probe.per == "set" else probe.images_per_block
    if encoder is not None and probe.per != "set" and probe.images_per_call is not None:
        calls = int(BLOCK_PASSES / max(_planned(probe, encoder, probe.images_per_call), 1.0))
        size = min(size, max(1, calls) * probe.images_per_call)
    return [(start, min(start + size, n_images)) for start in range(0, n_images, max(1, size))]


def measure_block(
    probe: Probe, encoder: LoadedEncoder, images: Images, start: int, stop: int, settings: Settings
) -> xr.Dataset:
    """Measure images start…stop−1 under fixed settings.

    Returns
    -------
    xarray.Dataset
        Dimensions (image, …) with coordinates `image`, `image_id`, `label` and those of the probe.
    """
    check_needs(probe, encoder, images)
    for name in FIXED:
        setattr(encoder, name, getattr(settings, name))
    with exact_numerics(), threads(settings.threads):
        probe.check_inputs(encoder, images)
        parts = [
            _call(probe, encoder, images, first, min(first + step, stop), step)
            for step in [_call_size(probe, settings, stop - start)]
            for first in range(start, stop, step)
        ]
    values = {
        name: np.concatenate([part[name] for part in parts]) if _by_image(probe, name) else parts[0][name]
        for name in probe.declared()
    }
    _check_shared(probe, parts)
    return label_block(probe, encoder, images, start, values, settings)


def concat_blocks(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Join the blocks of one cell along `image`."""
    if len(parts) == 1:
        return parts[0]
    return xr.concat(parts, dim="image", data_vars="minimal", coords="minimal", compat="override", join="exact")


def measure(
    probe: Probe, encoder: Encoder, images: ProbeSet, *, device: str = "auto", memory: int | None = None
) -> xr.Dataset:
    """Measure one probe on one encoder and one probe set, without a store; a bar shows the progress on a terminal.

    Parameters
    ----------
    probe, encoder, images : Probe, Encoder, ProbeSet
        What is measured.
    device : str
        A torch device; "auto" takes a GPU where there is one.
    memory : int, optional
        Cap in bytes on the activations of a forward pass.

    Returns
    -------
    xarray.Dataset
        The same bits, coordinates and provenance as one cell of a run; dimensions (image, …); the names of encoder
        and probe set as attributes.

    Raises
    ------
    GeoframeError
        Where the encoder would give silently wrong numbers, or an input can't be used.
    """
    _check_arguments(probe, encoder, images)
    check_memory(memory)
    forget_changed()
    loaded = encoder.load(resolve_device(device))
    data = images.load(loaded.input_shape)
    check_needs(probe, loaded, data)
    settings = choose_settings(loaded, memory, probe.timed())
    loaded.micro_batch = settings.micro_batch
    loaded.preflight(data.pixels)
    with pass_bar(loaded, _planned(probe, loaded, len(data))):
        split = blocks(probe, len(data), loaded)
        parts = [measure_block(probe, loaded, data, start, stop, settings) for start, stop in split]
    return concat_blocks(parts).assign_attrs(encoder=encoder.label, probeset=images.label)


def _check_arguments(probe: Any, encoder: Any, images: Any) -> None:
    """Refuse what isn't a spec, and say what to wrap it in."""
    hints = {
        "encoder": "wrap a module in gf.ModuleEncoder(net, input_shape=…)",
        "images": "wrap a tensor in gf.TensorSet(x)",
    }
    for name, value, kind in (("probe", probe, Probe), ("encoder", encoder, Encoder), ("images", images, ProbeSet)):
        if isinstance(value, type) and issubclass(value, kind):
            raise BadInput(f"measure: {name} is the class {value.__name__}: did you forget the ()?")
        if not isinstance(value, kind):
            hint = hints.get(name, "the order is measure(probe, encoder, images)")
            raise BadInput(f"measure: {name} is a {type(value).__name__}, no {kind.__name__}: {hint}")


def _planned(probe: Probe, encoder: LoadedEncoder, n: int) -> float:
    """Forward passes that n images of a cell are planned as: what they move the progress by in the end."""
    return probe.planned_passes(encoder.input_shape, encoder.training_set) * (1 if probe.per == "set" else n)


def _call_size(probe: Probe, settings: Settings, n: int) -> int:
    return n if probe.per == "set" else probe.images_per_call or settings.micro_batch


def _call(
    probe: Probe, encoder: LoadedEncoder, images: Images, first: int, last: int, size: int
) -> dict[str, np.ndarray]:
    """Call a probe on a batch of exactly `size`: the last one is padded, since batches differ in their bits."""
    rows = [*range(first, last), *[last - 1] * (size - (last - first))]
    batch = Batch(
        images=images.pixels[rows].to(encoder.device),
        labels=torch.tensor([images.labels[i] for i in rows], dtype=torch.int64, device=encoder.device),
        ids=tuple(images.ids[i] for i in rows),
        rng=tuple(_stream(probe, images.ids[i]) for i in rows),
    )
    with encoder.counted_as(_planned(probe, encoder, last - first)):
        found = _as_arrays(probe, probe.measure(encoder, batch))
    for name, value in found.items():
        _check_shape(probe, name, value, size)
    return {name: value[: last - first] if _by_image(probe, name) else value for name, value in found.items()}


def _check_shared(probe: Probe, parts: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Refuse an output that is declared to be the same for all images and isn't."""
    for name in (name for name, output in probe.declared().items() if output.shared):
        first = parts[0][name]
        if not all(np.array_equal(first, part[name], equal_nan=first.dtype.kind in "fc") for part in parts[1:]):
            raise BadInput(
                f"{type(probe).__name__}.measure returned {name!r} with other values for other images, but it is "
                "declared shared=True: leave that out"
            )


def _by_image(probe: Probe, name: str) -> bool:
    return "image" in probe.dims_of(name)


def _stream(probe: Probe, image_id: str) -> torch.Generator:
    return torch.Generator().manual_seed(stream_key("probe", probe.seed, image_id) & (2**63 - 1))


def _as_arrays(probe: Probe, found: Any) -> dict[str, np.ndarray]:
    kind = type(probe).__name__
    outputs = probe.declared()
    if not isinstance(found, Mapping) or set(found) != set(outputs):
        got = ", ".join(map(str, found)) or "nothing" if isinstance(found, Mapping) else type(found).__name__
        raise BadInput(f"{kind}.measure returned {got}, but its outputs are {', '.join(outputs)}")
    return {name: _as_array(f"{kind}.measure", name, found[name], outputs[name].dtype) for name in outputs}


def _as_array(who: str, name: str, value: Any, dtype: str) -> np.ndarray:
    """Return a value as declared; what that would change (NaN as a whole number, a complex part) is refused."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value.float() if value.dtype is torch.bfloat16 else value  # which numpy hasn't got
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.asarray(value).astype(object if dtype == "str" else dtype)
    except (TypeError, ValueError, Warning) as error:
        raise BadInput(f"{who} returned {name!r}, which can't be stored as {dtype}: {error}") from error


def _check_shape(probe: Probe, name: str, value: np.ndarray, n: int) -> None:
    dims = probe.dims_of(name)
    if value.ndim != len(dims) or (_by_image(probe, name) and len(value) != n):
        raise BadInput(
            f"{type(probe).__name__}.measure returned {name!r} of shape {value.shape} for {n} images; "
            f"its dimensions are ({', '.join(dims)})"
        )
