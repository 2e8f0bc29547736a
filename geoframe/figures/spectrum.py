"""GI, local linearity and singular values by singular-vector index, at several checkpoints (fig. 2, appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

BINS = 32  # directions are averaged in so many groups


@attrs.frozen(kw_only=True)
class SpectrumProfiles(Figure):
    """Three panels: GI (fig. 2a), α (fig. 2b) and singular values, by index; a line a checkpoint.

    Lines are means over images, both signs and neighbouring directions, bands ± one standard error over images. The
    index is told as a share of the basis, from the largest singular value to the null directions. Initial weights are
    dashed.

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

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            f"After Neural Expansion, fig. 2 and appendix C. Mean over images, both signs and up to {BINS} groups of "
            "neighbouring directions, from the largest singular value (0) to the last direction of the basis (1). GI "
            "and α are in diagonals of the input box (scale of the probes), and restricted at the search's cap."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure, on the first probe set; nothing where it wasn't measured."""
        from geoframe.figures.style import style
        from geoframe.statistics.spectrum import both_signs
        from geoframe.summary import stored_node

        nodes = [stored_node(tree, name).isel(probeset=0) for name in (self.probe, self.linearity, self.jacobian)]
        threshold = select.setting(nodes[1], "threshold")
        cosine = "" if threshold is None else f" (cosine ≥ {threshold:g})"
        panels = [
            ("GI", both_signs(nodes[0], "gi")),
            (f"α{cosine}", both_signs(nodes[1], "alpha")),
            ("singular value / largest", _relative(nodes[2]["singular_value"].rename(component="direction"))),
        ]
        if not any(bool(values.notnull().any()) for _, values in panels):
            return {}
        with style():
            return {safe_stem(self.label): self._panels(panels, select.is_random(nodes[0]))}

    def _panels(self, panels: list[tuple[str, xr.DataArray]], random: list[bool]) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        images = int(panels[0][1].notnull().any(("encoder", "direction")).sum())
        band = "One image: no bands." if images == 1 else f"Bands: ± one standard error over {images} images."
        figure, axes = style.panels(len(panels), len(panels), (2.6, 2.7), self.footnote(band))
        for ax, (label, values) in zip(axes, panels, strict=True):
            for i, name in enumerate(map(str, values["encoder"].values)):
                colour = style.PALETTE[i % len(style.PALETTE)]
                _line(ax, values.isel(encoder=i), colour, "--" if random[i] else "-", name)
            ax.set(xlabel="singular-vector index / number", title=label, xlim=(0, 1), xticks=(0, 0.5, 1))
            ax.set_ylim(bottom=0 if ax is not axes[-1] else None)
        axes[-1].set_yscale("log")
        axes[-1].set_ylim(bottom=1e-4)
        shown = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=min(3, max(1, len(shown))))
        return figure


def _relative(values: xr.DataArray) -> xr.DataArray:
    """Singular values over the largest, no smaller than rounding."""
    return (values / values.max("direction")).clip(min=1e-12)


def _line(ax: Any, values: xr.DataArray, colour: str, dashes: str, name: str) -> None:
    """Draw one checkpoint: the mean over images of each group of directions."""
    table = values.transpose("image", "direction").values
    table = table[:, np.isfinite(table).any(axis=0)][np.isfinite(table).any(axis=1)]
    if not table.size:
        return
    groups = np.array_split(np.arange(table.shape[1]), min(BINS, table.shape[1]))
    places = [(group.mean() + 0.5) / table.shape[1] for group in groups]
    means = np.stack([np.nanmean(table[:, group], axis=1) for group in groups], 1)
    middle = means.mean(axis=0)
    ax.plot(places, middle, color=colour, linestyle=dashes, linewidth=1.3, label=name)
    if len(means) < 2:
        return
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    ax.fill_between(places, middle - error, middle + error, color=colour, alpha=0.18, linewidth=0)
