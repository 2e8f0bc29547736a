"""The images of a training: loaded once for the trainings of a study, with their labels and how they are normalised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch

from geoframe.encoder import PerChannel, Shape
from geoframe.encoders.model import Model
from geoframe.errors import BadInput, EncoderRefused
from geoframe.sources import source_of

if TYPE_CHECKING:
    from geoframe.probeset import Images, ProbeSet

_LOADED: dict[tuple[str, str | None, Shape], Images] = {}


@attrs.frozen(eq=False)
class Labelled:
    """Images, their labels, and how the model wants them.

    Attributes
    ----------
    pixels : torch.Tensor
        (n, channel, height, width), raw, in [0, 1].
    y : torch.Tensor
        (n,), int64.
    mean, std : torch.Tensor
        (channel or 1, 1, 1).
    label : str
        The probe set's name.
    digest : str
        Of the raw pixels.
    device : torch.device
        Where the model is, and with it `mean` and `std`; pixels and labels stay on the CPU.
    """

    pixels: torch.Tensor
    y: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor
    label: str
    digest: str
    device: torch.device

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return raw pixels as and where the model wants them, a batch at a time: a copy of all takes memory."""
        return (pixels.to(self.device) - self.mean) / self.std


def labelled(probeset: ProbeSet, model: Model, training: str, device: torch.device) -> Labelled:
    """Load a probe set for a model on a device.

    Raises
    ------
    BadInput
        Where an image has no label, or the normalisation is for other channels.
    """
    images = _images(probeset, model.input_shape)
    labels = torch.tensor(images.labels, dtype=torch.int64)
    if (labels < 0).any():
        raise BadInput(f"training needs labels, and probe set {probeset.label!r} has images without: use another set")
    mean, std = (_per_channel(value, model.input_shape[0], training).to(device) for value in (model.mean, model.std))
    return Labelled(images.pixels, labels, mean, std, probeset.label, images.digest, device)


def _per_channel(value: PerChannel, channels: int, training: str) -> torch.Tensor:
    tensor = torch.as_tensor(value, dtype=torch.float32).reshape(-1, 1, 1)
    if len(tensor) not in (1, channels):
        have = "1 channel" if channels == 1 else f"{channels} channels"
        raise EncoderRefused(
            f"training {training!r}: its model's mean and std hold {len(tensor)} values, but its images have {have}: "
            "give a value for each channel, or one for all"
        )
    return tensor


def _images(probeset: ProbeSet, shape: Shape) -> Images:
    """Keep the two sets loaded last, training and test images: the next training often has the same."""
    key = (probeset.key, source_of(probeset), shape)
    if key not in _LOADED:
        while len(_LOADED) > 1:
            del _LOADED[next(iter(_LOADED))]
        _LOADED[key] = probeset.load(shape)
    return _LOADED[key]
