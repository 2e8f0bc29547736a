"""What all figures share: fonts, colours, log axes, wrapped names, footnotes."""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

DPI = 200
FEW_DECADES = 3  # up to which a logarithmic axis has minor ticks between decades
INK = "#222222"
TRAINED, RANDOM = "#0072B2", "#D55E00"
# Okabe and Ito's palette without its yellow (too pale for a line on white) and black (kept for medians)
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
ETA_LABEL = "perturbation size η (L2 in raw [0,1] pixels)"
ETA_SHORT = "η (L2 in raw [0,1] pixels)"
RATIO_LABEL = "response ratio $r_\\eta$"
NOTE_SIZE = 7.0

SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Use geoframe's settings, whatever the user's are, and give the user's back afterwards."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


@attrs.frozen
class Look:
    """How one encoder is drawn."""

    colour: str
    marker: str
    dashed: bool

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for `Axes.plot`; a random encoder is dashed, with hollow markers."""
        return {
            "color": self.colour,
            "linestyle": "--" if self.dashed else "-",
            "marker": self.marker,
            "markerfacecolor": "white" if self.dashed else self.colour,
        }


def looks(networks: Sequence[str], random: Sequence[bool]) -> list[Look]:
    """Choose a look for each encoder: a random copy has the colour and marker of its trained sibling.

    Parameters
    ----------
    networks : sequence of str
        Network of each encoder, "" where it stands alone or isn't known.
    random : sequence of bool
        Whether the encoder has its initial weights.

    Returns
    -------
    list of Look
        Trained encoders differ from each other in colour or marker up to 49 of them.
    """
    place: dict[int, int] = {}
    sibling: dict[str, int] = {}
    for i in sorted(range(len(random)), key=lambda i: random[i]):  # trained ones choose first
        known = sibling.get(networks[i]) if random[i] and networks[i] else None
        place[i] = len(set(place.values())) if known is None else known
        sibling.setdefault(networks[i], place[i])
    n = len(PALETTE)
    return [Look(PALETTE[k % n], MARKERS[(k + k // n) % n], random[i]) for i, k in sorted(place.items())]


def log_limits(values: Any, pad: float = 0.04, floor: float = 4.0) -> tuple[float, float]:
    """Limits of a log axis around all positive values and 1: at least a factor `floor` apart, padded by a share."""
    array = np.asarray(values, dtype=np.float64)
    good = np.log(array[np.isfinite(array) & (array > 0)])
    low, high = good.min(initial=0.0), good.max(initial=0.0)
    more = max(0.0, (np.log(floor) - (high - low)) / 2) + pad * (high - low)
    return float(np.exp(low - more)), float(np.exp(high + more))


def log_ticks(low: float, high: float, most: int) -> tuple[list[float], list[str]]:
    """Places and labels of the ticks between two limits: decades, or 1-2-5 where decades are too few.

    >>> log_ticks(0.3, 6.0, 6)
    ([0.5, 1.0, 2.0, 5.0], ['0.5', '1', '2', '5'])
    """
    first, last = int(np.ceil(np.log10(low) - 1e-9)), int(np.floor(np.log10(high) + 1e-9))
    decades = range(first, last + 1)
    if len(decades) < 3:
        fine = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        inside = [float(f"{t:.6g}") for t in fine if low <= t * (1 + 1e-9) and t <= high * (1 + 1e-9)]
        if 2 <= len(inside) <= most:
            return inside, [f"{t:g}" for t in inside]
    stride = max(1, -(-len(decades) // most))
    shown = [k for k in decades if k % stride == 0]
    return [10.0**k for k in shown], [f"$10^{{{k}}}$" for k in shown]


def log_axes(ax: Any, x: tuple[float, float], y: tuple[float, float], most: tuple[int, int]) -> None:
    """Make both axes logarithmic with the given limits and at most so many labelled ticks."""
    ax.set(xscale="log", yscale="log", xlim=x, ylim=y)
    for axis, limits, count in ((ax.xaxis, x, most[0]), (ax.yaxis, y, most[1])):
        places, labels = log_ticks(*limits, count)
        axis.set_major_locator(FixedLocator(places))
        axis.set_major_formatter(FixedFormatter(labels))
        decades = np.arange(np.floor(np.log10(limits[0])), np.ceil(np.log10(limits[1])) + 1)
        steps = np.arange(1, 10) if len(decades) <= FEW_DECADES else [1]  # unlabelled ones show that it is logarithmic
        axis.set_minor_locator(FixedLocator(list(np.outer(10.0**decades, steps).ravel())))
        axis.set_minor_formatter(NullFormatter())


def reference_line(ax: Any) -> Any:
    """Draw r = 1, where the linear prediction holds."""
    return ax.axhline(1.0, color=INK, linewidth=0.7, linestyle=":", zorder=1)


def wrap(name: str, width: int) -> str:
    r"""Break a name into lines of at most `width` characters, at its separators where it has any.

    >>> wrap("vit_small_patch16_224.augreg_in1k", 18)
    'vit_small_patch16_\n224.augreg_in1k'
    >>> wrap("resnet50_l2_eps0.01", 18)
    'resnet50_l2_\neps0.01'
    """
    lines = [""]
    separator = r"(?:[_\-/ ]|\.(?!\d)|(?<!\d)\.)"  # the point of a number is none
    for piece in re.findall(rf".+?{separator}|.+", name.replace("$", r"\$")):  # a name is no formula
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
    return "\n".join(part for line in lines for part in textwrap.wrap(line.rstrip(), max(width, 1)) or [""])


def footnote(figure: Canvas, note: str) -> float:
    """Print a note under the figure, wrapped to its width; return the height it was given, in inches."""
    if not note:
        return 0.0
    width, height = figure.get_size_inches()
    text = textwrap.fill(note, max(20, int((width - 0.2) * 72 / (NOTE_SIZE * 0.56))))
    extra = float((text.count("\n") + 1) * NOTE_SIZE * 1.25 / 72 + 0.1)
    figure.set_size_inches(width, height + extra)
    place = 0.1 / width, 0.06 / (height + extra)
    figure.text(*place, text, fontsize=NOTE_SIZE, color="#555555", va="bottom", ha="left")
    return extra


def single(width: float, height: float, note: str) -> tuple[Canvas, Any]:
    """Return a figure with one pair of axes, laid out automatically above its footnote."""
    figure = Canvas(figsize=(width, height))
    extra = footnote(figure, note)
    share = extra / (height + extra)
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0, share, 1, 1 - share)))
    return figure, figure.add_subplot()


def panels(count: int, most: int, cell: tuple[float, float], note: str, top: float = 0.5) -> tuple[Canvas, list[Any]]:
    """Return a figure with `count` panels of one size, at most so many in a row, above its footnote; unused axes off.

    Parameters
    ----------
    cell : (float, float)
        Width and height of a panel, in inches.
    top : float
        Height that the legend takes, in inches.
    """
    across = min(count, most)
    down = -(-count // across)
    figure = Canvas(figsize=(max(0.8 + cell[0] * across, 4.4), top + cell[1] * down))
    extra = footnote(figure, note) / figure.get_figheight()
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0, extra, 1, 1 - extra)))
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for ax in axes[count:]:
        ax.set_axis_off()
    return figure, axes


def label_outer(ax: Any) -> None:
    """Label the axes of one panel of profiles where no panel is below it, or to its left."""
    place = ax.get_subplotspec()
    ax.set(xlabel=ETA_SHORT if place.is_last_row() else "", ylabel=RATIO_LABEL if place.is_first_col() else "")


def title_of(cell: Any, width: int = 26) -> str:
    """Title of a panel: the encoder's and the probe set's name."""
    return "\n".join(wrap(str(cell[dim].item()), width) for dim in ("encoder", "probeset"))
