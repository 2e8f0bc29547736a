"""Per-image profiles of every encoder on every probe set (*Beyond Local Linearity*, fig. 3 and 4)."""

from __future__ import annotations

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
CHARACTERS = {"encoder": 18, "probeset": 24}  # of a name that a cell's side holds
NAMES = {"trained": "fig3_trained", "random": "fig4_random", None: "profiles_grid"}


@attrs.frozen(kw_only=True)
class RatioGrid(Figure):
    """Grid of profiles: encoders down, probe sets across, a line an image, axes shared.

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
        encoders, probesets = (
            [style.wrap(n, CHARACTERS[d]) for n in select.names(ds, d)] for d in ("encoder", "probeset")
        )
        figure, axes = canvas(encoders, probesets, self.note)
        limits = (scale_limits(eta), style.log_limits(ratio))
        drawn = select.drawn(ds).transpose("encoder", "probeset").values
        for i, random in enumerate(select.is_random(ds)):
            for j, ax in enumerate(axes[i]):
                if not drawn[i, j]:
                    ax.set(frame_on=False, xticks=[], yticks=[])
                    continue
                style.log_axes(ax, *limits, most=(5, 5))
                draw_cell(ax, eta, ratio[i, j], style.RANDOM if random else style.TRAINED)
                ax.tick_params(labelbottom=i == len(encoders) - 1, labelleft=j == 0)
        return figure


def canvas(rows: list[str], columns: list[str], note: str) -> tuple[matplotlib.figure.Figure, Any]:
    """Lay out a grid of cells of one size by hand: cells keep their size, and a hundred axes lay out at once."""
    from matplotlib.figure import Figure as Canvas

    from geoframe.figures import style

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
    middle = (left + width - right) / 2 / width
    figure.text(middle, (extra + 0.08) / height, style.ETA_LABEL, ha="center", va="bottom")
    centre = (bottom + extra + height - top) / 2 / height
    figure.text((left - 0.48) / width, centre, style.RATIO_LABEL, rotation=90, ha="center", va="center")
    return figure, axes


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
