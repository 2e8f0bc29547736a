"""`Summary`: a small table computed from a run's stored results, stored and printed beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from geoframe.errors import UnknownName, did_you_mean
from geoframe.spec import Spec

if TYPE_CHECKING:
    import xarray as xr


def stored_node(tree: xr.DataTree, name: str) -> xr.Dataset:
    """Return the dataset of one node of a results tree.

    Raises
    ------
    UnknownName
        Where the tree has no such node, or the node holds no variables.
    """
    if name not in tree.children:
        raise UnknownName(f"these results have no node {name!r}{did_you_mean(name, tree.children)}")
    return tree.children[name].to_dataset()


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Summary(Spec):
    """What a run concludes from its stored results. A subclass implements `compute` and `rows`.

    The runner stores `compute`'s dataset as a node named after the summary's label and prints `rows`.
    """

    kind: ClassVar[str] = "summary"

    @property
    def caption(self) -> str:
        """What a reader of the table has to know, in a line."""
        return ""

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Compute the summary from the published tree (one node per probe)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement compute()")

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return headers and formatted rows of the table that `compute`'s dataset prints as."""
        raise NotImplementedError(f"{type(self).__name__} does not implement rows()")
