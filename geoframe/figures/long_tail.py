"""Long-tailed training: where errors go, and coverage by frequency band (Neural Expansion, fig. 4b and 4c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

COLOURS = {"low": "#E69F00", "medium": "#56B4E9", "high": "#0072B2"}
SMALLEST = 0.045  # share of a bar that has room for its number
BANDS = "Bands: classes with fewest to most training images, parted at the 33rd and 66th percentiles."


@attrs.frozen(kw_only=True)
class LongTailFlows(Figure):
    """Bars of the misclassified images of each true band, by the band of the class predicted (fig. 4b).

    A panel for each trained encoder and probe set. A black tick is where a boundary would be if every other class drew
    as many errors. Beside MNIST at 6.5:1, what the paper's text gives.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "long_tail_flows"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            f"Misclassified images by true band and by the band of the class predicted; n: how many. {BANDS} Black "
            "ticks: boundaries if every other class drew as many errors (Neural Expansion, fig. 4b)."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no trained network is known to have unequal classes."""
        from geoframe.figures.style import style

        found = _summary(tree, self.probe)
        if not found:
            return {}
        with style():
            return {safe_stem(self.label): self._panels(found)}

    def _panels(self, found: list[xr.Dataset]) -> matplotlib.figure.Figure:
        from matplotlib.patches import Patch

        from geoframe.figures import style

        published = any(bool(cell["has_published_flows"]) for cell in found)
        note = self.footnote("Hatched: the shares that the paper's I.2 gives of MNIST at 6.5:1." if published else "")
        figure, axes = style.panels(len(found), 3, (2.9, 3.0), note, top=0.5)
        for ax, cell in zip(axes, found, strict=False):
            _bars(ax, cell)
            ax.set_title(style.title_of(cell))
            ax.set(ylim=(0, 100), ylabel="misclassified images (%)" if ax.get_subplotspec().is_first_col() else "")
            ax.set_xlabel("true band")
        boxes = [Patch(color=colour) for colour in COLOURS.values()]
        names = [f"to {band}" for band in COLOURS]
        figure.legend(boxes, names, loc="outside upper center", ncols=3)
        return figure


@attrs.frozen(kw_only=True)
class LongTailCoverage(Figure):
    """Mean coverage by true band and by where the prediction is, with 95 % intervals over images (fig. 4c)."""

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "long_tail_coverage"

    @property
    def caption(self) -> str:
        """What is drawn."""
        low, high = _published()
        return (
            "Coverage (share of rays from training images of the predicted class that keep it), mean over test images "
            "with its 95 % interval (bootstrap over images); hollow: fewer than 10 images, no interval. By true band: "
            f"correct images, and wrong ones by the band of the class predicted. {BANDS} Shaded: {low:g}–{high:g} %, "
            "which Neural Expansion, I.2, gives across all combinations of bands."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no trained network is known to have unequal classes."""
        from geoframe.figures.style import style

        found = _summary(tree, self.probe)
        if not found:
            return {}
        with style():
            return {safe_stem(self.label): self._panel(found)}

    def _panel(self, found: list[xr.Dataset]) -> matplotlib.figure.Figure:
        from geoframe.figures import style

        figure, ax = style.single(6.8, 3.6, self.footnote())
        shown = {"published": ax.axhspan(*_published(), color="#999999", alpha=0.25, linewidth=0)}
        pairs = [(band, to) for band in COLOURS for to in ("correct", *COLOURS)]
        for i, cell in enumerate(found):
            offset = (i - (len(found) - 1) / 2) * min(0.22, 0.7 / len(found))
            shown[", ".join(str(cell[dim].item()) for dim in ("encoder", "probeset"))] = _means(
                ax, cell, pairs, offset, style.PALETTE[i % 7], style.MARKERS[i % 7]
            )
        for edge in (3.5, 7.5):
            ax.axvline(edge, color=style.INK, linewidth=0.5)
        ax.set_xticks(range(len(pairs)), [to if to == "correct" else f"→ {to}" for _, to in pairs], rotation=30)
        for place, band in zip((1.5, 5.5, 9.5), COLOURS, strict=True):
            ax.annotate(f"true band: {band}", (place, 1.02), xycoords=("data", "axes fraction"), ha="center")
        ax.set(xlim=(-0.6, len(pairs) - 0.4), ylim=(None, 101), ylabel="covered rays (%)")
        figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3)
        return figure


def _summary(tree: xr.DataTree, probe: str) -> list[xr.Dataset]:
    from geoframe.summaries.long_tail import LongTailSummary

    ds = LongTailSummary(probe=probe).compute(tree)
    return [ds.isel(cell=place) for place in range(ds.sizes.get("cell", 0))]


def _published() -> tuple[float, float]:
    from geoframe.statistics.bands import PUBLISHED_COVERAGE

    low, high = PUBLISHED_COVERAGE
    return 100 * low, 100 * high


def _bars(ax: Any, cell: xr.Dataset) -> None:
    """Stack the shares of each true band, and those that are published, where they are of this training."""
    from geoframe.statistics.bands import PUBLISHED_FLOWS

    names: list[str] = []
    for band in COLOURS:
        part = cell.sel(true=band, destination=[*COLOURS])
        if int(part["images"].sum()):
            _stack(ax, len(names), dict(zip(COLOURS, part["flow"].values, strict=True)))
            edges = 100 * np.cumsum(part["even"].values)[:-1]
            ax.hlines(edges, len(names) - 0.46, len(names) + 0.46, color="black", linewidth=1.2)
            names.append(f"{band}\nn = {int(part['images'].sum())}")
    if bool(cell["has_published_flows"]):
        _stack(ax, len(names), PUBLISHED_FLOWS, hatch="////")
        names.append("low,\npublished")
    ax.set_xticks(range(len(names)), names)
    ax.set_xlim(-0.6, max(len(names), 1) - 0.4)


def _stack(ax: Any, place: int, shares: Any, **look: Any) -> None:
    """Draw one bar, low at the bottom, with its percentages."""
    bottom = 0.0
    for band, colour in COLOURS.items():
        share = float(shares[band])
        ax.bar(place, 100 * share, 0.8, 100 * bottom, color=colour, edgecolor="white", linewidth=0.6, **look)
        if share >= SMALLEST:
            dark = band == "high"
            box = {"facecolor": colour, "edgecolor": "none", "pad": 0.6}
            ax.text(
                place,
                100 * (bottom + share / 2),
                f"{100 * share:.0f}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if dark else "black",
                bbox=box,
            )
        bottom += share


def _means(ax: Any, cell: xr.Dataset, pairs: list[tuple[str, str]], offset: float, colour: str, marker: str) -> Any:
    """Draw the means of one classifier, and return its marker."""
    parts = [cell.sel(true=band, destination=to) for band, to in pairs]
    mean, low, high = (100 * np.array([float(p[f"coverage{end}"]) for p in parts]) for end in ("", "_low", "_high"))
    x, drawn = np.arange(len(pairs)) + offset, np.isfinite(mean)
    few = drawn & ~np.isfinite(low)
    look = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 5}
    ax.plot(x[few], mean[few], markerfacecolor="white", **look)
    bars = np.stack([mean - low, high - mean])[:, drawn & ~few].clip(min=0)
    return ax.errorbar(x[drawn & ~few], mean[drawn & ~few], yerr=bars, capsize=2.5, linewidth=1.1, **look)
