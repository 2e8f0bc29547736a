"""Attacked images: coverage by outcome (fig. 5), and what lies on the first right singular vectors (fig. 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.coverage import MARKER, Limits, Sample, look, points
from geoframe.figures.figure import Figure, safe_stem
from geoframe.summaries.attacks import NODES, OUTCOMES, as_names

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

LOOKS = {"correct": look("same", False), "wrong": look("different", False)}
ENTRY = {"correct": "correct", "wrong": "misclassified"}


@attrs.frozen(kw_only=True)
class AttackCoverage(Figure):
    """Coverage of attacked images by attack and outcome (fig. 5); a figure for each encoder on each probe set.

    Attributes
    ----------
    probe : str
        Node of the images as they are; "" where there is none.
    nodes : tuple of str
        Nodes of attacked images.
    """

    probe: str = "coverage"
    nodes: tuple[str, ...] = attrs.field(default=NODES, converter=as_names)

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "attack_coverage"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Rays from training images of the class predicted for the attacked image (Neural Expansion, fig. 5), by "
            f"whether that is its label; dots: test images; {MARKER}; under each attack: correct / misclassified "
            "images with rays. An image that an attack found nothing for counts as it is."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw a figure for each encoder and probe set; nothing where no image is labelled."""
        from geoframe.figures.style import style
        from geoframe.summaries.attacks import attack_of, attacked_node, outcomes

        names = [*([self.probe] if self.probe else []), *self.nodes]
        nodes = {attack_of(name): attacked_node(tree, name) for name in names}
        kinds = {attack: outcomes(ds) for attack, ds in nodes.items()}
        drawn: dict[str, matplotlib.figure.Figure] = {}
        for cell in select.cells(next(iter(nodes.values())), "coverage"):
            place = {"encoder": cell["encoder"].item(), "probeset": cell["probeset"].item()}
            groups: dict[str, list[Sample]] = {}
            for attack, ds in nodes.items():
                samples = [_values(ds, kinds[attack][outcome], place) for outcome in OUTCOMES]
                counts = " / ".join(str(len(sample)) for sample in samples)
                pairs = zip(OUTCOMES, samples, strict=True)
                if any(len(sample) for sample in samples):
                    groups[f"{_title(attack)}\n{counts}"] = [(ENTRY[o], sample, LOOKS[o]) for o, sample in pairs]
            if groups:
                stem = safe_stem(f"{self.label}-{place['encoder']}-{place['probeset']}")
                text, ranges = _bands(cell)
                note = self.footnote(f"{place['encoder']} on {place['probeset']}.", text)
                with style():
                    drawn[stem] = points(groups, "covered rays (%)", note, ranges)
        return drawn


def _title(attack: str) -> str:
    return "no attack" if attack == "none" else attack


