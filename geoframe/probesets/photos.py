"""Real photographs that installed packages carry: measurable offline, without a data set."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from geoframe.errors import BadInput, MissingFile, UnknownName, did_you_mean
from geoframe.probesets.drawing import is_count
from geoframe.probesets.files import FileSet, ImageFile

PACKAGES = {"skimage": "scikit-image", "sklearn": "scikit-learn"}
FILES = {
    "astronaut": ("skimage", "data/astronaut.png"),
    "chelsea": ("skimage", "data/chelsea.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "rocket": ("skimage", "data/rocket.jpg"),
    "china": ("sklearn", "datasets/images/china.jpg"),
    "flower": ("sklearn", "datasets/images/flower.jpg"),
}


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _known(instance: Any, attribute: Any, value: tuple[str, ...]) -> None:
    for name in value:
        if name not in FILES:
            raise UnknownName(f"no photo {name!r}{did_you_mean(name, FILES)}")


def photo_file(name: str) -> Path:
    """Return the file of a photo, without importing the package that carries it."""
    package, inside = FILES[name]
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / inside).is_file():
            return path
    raise MissingFile(f"photo {name!r} comes with {PACKAGES[package]}, which is missing: pip install 'geoframe[demo]'")


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Photos(FileSet):
    """Photographs from the packages scikit-image and scikit-learn, without labels.

    Attributes
    ----------
    names : tuple of str
        Which: astronaut, chelsea, coffee, rocket (scikit-image), china, flower (scikit-learn).
    n : int or None
        Only the first `n` of them.
    """

    names: tuple[str, ...] = attrs.field(default=tuple(FILES), converter=_names, validator=_known)
    n: int | None = attrs.field(default=None, validator=is_count)

    def chosen(self) -> tuple[str, ...]:
        """Names of the photos that are measured."""
        if self.n is not None and self.n > len(self.names):
            raise BadInput(f"{self.n} photos asked for, but only {len(self.names)} are named: lower n")
        return self.names[: self.n]

    def count(self) -> int:
        """Return the number of photos."""
        return len(self.chosen())

    def files(self) -> list[ImageFile]:
        """Return the photos' files, in the order of their names."""
        return [ImageFile(name, -1, photo_file(name)) for name in self.chosen()]
