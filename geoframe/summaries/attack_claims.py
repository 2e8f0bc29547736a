"""I.3 and fig. 10 beside what is measured: coverage of attacked images, and what lies on the first singular vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from geoframe.statistics.compare import ALPHA, FEWEST
from geoframe.summaries.alignment import OTHER, TOP, Energies, judged
from geoframe.summaries.attacks import NODES, OUTCOMES, AttackSummary, as_names, attack_name, cells, published
from geoframe.summaries.claim_table import NOT_GIVEN, Claim, Claims, by_range, unclear
from geoframe.summaries.tables import by_sign

if TYPE_CHECKING:
    import xarray as xr


@attrs.frozen(kw_only=True)
class AttackClaims(Claims):
    """Claims of *Neural Expansion* on attacked images (fig. 5, I.3), on loss gradients and differences (fig. 10, §3.4).

    Rules (ours). A published range: agrees where our mean lies in it, disagrees where our 95 % interval doesn't touch
    it, else inconclusive, and so below ten images, which have no interval; only on the paper's network and data. An
    order: agrees where p < 0.05 with the published sign, disagrees where p < 0.05 with the other, else inconclusive;
    Mann–Whitney U over images for misclassified against correctly classified ones (ten of either at least; on the
    paper's network, also on the JPEG copy of CIFAR-10), Wilcoxon's signed ranks over images for gradient or attack
    against image differences (any data). The paper gives no figure for the other lines: they stand for comparison.
    "gradient − random" is against Jᵀz for isotropic z, which is what J alone does to any gradient.

    Attributes
    ----------
    nodes : tuple of str
        Nodes of attacked images.
    gradient, differences : str
        Nodes of `AlignmentProbe`s; "" where there is none.
    moves : tuple of str
        Nodes of `AlignmentProbe`s with an attack.
    """

    nodes: tuple[str, ...] = attrs.field(default=NODES, converter=as_names)
    gradient: str = "alignment"
    differences: str = "alignment-difference"
    moves: tuple[str, ...] = attrs.field(default=("alignment-pgd",), converter=as_names)

    @property
    def caption(self) -> str:
        """The rules."""
        return (
            "correct, wrong: coverage of attacked images by their prediction, mean over images; "
            f"top {TOP}: squared length on the first {TOP} right singular vectors, mean over images; random: Jᵀz, z "
            "isotropic (ours). Published: Neural Expansion, I.3, fig. 10 and §3.4. Ranges: agrees if ours lies inside, "
            "disagrees if our 95 % interval (bootstrap over images) doesn't touch it, on the paper's network and data "
            f"only, and from ten images on. Orders (> 0, < 0): by p < {ALPHA} with that sign or the other; "
            f"Mann–Whitney U, {FEWEST} images of either at least, for energies Wilcoxon. "
            '"data": the paper says nothing of this network or data; "copy": CIFAR-10 as JPEG; "ours": the paper has '
            "no figure"
        )

    def claims(self, tree: xr.DataTree) -> Sequence[Claim]:
        """Return the claims, network by network."""
        table = AttackSummary(nodes=self.nodes, clean="").compute(tree)
        found = [claim for cell in cells(table) for claim in _on(cell)]
        found += Energies.stored(tree, self.gradient, self.differences, self.moves).claims()
        order = list(dict.fromkeys(claim.subject for claim in found))
        return sorted(found, key=lambda claim: order.index(claim.subject))


def _on(cell: xr.Dataset) -> Iterator[Claim]:
    """Claims on one attack on one network."""
    known, _ = published(cell)
    for outcome in OUTCOMES:
        one = cell.sel(outcome=outcome)
        value, low, high = (100 * float(one[f"coverage{end}"]) for end in ("", "_low", "_high"))
        limits = None if known is None else known.range_of(outcome)
        verdict = by_range(value, low, high, limits) if limits else unclear("no rays")
        yield Claim(
            subject=str(cell["encoder"].item()),
            claim=f"{attack_name(cell)}: {outcome}",
            published=f"{limits[0]:g}–{limits[1]:g} %" if limits else NOT_GIVEN,
            value=value,
            low=low,
            high=high,
            n=int(one["covered_images"]),
            units="%",
            verdict=judged(cell, verdict),
        )
    yield _order(cell)


def _order(cell: xr.Dataset) -> Claim:
    """Are misclassified attacked images covered more, or less, than correctly classified ones?"""
    known, _ = published(cell)
    difference, p = float(cell["difference"]), float(cell["p"])
    said, verdict = NOT_GIVEN, OTHER
    few = int(cell["covered_images"].min()) < FEWEST
    if known is not None and known.wrong is not None:
        sign = 1 if known.wrong[0] > known.correct[1] else -1
        said, verdict = "> 0" if sign > 0 else "< 0", by_sign(p, sign * difference)
        verdict = unclear(f"n < {FEWEST}") if few else verdict
    return Claim(
        subject=str(cell["encoder"].item()),
        claim=f"{attack_name(cell)}: wrong − correct",
        published=said,
        value=100 * difference,
        p=p,
        n=int(cell["covered_images"].sum()),
        units="%",
        verdict=verdict,
    )
