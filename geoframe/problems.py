"""What fails beside the cells: a summary or a figure costs nothing but itself, and says where in the user's file."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

import attrs

from geoframe.cells import Failure

_OTHERS = (Path(__file__).parent, *{Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib")})
_INSTALLED = {"site-packages", "dist-packages"}


def problem(what: str, error: BaseException, nodes: Iterable[str] = ()) -> Failure:
    """Describe why a summary or figure failed, with its place in the user's own code.

    Parameters
    ----------
    what : str
        "summary bump", say.
    error : BaseException
    nodes : iterable of str
        The results' nodes, which are told where it asked for one that isn't there.
    """
    failure = Failure.of(error)
    said = ": ".join(filter(None, (what, own_line(error), failure.cause)))
    return attrs.evolve(failure, cause=said + _nodes_there(error, nodes))


def own_line(error: BaseException) -> str:
    """Return "file.py:12", the last line outside geoframe and installed packages that led to an error, or ""."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if _is_own(frame.filename)]
    return own[-1] if own else ""


def _is_own(file: str) -> bool:
    path = Path(file)
    return path.is_absolute() and not _INSTALLED & {*path.parts} and not any(map(path.is_relative_to, _OTHERS))


def _nodes_there(error: BaseException, nodes: Iterable[str]) -> str:
    """Name the nodes where xarray found none of the name: its own error doesn't."""
    missing = isinstance(error, KeyError) and "Could not find node" in str(error)
    return f"; the nodes are {', '.join(nodes)}" if missing else ""
