"""Reference images (a training set, say) that rays start at or run to: loaded once, pooled by label."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import attrs
import numpy as np
import torch

from geoframe.class_checks import check_reference
from geoframe.errors import BadInput
from geoframe.sources import source_of

if TYPE_CHECKING:
    from geoframe.encoder import Shape
    from geoframe.loaded import LoadedEncoder
    from geoframe.probe import Batch
    from geoframe.probeset import Images, ProbeSet

_LOADED: OrderedDict[tuple[str, Shape], tuple[References, ProbeSet, str | None]] = OrderedDict()
_KEPT = 2  # sets held in memory: MNIST's training set takes 190 MB


@attrs.frozen(eq=False)
class References:
    """A loaded reference set.

    Attributes
    ----------
    images : Images
    pools : dict of int to torch.Tensor
        Label to the indices of its images, ascending.
    ids : numpy.ndarray
        Ids of the images, as probes store them; made once, since there may be 60,000.
    """

    images: Images
    pools: dict[int, torch.Tensor]
    ids: np.ndarray = attrs.field(init=False)

    @ids.default
    def _object_array(self) -> np.ndarray:
        return np.array(self.images.ids, dtype=object)

    def drawn(self, label: int, n: int | None, rng: torch.Generator) -> torch.Tensor:
        """Draw n of a label's images without repetition, all where n is None or the pool is smaller; empty if none."""
        pool = self.pools.get(label, torch.empty(0, dtype=torch.int64))
        return pool if n is None else pool[torch.randperm(len(pool), generator=rng)[:n]]

    def largest_pool(self) -> int:
        """Return the size of the largest pool."""
        return max(len(pool) for pool in self.pools.values())


def references_of(probe: str, reference: ProbeSet, shape: Shape) -> References:
    """Load a reference set at an encoder's input shape; the last ones used are kept in memory.

    Raises
    ------
    BadInput
        Where the images have no labels.
    """
    key = (reference.key, shape)
    if key not in _LOADED:
        source = source_of(reference)  # before they are read: what changes meanwhile is noticed afterwards
        images = reference.load(shape)
        labels = torch.tensor(images.labels, dtype=torch.int64)
        pools = {label: (labels == label).nonzero()[:, 0] for label in sorted(set(images.labels)) if label >= 0}
        if not pools:
            raise BadInput(f"{probe}: the reference set {reference.label!r} has no labels: rays need classes to go to")
        _LOADED[key] = References(images, pools), reference, source
    _LOADED.move_to_end(key)
    while len(_LOADED) > _KEPT:
        _LOADED.popitem(last=False)
    return _LOADED[key][0]


def forget_changed() -> None:
    """Forget the loaded sets whose files have changed; within a cell, they stay as they were loaded."""
    for key, (_, reference, source) in list(_LOADED.items()):
        if source_of(reference) != source:
            del _LOADED[key]


def references_for(probe: str, reference: ProbeSet | None, encoder: LoadedEncoder) -> References:
    """Load the reference set that a probe was given, or else the encoder's training set.

    Raises
    ------
    BadInput
        Where neither is known, or no image of it has a class of the encoder.
    """
    chosen = reference or encoder.training_set
    if chosen is None:
        raise BadInput(
            f"{probe}: encoder {encoder.label!r} doesn't say what it was trained on: give the probe a reference="
        )
    found = references_of(probe, chosen, encoder.input_shape)
    check_reference(probe, encoder, chosen.label, found.pools)
    return found


def same_class(
    probe: str, reference: ProbeSet | None, encoder: LoadedEncoder, batch: Batch, n: int
) -> tuple[References, torch.Tensor, torch.Tensor]:
    """Draw up to n reference images of the class that is predicted for the one image of a batch.

    Returns
    -------
    references : References
    held : torch.Tensor
        (1,): the predicted class.
    chosen : torch.Tensor
        Indices of the reference images; fewer than n, or none, where the class has no more.
    """
    from geoframe.lines import predicted

    references = references_for(probe, reference, encoder)
    held = predicted(encoder, batch.images)
    chosen = references.drawn(int(held), n, batch.rng[0])
    ids, others = references.images.ids, references.images.pixels[chosen]
    check_distinct(probe, batch.images[0].cpu(), batch.ids[0], others, [ids[i] for i in chosen.tolist()])
    return references, held, chosen


def check_distinct(probe: str, image: torch.Tensor, image_id: str, others: torch.Tensor, ids: list[str]) -> None:
    """Refuse rays that start and end at the same image: they have no direction."""
    same = (others == image).flatten(1).all(1).nonzero()[:, 0].tolist()
    if same:
        raise BadInput(
            f"{probe}: image {image_id!r} and reference image {ids[same[0]]!r} are the same, so the ray between them "
            "has no direction: measure on images that are not in the reference set"
        )
