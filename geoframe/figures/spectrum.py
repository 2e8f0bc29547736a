"""GI, local linearity and singular values by singular-vector index, at several checkpoints (fig. 2, appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

BINS = 32  # directions are averaged in so many groups


class Quantity(NamedTuple):
    """What a panel shows: its title, the unit on its axis, and values (encoder, image, direction)."""

    title: str
    units: str
    values: xr.DataArray


@attrs.frozen(kw_only=True)
class SpectrumProfiles(Figure):
    """Three panels a probe set: GI (fig. 2a), α (fig. 2b) and singular values, by index; a line a checkpoint.

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
        """Draw one figure a probe set, named by it where there are several; none where nothing was measured."""
        from geoframe.figures.style import style
        from geoframe.summary import stored_node

        nodes = [stored_node(tree, name) for name in (self.probe, self.linearity, self.jacobian)]
        names = select.names(nodes[0], "probeset")
        drawn = {}
        for name in names:
            panels = _quantities(*(node.sel(probeset=name) for node in nodes))
            if any(bool(panel.values.notnull().any()) for panel in panels):
                stem = safe_stem(self.label if len(names) == 1 else f"{self.label}-{name}")
                with style():
                    drawn[stem] = self._panels(panels, select.is_random(nodes[0]), name)
        return drawn

    def _panels(self, panels: list[Quantity], random: list[bool], probeset: str) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        images = int(panels[0].values.notnull().any(("encoder", "direction")).sum())
        band = "One image: no bands." if images == 1 else f"Bands: ± one standard error over {images} images."
        figure, axes = style.panels(
            len(panels), len(panels), (2.6, 2.7), self.footnote(f"Probe set: {probeset}.", band)
        )
        for ax, panel in zip(axes, panels, strict=True):
            for i, name in enumerate(map(str, panel.values["encoder"].values)):
                colour = style.PALETTE[i % len(style.PALETTE)]
                _line(ax, panel.values.isel(encoder=i), colour, "--" if random[i] else "-", name)
            ax.set(xlabel="singular-vector index / number", title=panel.title, xlim=(0, 1), xticks=(0, 0.5, 1))
            ax.set_ylabel(panel.units)
            ax.set_ylim(bottom=0 if ax is not axes[-1] else None)
        axes[-1].set_yscale("log")
        axes[-1].set_ylim(bottom=1e-4)
        shown = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=min(3, max(1, len(shown))))
        return figure


def _quantities(gi: xr.Dataset, alpha: xr.Dataset, jacobian: xr.Dataset) -> list[Quantity]:
    """What the three panels show of one probe set."""
    from geoframe.summaries.spectrum import both_signs

    threshold = select.setting(alpha, "threshold")
    cosine = "" if threshold is None else f" (cosine ≥ {threshold:g})"
    relative = _relative(jacobian["singular_value"].rename(component="direction"))
    return [
        Quantity("GI", str(gi["gi"].attrs.get("units", "")), both_signs(gi, "gi")),
        Quantity(f"α{cosine}", str(alpha["alpha"].attrs.get("units", "")), both_signs(alpha, "alpha")),
        Quantity("singular value", "share of the largest", relative),
    ]


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
