"""`Figure`: a drawing made from stored results alone, and the saving of many."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import attrs

from geoframe.errors import BadInput
from geoframe.spec import Spec

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Figure(Spec):
    """A figure of a study. A subclass implements `draw`.

    Attributes
    ----------
    probe : str
        Node of the results that the figure is drawn from.
    note : str
        Footnote printed under the figure.
    """

    kind: ClassVar[str] = "figure"

    probe: str = "ratio"
    note: str = ""

    @property
    def caption(self) -> str:
        """What a reader of the figure has to know; stands under it, before the note."""
        return ""

    def footnote(self, *more: str) -> str:
        """Return what stands under the figure: its caption, what `draw` has to add, and the note."""
        return " ".join(text for text in (self.caption, *more, self.note) if text)

    @property
    def needs_node(self) -> str:
        """Node that must be in the tree."""
        return self.probe

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw from the published tree: file stem → figure; nothing where there is nothing to draw."""
        raise NotImplementedError(f"{type(self).__name__} does not implement draw()")

    def stem(self, default: str) -> str:
        """Return a safe file stem: the figure's name if it was given one, else `default`, marked by its probe."""
        return safe_stem(self.name or (default if self.probe == "ratio" else f"{default}_{self.probe}"))


def safe_stem(text: str) -> str:
    """Turn a name into a file stem that every file system takes.

    >>> safe_stem("hf-hub:org/model (ε=0.1)")
    'hf-hub_org_model_0.1'
    """
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", text).strip("._")[:150] or "figure"


def save_all(figures: Iterable[Figure], tree: xr.DataTree, folder: str | Path) -> list[Path]:
    """Draw figures and save them as PNG files, each one whole or not at all.

    The same results give the same bytes: no time and no version is written into a file, and the user's
    matplotlib settings have no say.

    Parameters
    ----------
    figures : iterable of Figure
        What to draw.
    tree : xarray.DataTree
        Published results.
    folder : path
        Where the files go; made if it isn't there. A file of the same name is replaced.

    Returns
    -------
    list of Path
        The files, in order.

    Raises
    ------
    BadInput
        Where two figures have the same file name, or the results lack a figure's node.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    owner: dict[str, str] = {}
    paths = []
    for figure in figures:
        for stem, drawn in figure.draw(tree).items():
            if stem.lower() in owner:
                who = f"{owner[stem.lower()]} and {figure.label}"
                raise BadInput(f"two figures ({who}) would both be saved as {stem}.png: give one of them a name")
            owner[stem.lower()] = figure.label
            paths.append(save(drawn, folder / f"{stem}.png"))
    return paths


def save(drawn: matplotlib.figure.Figure, path: Path) -> Path:
    """Write one PNG through a temporary file, so that a reader never meets half a picture."""
    from geoframe.figures.style import DPI, style

    partial = path.with_name(f"{path.name}.partial")
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # names in scripts that the font lacks
        drawn.savefig(partial, format="png", dpi=DPI, metadata={"Software": None})
    os.replace(partial, path)
    return path
