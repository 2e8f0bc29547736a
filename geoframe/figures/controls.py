"""Profiles of networks trained under controlled conditions (*Beyond Local Linearity*, fig. 2b, 2c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.figures import select
from geoframe.figures.figure import Figure, safe_stem
from geoframe.figures.profiles import band, positive, scale_limits
from geoframe.spec import count
from geoframe.statistics.treatments import BLURS, CLEAN, INITIAL, RANDOMISED

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr


TREATMENTS = (CLEAN, *BLURS, *RANDOMISED, INITIAL)


def _known(_figure: Any, _field: Any, treatments: tuple[str, ...]) -> None:
    if not treatments or any(name not in TREATMENTS for name in treatments):
        raise BadInput(f"ControlProfiles: treatments={treatments!r} should be some of {', '.join(TREATMENTS)}")


@attrs.frozen(kw_only=True)
class ControlProfiles(Figure):
    """Median profiles with a band of ± one standard error: a panel a treatment, a curve an evaluation set.

    Attributes
    ----------
    treatments : tuple of str
        Panels: "clean", "blur1", "blur2", "random-labels", "random-data", "initial"; those that weren't measured are
        left out.
    blurs : bool
        Whether only the test images and their blurs are drawn (fig. 2b), or every set (fig. 2c).
    replicates, seed : int
        Bootstrap of the band, see `median_profile`.
    """

    treatments: tuple[str, ...] = attrs.field(default=(CLEAN, *BLURS), converter=tuple, validator=_known)
    blurs: bool = False
    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return what errors call the figure, and the file's name."""
        return "fig2b_blur" if self.blurs else "fig2c_controls"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Panels: training data; medians over images (at scales valid in at least half of them), band ± 1 standard "
            "error; dotted: linear prediction."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where none of the treatments was measured."""
        from geoframe.figures.style import style
        from geoframe.statistics.treatments import blur_levels, treated

        ds = select.ratios(tree, self.probe)
        sets = [name for _, name in blur_levels(ds)] if self.blurs else select.names(ds, "probeset")
        found = treated(ds)
        panels = {
            f"{one.label}: {treatment}" if len(found) > 1 else treatment: encoder
            for one in found
            for treatment, encoder in one.among(self.treatments)
        }
        if not panels or not sets:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(ds, panels, sets)}

    def _panels(self, ds: xr.Dataset, panels: dict[str, str], sets: list[str]) -> matplotlib.figure.Figure:
        from geoframe.figures import style
        from geoframe.summaries.bump import medians_of

        ds = ds.sel(encoder=list(panels.values()), probeset=sets)
        medians = medians_of(ds, replicates=self.replicates, seed=self.seed)
        every = np.concatenate([edge for m in medians.flat for edge in (positive(m.ratio), *band(m))])
        top = 0.3 + 0.17 * -(-len(sets) // 3)
        figure, axes = style.panels(len(panels), min(4, len(panels)), (2.4, 2.3), self.footnote(), top=top)
        for ax, title, row in zip(axes, panels, medians, strict=False):
            style.log_axes(ax, scale_limits(ds["scale"].values), style.log_limits(every), most=(5, 6))
            draw_sets(ax, ds["scale"].values, row, sets)
            style.label_outer(ax)
            ax.set_title(style.wrap(title, 30))
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=min(3, len(sets)), handlelength=3)
        return figure


def draw_sets(ax: Any, eta: Any, medians: Any, sets: list[str]) -> None:
    """Draw one network on several probe sets."""
    from geoframe.figures import style
    from geoframe.figures.profiles import draw_median

    style.reference_line(ax)
    looks = style.looks([""] * len(sets), [False] * len(sets))
    for name, look, median in zip(sets, looks, medians, strict=True):
        draw_median(ax, eta, median, look, style.wrap(name, 30))
