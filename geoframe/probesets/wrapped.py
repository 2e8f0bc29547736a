"""Probe sets made of another set: its images changed, relabelled, or some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.encoder import Coord, Shape
from geoframe.errors import BadInput
from geoframe.probeset import Images, Listing, ProbeSet, Record

if TYPE_CHECKING:
    import torch


def is_probeset(instance: Any, attribute: Any, value: Any) -> None:
    """Check, as an attrs validator, that a field is a probe set."""
    if not isinstance(value, ProbeSet):
        raise BadInput(f"{type(instance).__name__}: {attribute.name}={value!r:.80} should be a probe set")


def number(value: Any) -> Any:
    """Convert whole numbers to floats, so that 2 and 2.0 have one key."""
    return float(value) if type(value) is int else value


@attrs.frozen(slots=False, eq=False)
class Wrapped(ProbeSet):
    """Base of sets made of another set. As it stands, everything is that set's; subclasses override what they change.

    Attributes
    ----------
    of : ProbeSet
        The other set (may be given by position).
    """

    of: ProbeSet = attrs.field(validator=is_probeset)

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set."""
        return self.of.coords

    def count(self) -> int | None:
        """Return the number of images."""
        return self.of.count()

    def classes(self) -> int | None:
        """Return the number of classes."""
        return self.of.classes()

    def listing(self) -> Listing:
        """Return ids and labels."""
        return self.of.listing()

    def records(self) -> Iterator[Record]:
        """Yield the images."""
        return self.of.records()

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield some of the images."""
        return self.of.records_at(places)

    def frame(self, record: Record, shape: Shape) -> torch.Tensor:
        """Frame one image as the other set does."""
        return self.of.frame(record, shape)

    def source_digest(self) -> str | None:
        """Digest of the other set's source."""
        return self.of.source_digest()

    def smoke(self) -> ProbeSet:
        """Return the one image that the other set gives for preset `smoke`."""
        return self.of.smoke().evolve(name=self.label)

    def need_labels(self, labels: Sequence[int]) -> None:
        """Refuse labels of the other set that hold −1 (`BadInput`)."""
        unknown = sum(label < 0 for label in labels)
        if unknown:
            raise BadInput(
                f"{type(self).__name__} needs labels, and {unknown} of {len(labels)} images of probe set "
                f"{self.of.label!r} have none: use a labelled set"
            )


def frames_pictures(probeset: ProbeSet) -> bool:
    """Whether a set leaves the framing of its pictures to the common frame, so that it can be changed before."""
    while type(probeset).frame is Wrapped.frame and isinstance(probeset, Wrapped):
        probeset = probeset.of
    return type(probeset).frame is ProbeSet.frame


@attrs.frozen(slots=False, eq=False)
class Relabelled(Wrapped):
    """The images of another set under other labels. Subclasses implement `relabel`."""

    def relabel(self, listing: Listing) -> tuple[int, ...]:
        """Return the labels of a whole set, one an image."""
        raise NotImplementedError(f"{type(self).__name__} does not implement relabel()")

    def listing(self) -> Listing:
        """Return ids and new labels."""
        listing = self.of.listing()
        return Listing(listing.ids, self.relabel(listing))

    def load(self, shape: Shape) -> Images:
        """Load every image at `shape`, as the other set does."""
        images = self.of.load(shape)
        return Images(images.ids, self.relabel(Listing(images.ids, images.labels)), images.pixels)

    def pick(self, shape: Shape, places: Sequence[int]) -> Images:
        """Load some of the images: their labels are those that they have in the whole."""
        images = self.of.pick(shape, places)
        return Images(images.ids, self.listing().at(places).labels, images.pixels)

    def records(self) -> Iterator[Record]:
        """Yield the images under their new labels."""
        for record, label in zip(self.of.records(), self.listing().labels, strict=True):
            yield attrs.evolve(record, label=label)

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield some of the images under the labels that they have in the whole."""
        labels = self.listing().at(places).labels
        for record, label in zip(self.of.records_at(places), labels, strict=True):
            yield attrs.evolve(record, label=label)


@attrs.frozen(slots=False, eq=False)
class Part(Wrapped):
    """Some images of another set, in its order. Subclasses implement `choose`; other images are not loaded."""

    def choose(self, listing: Listing) -> list[int]:
        """Return where the images are in the other set, whose listing is given; ascending."""
        raise NotImplementedError(f"{type(self).__name__} does not implement choose()")

    def places(self) -> list[int]:
        """Return where the images are in the other set, ascending."""
        return self.choose(self.of.listing())

    def count(self) -> int | None:
        """Return the number of images if it is known without reading data, else None."""
        return None

    def listing(self) -> Listing:
        """Return ids and labels."""
        listing = self.of.listing()
        return listing.at(self.choose(listing))

    def load(self, shape: Shape) -> Images:
        """Load the images at `shape`, as the other set does."""
        return self.of.pick(shape, self.places())

    def pick(self, shape: Shape, places: Sequence[int]) -> Images:
        """Load some of the images."""
        return self.of.pick(shape, self._inner(places))

    def records(self) -> Iterator[Record]:
        """Yield the images."""
        return self.of.records_at(self.places())

    def records_at(self, places: Sequence[int]) -> Iterator[Record]:
        """Yield some of the images."""
        return self.of.records_at(self._inner(places))

    def _inner(self, places: Sequence[int]) -> list[int]:
        own = self.places()
        return [own[place] for place in places]
