"""GI, local linearity and singular values by singular-vector index, at several checkpoints (fig. 2, appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

BINS = 32  # directions are averaged in so many groups


@attrs.frozen(kw_only=True)
class SpectrumProfiles(Figure):
    """Three panels: GI (fig. 2a), α (fig. 2b) and singular values, by index; a line a checkpoint.

    Lines are means over images, both signs and neighbouring directions, bands ± one standard error over images. The
    index is told as a share of the basis, from the largest singular value to the null directions.

    Attributes
    ----------
    gi, linearity, jacobian : str
        Nodes of the three probes.
    """

    probe: str = "gi"
    linearity: str = "linearity"
    jacobian: str = "jacobian"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "spectrum"

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure, on the first probe set."""
        from geoframe.figures.style import style
        from geoframe.statistics.spectrum import both_signs
        from geoframe.summary import stored_node

        nodes = [stored_node(tree, name).isel(probeset=0) for name in (self.probe, self.linearity, self.jacobian)]
        panels = [
            ("GI (diagonals)", both_signs(nodes[0], "gi")),
            ("α, cosine ≥ threshold (diagonals)", both_signs(nodes[1], "alpha")),
            ("singular value / largest", _relative(nodes[2]["singular_value"].rename(component="direction"))),
        ]
        with style():
            return {safe_stem(self.label): self._panels(panels)}

    def _panels(self, panels: list[tuple[str, xr.DataArray]]) -> matplotlib.figure.Figure:
        from matplotlib.figure import Figure as Canvas
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        from geoframe.figures import style

        figure = Canvas(figsize=(8.4, 3.2))
        extra = style.footnote(figure, self.note) / figure.get_figheight()
        figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0, extra, 1, 1 - extra)))
        axes = figure.subplots(1, len(panels))
        for ax, (label, values) in zip(axes, panels, strict=True):
            for i, name in enumerate(map(str, values["encoder"].values)):
                _line(ax, values.isel(encoder=i), style.PALETTE[i % len(style.PALETTE)], name)
            ax.set(xlabel="singular-vector index / number", title=label, xlim=(0, 1), xticks=(0, 0.5, 1))
        axes[-1].set_yscale("log")
        axes[-1].set_ylim(bottom=1e-4)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=min(4, max(1, len(names))))
        return figure


def _relative(values: xr.DataArray) -> xr.DataArray:
    """Singular values over the largest, no smaller than rounding."""
    return (values / values.max("direction")).clip(min=1e-12)


def _line(ax: Any, values: xr.DataArray, colour: str, name: str) -> None:
    """Draw one checkpoint: the mean over images of each group of directions."""
    table = values.transpose("image", "direction").values
    table = table[:, np.isfinite(table).any(axis=0)][np.isfinite(table).any(axis=1)]
    if not table.size:
        return
    groups = np.array_split(np.arange(table.shape[1]), min(BINS, table.shape[1]))
    places = [(group.mean() + 0.5) / table.shape[1] for group in groups]
    means = np.stack([np.nanmean(table[:, group], axis=1) for group in groups], 1)
    middle = means.mean(axis=0)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.zeros_like(middle)
    ax.plot(places, middle, color=colour, linewidth=1.3, label=name)
    ax.fill_between(places, middle - error, middle + error, color=colour, alpha=0.18, linewidth=0)
