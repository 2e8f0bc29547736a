"""The installed plugins: entry points of group `geoframe`, and the environment variable that restricts them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import attrs

from geoframe.errors import UnknownName, did_you_mean
from geoframe.plugins import GROUP

ONLY = "GEOFRAME_PLUGINS"


@attrs.frozen
class Installed:
    """One entry point, and the distribution that declares it."""

    point: EntryPoint
    dist: str
    version: str

    @classmethod
    def of(cls, point: EntryPoint) -> Installed:
        """Read the distribution's name and version from its metadata."""
        metadata: Any = {} if point.dist is None else point.dist.metadata
        return cls(point, str(metadata.get("Name") or point.name), str(metadata.get("Version") or ""))

    @property
    def names(self) -> set[str]:
        """What `GEOFRAME_PLUGINS` may call it."""
        return {normal(self.point.name), normal(self.dist)}


def installed(only: Iterable[str] | None = None) -> list[Installed]:
    """Find the installed plugins, sorted by distribution.

    Parameters
    ----------
    only : iterable of str, optional
        Names of distributions or entry points to keep; default: those in `GEOFRAME_PLUGINS`, or all if it is unset.
    """
    found = sorted(map(Installed.of, entry_points(group=GROUP)), key=lambda one: (one.dist, one.point.name))
    wanted = _from_environment() if only is None else list(only)
    if wanted is None:
        return found
    known = {name for one in found for name in one.names}
    for name in wanted:
        if normal(name) not in known:
            raise UnknownName(f"{ONLY} names {name!r}, which is not an installed plugin{did_you_mean(name, known)}")
    return [one for one in found if one.names & {normal(name) for name in wanted}]


def normal(name: str) -> str:
    """Normalise a distribution's name, as installers do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _from_environment() -> list[str] | None:
    value = os.environ.get(ONLY)
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]
