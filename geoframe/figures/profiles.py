"""Response profiles (*Beyond Local Linearity*): single images with their median (fig. 1a), medians of all (fig. 1b)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.figure import Figure
from geoframe.spec import count

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from geoframe.statistics.bootstrap import MedianProfile


@attrs.frozen(kw_only=True)
class RatioProfiles(Figure):
    """Profiles r(η) on one probe set: of one encoder's images, or medians of all encoders.

    Medians are drawn at scales that are valid in at least half of the images.

    Attributes
    ----------
    median : bool
        False: one encoder, single images thin, their median bold (fig. 1a). True: medians of all encoders,
        trained ones solid, random ones dashed in the colour of their trained sibling, with a band of
        ± one standard error (fig. 1b).
    encoder : str, optional
        Encoder of fig. 1a; the first one by default.
    probeset : str, optional
        Probe set; by default the first one for single images, and each in a figure of its own for medians.
    replicates, seed : int
        Bootstrap of the band, see `median_profile`.
    """

    median: bool = False
    encoder: str | None = None
    probeset: str | None = None
    replicates: int = count(1000)
    seed: int = 0

    def default_name(self) -> str:
        """Return what tells the figure from others of its kind in one study."""
        parts = ("fig1b", self.probeset) if self.median else ("fig1a", self.encoder, self.probeset)
        return "_".join(part for part in parts if part)

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw fig. 1a or fig. 1b."""
        from geoframe.figures.style import style

        ds = select.ratios(tree, self.probe)
        if self.median and self.probeset is None and ds.sizes["probeset"] > 1:
            every = (self.evolve(probeset=name, name=self._stem_on(name)) for name in select.names(ds, "probeset"))
            return {stem: figure for one in every for stem, figure in one.draw(tree).items()}
        probeset = select.chosen(ds, "probeset", self.probeset)
        ds = ds.sel(probeset=probeset)
        suffix = f"_{probeset}" if self.probeset else ""
        with style():
            if self.median:
                return {self.stem(f"fig1b_medians{suffix}"): self._medians(ds, probeset)}
            encoder = select.chosen(ds, "encoder", self.encoder)
            title = f"{encoder}\non {probeset}"
            return {self.stem(f"fig1a_profiles_{encoder}{suffix}"): self._images(ds.sel(encoder=encoder), title)}

    def _stem_on(self, probeset: str) -> str | None:
        return f"{self.name}_{probeset}" if self.name else None

    def _images(self, ds: xr.Dataset, title: str) -> matplotlib.figure.Figure:
        from geoframe.figures import style
        from geoframe.statistics.bootstrap import median_over_images

        ratio = positive(ds["ratio"].values)
        eta = ds["scale"].values
        ratio = ratio[np.isfinite(ratio).any(axis=1)]
        figure, ax = style.single(4.8, 3.4, self.note)
        style.reference_line(ax)
        for i, profile in enumerate(ratio):
            label = "one image" if i == 0 else None
            ax.plot(eta, profile, **thin(len(ratio)), color=style.TRAINED, label=label)
        if len(ratio):
            label = f"median of {len(ratio)} image{'s' * (len(ratio) > 1)}"
            ax.plot(eta, median_over_images(ratio), color=style.INK, linewidth=1.9, zorder=3, label=label)
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        else:
            ax.text(0.5, 0.6, "no data", transform=ax.transAxes, ha="center")
        frame(ax, eta, ratio)
        ax.set_title("\n".join(style.wrap(line, 60) for line in title.splitlines()))
        return figure

    def _medians(self, ds: xr.Dataset, probeset: str) -> matplotlib.figure.Figure:
        from geoframe.figures import style
        from geoframe.statistics.pairing import network_names
        from geoframe.summaries.bump import medians_of

        ds = ds.isel(encoder=np.flatnonzero(select.drawn(ds)))
        medians: list[MedianProfile] = list(medians_of(ds, replicates=self.replicates, seed=self.seed))
        random = select.is_random(ds)
        labels = [
            style.wrap(name if m.images else f"{name} (no\u00a0data)", 34)
            for name, m in zip(select.names(ds, "encoder"), medians, strict=True)
        ]
        lines = sum(label.count("\n") + 1 for label in labels)
        figure, ax = style.single(5.0 + 0.068 * longest(labels), max(3.4, 0.5 + 0.175 * lines), self.note)
        style.reference_line(ax)
        eta = ds["scale"].values
        for label, look, median in zip(labels, style.looks(network_names(ds), random), medians, strict=True):
            draw_median(ax, eta, median, look, label)
        frame(ax, eta, np.concatenate([edge for m in medians for edge in (positive(m.ratio), *band(m))]))
        images = max(m.images for m in medians)
        ax.set_title(style.wrap(f"median of {images} image{'s' * (images != 1)} on {probeset}, band ± 1 SE", 60))
        figure.legend(loc="outside right upper", handlelength=3.2)
        return figure


def frame(ax: Any, eta: Any, ratio: Any) -> None:
    """Scale and label the axes."""
    from geoframe.figures import style

    style.log_axes(ax, scale_limits(eta), style.log_limits(ratio), most=(7, 8))
    ax.set(xlabel=style.ETA_LABEL, ylabel=style.RATIO_LABEL)


def draw_median(ax: Any, eta: Any, median: MedianProfile, look: Any, label: str) -> None:
    """Draw one median with its band of ± one standard error."""
    ax.plot(
        eta,
        positive(median.ratio),
        **look.line,
        label=label,
        linewidth=1.5,
        markersize=3.5,
        markeredgewidth=0.8,
        zorder=3,
    )
    ax.fill_between(eta, *band(median), color=look.colour, alpha=0.18, linewidth=0, zorder=2)


def band(median: MedianProfile) -> tuple[Any, Any]:
    """Return the edges of the band of ± one standard error; a log axis has no place for 0."""
    ratio, error = positive(median.ratio), median.ratio_se
    return np.maximum(ratio - error, ratio / 10), ratio + error


def positive(ratio: Any) -> Any:
    """Return ratios with NaN in the place of what a log axis can't show."""
    return np.where(np.asarray(ratio) > 0, ratio, np.nan)


def scale_limits(eta: Any) -> tuple[float, float]:
    """Limits of the η axis: the ladder, and a little."""
    return float(eta.min() / 1.25), float(eta.max() * 1.25)


def thin(lines: int) -> dict[str, Any]:
    """Style of a single image's line, fainter where there are many; the dot shows a rung between invalid ones."""
    return {"linewidth": 0.7, "alpha": 0.75 if lines <= 10 else 0.4, "marker": ".", "markersize": 1.2, "zorder": 2}


def longest(labels: list[str]) -> int:
    """Return the number of characters in the longest line of all labels."""
    return max((len(line) for label in labels for line in label.split("\n")), default=0)
