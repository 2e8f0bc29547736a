"""Other labels: the controls of *Beyond Local Linearity* (A.2) and *Neural Expansion* (I.1), and other numberings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from geoframe.encoder import Coord
from geoframe.errors import BadInput
from geoframe.probeset import Listing, ProbeSet
from geoframe.probesets.drawing import is_seed, keyed
from geoframe.probesets.wrapped import Relabelled


@attrs.frozen(slots=False, eq=False)
class PermutedLabels(Relabelled):
    """The images of another set, with the labels permuted over the whole set.

    The randomised labels of *Beyond Local Linearity* (A.2): pairs of image and label are destroyed, the number of
    images a class stays. Every label moves with equal probability to every image, so one in ten of ten even classes
    keeps its label. The permutation is that of the set it is given: permute first, take a part (`Subset`) after.

    Attributes
    ----------
    of : ProbeSet
        The labelled set (may be given by position).
    seed : int
        Seed of the permutation; seed and derivation are ours.
    """

    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)

    def default_name(self) -> str:
        """Name of the other set, and "permuted"."""
        return f"{self.of.label}-permuted"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set, how it is labelled, and the seed of that."""
        return {**self.of.coords, "labelling": "permuted", "label_seed": self.seed}

    def relabel(self, listing: Listing) -> tuple[int, ...]:
        """Return the permuted labels."""
        self.need_labels(listing.labels)
        keys = [keyed("permuted-labels", self.seed, name) for name in listing.ids]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return tuple(listing.labels[place] for place in order)


def _is_classes(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise BadInput(f"RandomLabels: n_classes={value!r} should be a whole number, 2 or more")


@attrs.frozen(slots=False, eq=False)
class RandomLabels(Relabelled):
    """The images of another set, each with a label drawn uniformly from `n_classes`.

    *Neural Expansion* (I.1): RANDOM-10 is `RandomLabels(mnist_train, 10)`, tested on the true labels; RANDOM-100 is
    `RandomLabels(…, 100)` of the training set and of the test set. A label depends on the seed and on the image's id
    only: a part of the set has the labels that it has in the whole. That and the seed are ours.

    Attributes
    ----------
    of : ProbeSet
        The other set, labelled or not (may be given by position).
    n_classes : int
        How many labels there are, 2 or more (may be given by position).
    seed : int
        Seed of the labels.
    """

    n_classes: int = attrs.field(default=10, validator=_is_classes)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)

    def default_name(self) -> str:
        """Name of the other set, and the paper's: random10."""
        return f"{self.of.label}-random{self.n_classes}"

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set, how it is labelled, and the seed of that."""
        return {**self.of.coords, "labelling": f"random-{self.n_classes}", "label_seed": self.seed}

    def classes(self) -> int:
        """Return the number of classes."""
        return self.n_classes

    def relabel(self, listing: Listing) -> tuple[int, ...]:
        """Return the drawn labels."""
        return tuple(keyed("random-labels", self.seed, name) % self.n_classes for name in listing.ids)

    def smoke(self) -> ProbeSet:
        """Return one image, with a label."""
        return self.evolve(of=self.of.smoke(), name=self.label)


def _as_tuple(labels: Iterable[int]) -> tuple[int, ...]:
    return tuple(labels)


def _are_labels(instance: Any, attribute: Any, value: Any) -> None:
    whole = isinstance(value, tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)
    if not whole or not value or min(value) < -1:
        raise BadInput(f"MappedLabels: labels={value!r:.80} should be a new label for each class, whole numbers")


@attrs.frozen(slots=False, eq=False)
class MappedLabels(Relabelled):
    """The images of another set, their classes numbered anew: class i is called `labels[i]`.

    For a set whose classes are some of those that an encoder knows, under other numbers.

    Attributes
    ----------
    of : ProbeSet
        The other set, labelled from 0 (may be given by position).
    labels : tuple of int
        The new label of each class (may be given by position); −1 is unknown.
    """

    labels: tuple[int, ...] = attrs.field(converter=_as_tuple, validator=_are_labels)

    def default_name(self) -> str:
        """Name of the other set."""
        return self.of.label

    def classes(self) -> int:
        """Return the number of classes."""
        return len(set(self.labels) - {-1})

    def relabel(self, listing: Listing) -> tuple[int, ...]:
        """Return the new labels."""
        self.need_labels(listing.labels)
        highest = max(listing.labels, default=0)
        if highest >= len(self.labels):
            raise BadInput(
                f"MappedLabels: probe set {self.of.label!r} has a class {highest}, and labels= names {len(self.labels)}"
                ": give a new label for each"
            )
        return tuple(self.labels[label] for label in listing.labels)

    def smoke(self) -> ProbeSet:
        """Return one image, as the other set does."""
        return self.of.smoke().evolve(name=self.label)
