"""Per-image profiles of every encoder on every probe set (*Beyond Local Linearity*, fig. 3 and 4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure
from geoframe.figures.profiles import positive, scale_limits, thin

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

CELL = (1.9, 1.35)  # inches
GAP = (0.3, 0.16)
PANEL = (2.2, 1.85)  # inches, of a cell with its name above it
LONGEST = 6  # cells in a single row or column; more are wrapped
ACROSS = 6  # cells side by side, at most, where they are wrapped
CHARACTERS = {"encoder": 18, "probeset": 24}  # of a name that a cell's side holds
NAMES = {"trained": "fig3_trained", "random": "fig4_random", None: "profiles_grid"}


@attrs.frozen(kw_only=True)
class RatioGrid(Figure):
    """Grid of profiles: encoders down, probe sets across, a line an image, axes shared.

    A grid of one row or one column that would be long is wrapped: each cell has its name above it.

    Attributes
    ----------
    training : {"trained", "random"} or None
        Which encoders: those with learned weights (fig. 3), those with initial weights (fig. 4), or all.
        Nothing is drawn where the results have none of them.
    """

    training: Literal["trained", "random"] | None = attrs.field(
        default=None, validator=attrs.validators.in_((None, "trained", "random"))
    )

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return NAMES[self.training]

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw the grid."""
        from geoframe.figures.style import style

        ds = select.ratios(tree, self.probe)
        rows = [i for i, r in enumerate(select.is_random(ds)) if self.training in (None, "random" if r else "trained")]
        if not rows:
            return {}
        with style():
            return {self.stem(NAMES[self.training]): self._grid(ds.isel(encoder=rows))}

    def _grid(self, ds: xr.Dataset) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        ratio, eta = positive(ds["ratio"].values), ds["scale"].values
        names = select.names(ds, "encoder"), select.names(ds, "probeset")
        shortest, longest = sorted(map(len, names))
        layout = wrapped if shortest == 1 and longest > LONGEST else canvas
        figure, axes = layout(*names, self.note)
        limits = (scale_limits(eta), style.log_limits(ratio))
        drawn = select.drawn(ds).transpose("encoder", "probeset").values
        for i, random in enumerate(select.is_random(ds)):
            for j, ax in enumerate(axes[i]):
                if not drawn[i, j]:
                    ax.set(frame_on=False, xticks=[], yticks=[])
                    continue
                style.log_axes(ax, *limits, most=(5, 5))
                draw_cell(ax, eta, ratio[i, j], style.RANDOM if random else style.TRAINED)
        return figure


def canvas(rows: list[str], columns: list[str], note: str) -> tuple[matplotlib.figure.Figure, Any]:
    """Lay out a grid of cells of one size by hand: cells keep their size, and a hundred axes lay out at once."""
    from matplotlib.figure import Figure as Canvas

    from geoframe.figures import style

    rows = [style.wrap(name, CHARACTERS["encoder"]) for name in rows]
    columns = [style.wrap(name, CHARACTERS["probeset"]) for name in columns]
    lines = [max(name.count("\n") + 1 for name in names) for names in (rows, columns)]
    left, right, top, bottom = 0.75 + 0.15 * lines[0], 0.15, 0.1 + 0.16 * lines[1], 0.55
    width = max(4.2, left + right + len(columns) * CELL[0] + (len(columns) - 1) * GAP[0])
    figure = Canvas(figsize=(width, top + bottom + len(rows) * CELL[1] + (len(rows) - 1) * GAP[1]))
    extra = style.footnote(figure, note)
    height = float(figure.get_figheight())
    axes = figure.subplots(
        len(rows),
        len(columns),
        squeeze=False,
        gridspec_kw={
            "left": left / width,
            "right": 1 - right / width,
            "top": 1 - top / height,
            "bottom": (bottom + extra) / height,
            "wspace": GAP[0] / CELL[0],
            "hspace": GAP[1] / CELL[1],
        },
    )
    name_cells(figure, axes, rows, columns)
    for (i, j), ax in np.ndenumerate(axes):
        ax.tick_params(labelbottom=i == len(rows) - 1, labelleft=j == 0)
    middle = (left + width - right) / 2 / width
    figure.text(middle, (extra + 0.08) / height, style.ETA_LABEL, ha="center", va="bottom")
    centre = (bottom + extra + height - top) / 2 / height
    figure.text((left - 0.48) / width, centre, style.RATIO_LABEL, rotation=90, ha="center", va="center")
    return figure, axes


def wrapped(rows: list[str], columns: list[str], note: str) -> tuple[matplotlib.figure.Figure, Any]:
    """Lay out a grid of one row or one column as a block; the axes are those of the grid, (row, column)."""
    from geoframe.figures import style

    names, common = (rows, columns[0]) if len(columns) == 1 else (columns, rows[0])
    across = min(ACROSS, math.ceil(len(names) / math.isqrt(len(names))))
    figure, axes = style.panels(len(names), across, PANEL, note)
    figure.suptitle(style.wrap(common, 60), fontsize=10)
    for place, (ax, name) in enumerate(zip(axes, names, strict=False)):  # the last row may have axes left
        lowest, leftmost = place + across >= len(names), place % across == 0
        ax.set_title(style.wrap(name, CHARACTERS["probeset"]), pad=3)
        ax.set(xlabel=style.ETA_SHORT if lowest else "", ylabel=style.RATIO_LABEL if leftmost else "")
        ax.tick_params(labelbottom=lowest, labelleft=leftmost)
    return figure, np.array(axes[: len(names)]).reshape(len(rows), len(columns))


def name_cells(figure: matplotlib.figure.Figure, axes: Any, rows: list[str], columns: list[str]) -> None:
    """Write the probe sets' names over the columns and the encoders' names beside the rows."""
    for ax, name in zip(axes[0], columns, strict=True):
        ax.set_title(name, pad=3)
    x = 0.06 / figure.get_figwidth()
    for ax, name in zip(axes[:, 0], rows, strict=True):
        box = ax.get_position()
        figure.text(x, (box.y0 + box.y1) / 2, name, rotation=90, ha="left", va="center", fontsize=8)


def draw_cell(ax: Any, eta: Any, ratio: Any, colour: str) -> None:
    """Draw the profiles of one encoder on one probe set."""
    from geoframe.figures.style import INK, reference_line

    ratio = ratio[np.isfinite(ratio).any(axis=1)]
    reference_line(ax)
    for profile in ratio:
        ax.plot(eta, profile, **thin(len(ratio)), color=colour)
    if not len(ratio):
        ax.text(0.5, 0.5, "no data", transform=ax.transAxes, ha="center", va="center", color=INK)
