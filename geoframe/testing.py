"""For authors of probes: a tiny encoder, a few images, and `check_probe`, which tries what runs will do.

Examples
--------
>>> from geoframe.testing import check_probe                   # doctest: +SKIP
>>> check_probe(MyProbe())                                     # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoframe.encoder import Encoder, Shape
from geoframe.encoders.module import ModuleEncoder
from geoframe.errors import GeoframeError
from geoframe.measuring import measure
from geoframe.probe import Probe
from geoframe.probeset import ProbeSet
from geoframe.probesets.tensor import TensorSet

if TYPE_CHECKING:
    import xarray as xr

SHAPE: Shape = (3, 8, 8)
CLASSES = 4


def tiny_encoder(seed: int = 0) -> ModuleEncoder:
    """Return a small convolutional ReLU network with a head of four classes, untrained."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        features = torch.nn.Sequential(
            torch.nn.Conv2d(SHAPE[0], 6, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.AvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(96, 12),
            torch.nn.ReLU(),
        )
        head = torch.nn.Linear(12, CLASSES)
    return ModuleEncoder(features, head, input_shape=SHAPE, mean=0.5, std=0.25, name="tiny")


def tiny_images(n: int = 5, seed: int = 0) -> TensorSet:
    """Return n random images with labels, at the tiny encoder's input shape."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand(n, *SHAPE, generator=generator)
    return TensorSet(pixels, labels=torch.arange(n) % CLASSES, name="tiny")


def check_probe(
    probe: Probe, encoder: Encoder | None = None, images: ProbeSet | None = None, *, rtol: float = 1e-3
) -> xr.Dataset:
    """Measure a probe the ways a run may, and assert that its numbers don't depend on which.

    Parameters
    ----------
    probe : Probe
        The probe under test.
    encoder, images : Encoder, ProbeSet, optional
        What it is measured on; the tiny ones by default.
    rtol : float
        Tolerance for results of another batch size, which may differ in their last digits.

    Returns
    -------
    xarray.Dataset
        The measurement, for further tests.

    Raises
    ------
    AssertionError
        Where the key can't be made, a variable has no units, or the numbers change between two equal
        measurements, between batch sizes, or (image by image) with the other images of the set.
    """
    encoder, images = encoder or tiny_encoder(), images or tiny_images()
    try:
        assert len(probe.key) == 32
        first, again = (measure(probe, encoder, images, device="cpu") for _ in range(2))
        small = measure(probe, encoder, images, device="cpu", memory=1)
    except GeoframeError as error:
        raise AssertionError(f"{type(probe).__name__}: {error}") from error
    for name in probe.declared():
        variable = first[name]
        assert variable.attrs.get("units"), f"{name} has no units"
        assert _same(variable.values, again[name].values, 0.0), (
            f"{name} differs between two equal measurements: what is random should come from batch.rng, a "
            "torch.Generator an image"
        )
        assert _same(variable.values, small[name].values, rtol), f"{name} depends on the batch size"
    if probe.per == "image":
        _check_subset(probe, encoder, images, first, rtol)
    return first


def _check_subset(probe: Probe, encoder: Encoder, images: ProbeSet, whole: xr.Dataset, rtol: float) -> None:
    loaded = images.load(_shape(encoder))
    last = TensorSet(loaded.pixels[-1:], labels=loaded.labels[-1:], ids=loaded.ids[-1:])
    alone = measure(probe, encoder, last, device="cpu")
    for name in probe.declared():
        ours = whole[name].values[-1:] if "image" in probe.dims_of(name) else whole[name].values
        assert _same(ours, alone[name].values, rtol), f"{name} of an image depends on the other images of the set"


def _shape(encoder: Encoder) -> Shape:
    """Return the shape at which an encoder takes images."""
    return encoder.input_shape or encoder.build().input_shape


def _same(one: np.ndarray, other: np.ndarray, rtol: float) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=rtol, atol=rtol * 1e-3, equal_nan=True))
    return bool((one == other).all())
