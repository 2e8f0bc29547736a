"""Images in a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import ClassVar

import attrs

from geoframe.encoder import Coord
from geoframe.errors import BadInput, MissingFile
from geoframe.probesets.drawing import draw, is_count, is_seed
from geoframe.probesets.files import FileSet, ImageFile
from geoframe.probesets.pictures import SUFFIXES
from geoframe.probesets.places import find_folder


def image_paths(root: Path) -> list[str]:
    """Relative paths of all image files below `root`, with forward slashes, in no order; hidden ones are skipped."""
    found = []
    for folder, below, files in os.walk(root, followlinks=True):
        below[:] = [name for name in below if not name.startswith(".") and not _leads_back(os.path.join(folder, name))]
        inside = Path(folder).relative_to(root)
        found += [(inside / name).as_posix() for name in files if is_image(name)]
    return found


def is_image(name: str) -> bool:
    """Whether a file's name is that of an image, and not hidden."""
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES


def _leads_back(folder: str) -> bool:
    # a link to one of its own parents would make the walk endless
    if not os.path.islink(folder):
        return False
    target, parent = os.path.realpath(folder), os.path.realpath(os.path.dirname(folder))
    return os.path.commonpath([target, parent]) == target


def _tidy(root: str | os.PathLike[str]) -> str:
    """Return a path without what changes nothing, such as a slash at its end: equal folders have equal keys."""
    text = os.fspath(root)
    return os.path.normpath(text) if text else text


@attrs.frozen(slots=False, eq=False)
class ImageFolder(FileSet):
    """Images below a folder, all or a seeded draw, sorted by path.

    Ids are paths relative to the folder. The label of an image is the index of its first sub-folder among the
    sorted sub-folders that hold images, whatever the pattern; −1 for images that lie in the folder itself.
    The draw depends on the seed and on the set of relative paths only.

    Attributes
    ----------
    root : str
        The folder (may be given by position); a relative one is looked for in the current folder, then in
        $GEOFRAME_DATA.
    n : int or None
        How many images to draw; None takes all.
    seed : int
        Seed of the draw.
    pattern : str
        Only images whose relative path matches, as in `"cat/*.png"`; `*` matches slashes too.
    """

    version: ClassVar[str] = "2"
    hint: ClassVar[str] = ""

    root: str = attrs.field(converter=_tidy)
    n: int | None = attrs.field(default=None, validator=is_count, kw_only=True)
    seed: int = attrs.field(default=0, validator=is_seed, kw_only=True)
    pattern: str = attrs.field(default="*", kw_only=True)

    def default_name(self) -> str:
        """Name of the folder."""
        return PurePosixPath(Path(self.root).as_posix()).name or "folder"

    @property
    def coords(self) -> dict[str, Coord]:
        """The draw's seed, where there is a draw."""
        return {} if self.n is None else {"seed": self.seed}

    def folder(self) -> Path:
        """Return the folder, found."""
        if self.root != self.root.encode("utf-8", "replace").decode("utf-8"):
            raise BadInput(f"the name of the folder {self.root!r} isn't valid UTF-8, which results need: rename it")
        return find_folder(self.root, self.hint)

    def paths(self) -> list[str]:
        """Relative paths of all images that match the pattern."""
        root = self.folder()
        found = [path for path in image_paths(root) if fnmatchcase(path, self.pattern)]
        if not found:
            matching = "" if self.pattern == "*" else f" that matches {self.pattern!r}"
            raise BadInput(f"the folder {root} holds no image{matching} ({' '.join(sorted(SUFFIXES))})")
        return found

    def files(self) -> list[ImageFile]:
        """Return the drawn files, sorted by path."""
        root, paths = self.folder(), self.paths()
        chosen = draw(paths, self.n, self.seed, f"images in {root}")
        labels = self.labels(chosen, image_paths(root))
        return [ImageFile(path, label, root / path) for path, label in zip(chosen, labels, strict=True)]

    def labels(self, chosen: Sequence[str], paths: Sequence[str]) -> list[int]:
        """Labels of the chosen paths among all paths of the folder, those too that the pattern leaves out."""
        classes = sorted({path.partition("/")[0] for path in paths if "/" in path})
        index = {name: i for i, name in enumerate(classes)}
        return [index[path.partition("/")[0]] if "/" in path else -1 for path in chosen]

    def count(self) -> int | None:
        """Return the number of images; None where all are taken of a folder that is not there."""
        if self.n is not None:
            return self.n
        try:
            return len(self.paths())
        except MissingFile:
            return None
