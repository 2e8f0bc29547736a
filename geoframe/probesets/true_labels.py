"""A set's own labels, said to be true ones: beside random labels, for studies that tell them apart."""

from __future__ import annotations

import attrs

from geoframe.encoder import Coord
from geoframe.probeset import Listing
from geoframe.probesets.wrapped import Relabelled


@attrs.frozen(slots=False, eq=False)
class TrueLabels(Relabelled):
    """The images of another set under its own labels; coordinate `labelling` says "true".

    Beside sets with random labels, it tells a study's `match` which networks are tested on true ones.

    Attributes
    ----------
    of : ProbeSet
        The labelled set (may be given by position).
    """

    def default_name(self) -> str:
        """Name of the other set."""
        return self.of.label

    @property
    def coords(self) -> dict[str, Coord]:
        """Coordinates of the other set, and how it is labelled."""
        return {**self.of.coords, "labelling": "true"}

    def relabel(self, listing: Listing) -> tuple[int, ...]:
        """Return the labels as they are."""
        self.need_labels(listing.labels)
        return tuple(listing.labels)
