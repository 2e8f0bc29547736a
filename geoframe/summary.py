"""`Summary`: a small table computed from a run's stored results, stored and printed beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

from geoframe.errors import BadInput, UnknownName, did_you_mean
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


def described(ds: xr.Dataset, variables: Mapping[str, tuple[str, str]]) -> xr.Dataset:
    """Return a summary's dataset with its own units and long names, and none that were carried over from the probes.

    Parameters
    ----------
    ds : xarray.Dataset
        What was computed; attributes of its variables are replaced, those of coordinates and its own are kept.
    variables : mapping of str to (str, str)
        Units and long name of each variable.

    Raises
    ------
    BadInput
        Where a variable isn't described.
    """
    missing = [str(name) for name in ds.data_vars if name not in variables]
    if missing:
        raise BadInput(f"a summary computed {', '.join(missing)} and doesn't say the units: describe every variable")
    ds = ds.copy()
    for name in map(str, ds.data_vars):
        units, text = variables[name]
        ds[name].attrs = {"units": units, "long_name": text}
    return ds


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Summary(Spec):
    """What a run concludes from its stored results. A subclass implements `compute` and `rows`.

    The runner stores `compute`'s dataset as a node named after the summary's label and prints `tables`: one, that of
    `rows`, unless a subclass says more.
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

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return title, headers and rows of each table that is printed."""
        return [(self.label, *self.rows(ds))]
