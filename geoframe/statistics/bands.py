"""Stored predictions by frequency band: how many training images the true and the predicted class had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.pairing import initial
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

BANDS = ("low", "medium", "high")
CORRECT = "correct"
DESTINATIONS = (CORRECT, *BANDS)
TRAINING, COUNTS = "training", "class_counts"  # the node that says what encoders were trained on, and its variable
_NAMES = {"tail": "low", "medium": "medium", "head": "high"}
PUBLISHED_FLOWS = {"medium": 0.472, "high": 0.352, "low": 0.176}
"""I.2, MNIST-LT1 (6.5:1): where its misclassified low-band samples go."""
PUBLISHED_COVERAGE = (0.866, 0.943)
"""I.2, both settings: least and largest coverage over all combinations of bands."""
Array = np.ndarray[Any, Any]


def class_bands(counts: Mapping[int, int]) -> dict[int, str]:
    """Band of each class by its training images (see `frequency_bands`), in the paper's words: low, medium, high.

    >>> class_bands({0: 100, 1: 10, 2: 1})
    {0: 'high', 1: 'medium', 2: 'low'}
    """
    from geoframe.probesets.longtail import frequency_bands

    return {label: _NAMES[band] for label, band in frequency_bands(counts).items()}


@attrs.frozen(eq=False)
class Banded:
    """One trained classifier on one probe set: the labelled images whose true and predicted class have a band.

    Attributes
    ----------
    encoder, probeset, dataset : str
        Names, and what the classifier was trained on.
    counts : dict of int to int
        Its training images of each class.
    true, predicted : numpy.ndarray
        (image,): band of the true and of the predicted class.
    correct : numpy.ndarray
        (image,), bool.
    coverage : numpy.ndarray
        (image,): share of rays that keep the predicted class; NaN without rays.
    """

    encoder: str
    probeset: str
    dataset: str
    counts: dict[int, int]
    true: Array
    predicted: Array
    correct: Array
    coverage: Array

    @property
    def bands(self) -> dict[int, str]:
        """Band of each class."""
        return class_bands(self.counts)

    @property
    def ratio(self) -> float:
        """Training images of the largest class over those of the smallest."""
        return max(self.counts.values()) / min(self.counts.values())

    @property
    def has_published_flows(self) -> bool:
        """Whether it is trained on MNIST at 6.5:1, of which the paper's text gives `PUBLISHED_FLOWS`."""
        return self.dataset == "MNIST" and round(self.ratio, 1) == 6.5

    def went(self, band: str, destination: str) -> Array:
        """Which images of a true band are correct, or wrong and of a predicted band."""
        right = destination == CORRECT
        found: Array = (self.true == band) & (self.correct == right) & (right | (self.predicted == destination))
        return found

    def even(self, band: str, destination: str) -> float:
        """Share of a band's errors that would go to another band if every other class drew as many."""
        members = list(self.bands.values())
        return (members.count(destination) - (band == destination)) / (len(members) - 1)


def banded(tree: xr.DataTree, node: str) -> list[Banded]:
    """Return each trained classifier of known training images on each probe set on which its coverage was measured.

    Left out are initial weights, and classifiers whose classes are of one size, which makes a single band.

    Raises
    ------
    BadInput
        Where the node isn't a RayCoverageProbe's.
    """
    ds, training = stored_node(tree, node), stored_node(tree, TRAINING)
    if not {"coverage", "predicted", "correct"} <= {*ds.data_vars}:
        raise BadInput(f"node {node!r} holds no coverage and predictions: name a RayCoverageProbe's")
    if COUNTS not in training:
        return []
    trained = [str(name) for name, random in zip(ds["encoder"].values, initial(ds).values, strict=True) if not random]
    known = {name: _counts(training, name) for name in trained if name in training["encoder"].values}
    return [
        _banded(ds.sel(encoder=name, probeset=probeset), counts)
        for name, counts in known.items()
        if len({*class_bands(counts).values()} if counts else ()) > 1
        for probeset in ds["probeset"].values
        if bool(ds["coverage"].sel(encoder=name, probeset=probeset).notnull().any())
    ]


def _counts(training: xr.Dataset, encoder: str) -> dict[int, int]:
    """Training images of each class that has some."""
    row = training[COUNTS].sel(encoder=encoder)
    return {int(label): int(n) for label, n in zip(row["class"].values, row.values, strict=True) if n > 0}


def _banded(cell: xr.Dataset, counts: dict[int, int]) -> Banded:
    bands = class_bands(counts)
    true, predicted = (
        np.array([bands.get(int(label), "") for label in cell[name].values]) for name in ("label", "predicted")
    )
    known = (true != "") & (predicted != "")
    return Banded(
        str(cell["encoder"].item()),
        str(cell["probeset"].item()),
        next((str(cell[name].item()) for name in ("encoder_dataset", "dataset") if name in cell.coords), ""),
        counts,
        true[known],
        predicted[known],
        cell["correct"].values.astype(bool)[known],
        cell["coverage"].values[known],
    )
