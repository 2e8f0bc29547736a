"""Where data lie: the data root, and folders that a user names."""

from __future__ import annotations

import os
from pathlib import Path

from geoframe.errors import BadInput, MissingFile


def data_root() -> Path:
    """Return the folder that holds data sets: $GEOFRAME_DATA, by default `data` in the current folder."""
    return Path(os.environ.get("GEOFRAME_DATA") or "data").expanduser()


def find_folder(root: str, hint: str = "") -> Path:
    """Return the folder called `root`: absolute, or else in the current folder, or else in the data root.

    Raises
    ------
    MissingFile
        Where there is none; `hint` says how to get it.
    BadInput
        Where it is a file.
    """
    path = Path(root).expanduser()
    places = [path] if path.is_absolute() else list(dict.fromkeys([path, data_root() / path]))
    for place in places:
        if place.is_dir():
            return place
        if place.exists():
            raise BadInput(f"{place} is a file, not a folder of images")
    looked = " nor at ".join(str(place) for place in places)
    advice = hint or "check the path, or set GEOFRAME_DATA to the folder that holds it"
    raise MissingFile(f"no folder at {looked}: {advice}")