def _values(ds: xr.Dataset, kind: xr.DataArray, place: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Coverages of one outcome in %, of images with rays."""
    values = np.asarray(100 * ds["coverage"].sel(place).where(kind.sel(place)))
    return np.asarray(values[np.isfinite(values)])


def _bands(cell: xr.Dataset) -> tuple[str, list[tuple[str, str, Limits]]]:
    """Published ranges of this network, and what says so."""
    from geoframe.summaries.attacks import published

    known, copied = published(cell)
    if known is None:
        return "The paper has no figure for this network and data.", []
    found = {outcome: known.range_of(outcome) for outcome in OUTCOMES}
    ranges = [(f"published, {ENTRY[o]}", str(LOOKS[o]["color"]), [r]) for o, r in found.items() if r is not None]
    copy = " Here CIFAR-10 is a JPEG copy." if copied else ""
    return f"Shaded: ranges over the three attacks that Neural Expansion, I.3, gives for this network.{copy}", ranges


@attrs.frozen(kw_only=True)
class AlignmentCurves(Figure):
    """Energy on the first k right singular vectors, against k: gradients, image differences, attacks (fig. 10).

    A panel for each encoder on each probe set. Lines are means over images, bands the middle half of the images.

    Attributes
    ----------
    probe, differences : str
        Nodes of the loss gradients and of the image differences; "" where there is none of the latter.
    moves : tuple of str
        Nodes of attacks.
    largest : int
        Largest k that is drawn.
    """

    probe: str = "alignment"
    differences: str = "alignment-difference"
    moves: tuple[str, ...] = attrs.field(default=("alignment-pgd",), converter=as_names)
    largest: int = 50

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "alignment_curves"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            "Share of squared length on the first k right singular vectors of the features' Jacobian at the image "
            "(Neural Expansion, fig. 10): mean over images, band: middle half of the images. A gradient lies in the "
            "row space by construction, so it reaches 100 %: compare it with the random vectors of the row space, "
            "Jᵀz with isotropic z (dashed) and an isotropic one (dotted), both ours. Bars at k = 5: what I.3 says of "
            "gradients (80–95 %) and differences (20–40 %), of its own networks."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where nothing was measured."""
        from geoframe.figures import style
        from geoframe.summary import stored_node

        nodes = {"loss gradient": stored_node(tree, self.probe)}
        nodes |= {"image difference": stored_node(tree, self.differences)} if self.differences else {}
        nodes |= {f"attack ({name.partition('-')[2]})": stored_node(tree, name) for name in self.moves}
        cells = select.cells(nodes["loss gradient"], "energy")
        if not cells:
            return {}
        with style.style():
            figure, axes = style.panels(len(cells), 3, (2.7, 2.7), self.footnote(), top=0.8)
            shown: dict[str, Any] = {}
            for ax, cell in zip(axes, cells, strict=False):
                place = {dim: cell[dim].item() for dim in ("encoder", "probeset")}
                shown = _panel(ax, {name: ds.sel(place) for name, ds in nodes.items()}, self.largest) | shown
                ax.set_title(style.title_of(cell))
            for ax in axes[: len(cells) : 3]:
                ax.set_ylabel("energy (%)")
            figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3)
            return {safe_stem(self.label): figure}


def _panel(ax: Any, cells: dict[str, xr.Dataset], largest: int) -> dict[str, Any]:
    """Draw the curves of one encoder on one probe set, and return what the legend shows."""
    from geoframe.figures.style import INK, PALETTE
    from geoframe.summaries.alignment import DIFFERENCE, GRADIENT, TOP

    shown: dict[str, Any] = {}
    for place, (name, cell) in enumerate(cells.items()):
        energy = 100 * cell["energy"].mean("vector").transpose("image", "component").values[:, :largest]
        energy = energy[np.isfinite(energy).any(axis=1)][:, np.isfinite(energy).any(axis=0)]
        if len(energy):
            k = np.arange(1, energy.shape[1] + 1)
            shown[name] = ax.plot(k, energy.mean(axis=0), color=PALETTE[place], linewidth=1.4)[0]
            ax.fill_between(
                k, *np.quantile(energy, [0.25, 0.75], axis=0), color=PALETTE[place], alpha=0.18, linewidth=0
            )
    for name, line, style in (("random, Jᵀz", "baseline_pullback", "--"), ("random, isotropic", "baseline", ":")):
        values = 100 * cells["loss gradient"][line].transpose("image", "component").values[:, :largest]
        mean = values[np.isfinite(values).any(axis=1)].mean(axis=0)
        shown[name] = ax.plot(np.arange(1, len(mean) + 1), mean, style, color=INK, linewidth=1)[0]
    for colour, (low, high) in ((PALETTE[0], GRADIENT), (PALETTE[1], DIFFERENCE)):
        ax.plot([TOP, TOP], [low, high], color=colour, linewidth=4, alpha=0.5, solid_capstyle="butt")
    ax.set(xscale="log", xlabel="right singular vectors k", ylim=(-3, 103), yticks=range(0, 101, 20))
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100, 200) if k <= largest]
    ax.set_xticks(ticks, list(map(str, ticks)))
    ax.set_xticks([], minor=True)
    return shown
