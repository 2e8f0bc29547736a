"""Coverage of images from elsewhere, beside that of a classifier's own data (Neural Expansion, I.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from geoframe.errors import BadInput
from geoframe.statistics.bands import COUNTS, TRAINING
from geoframe.statistics.compare import ALPHA, mann_whitney, mean_interval
from geoframe.statistics.pairing import initial
from geoframe.summaries.chance import CHANCE_RULE, at_chance, judged
from geoframe.summaries.claim_table import (
    AGREES,
    DISAGREES,
    INCONCLUSIVE,
    Claim,
    Claims,
    by_interval,
    tables_by_subject,
    unclear,
)
from geoframe.summaries.tables import by_sign
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

DATA = ("MNIST", "CIFAR10")
OUTSIDE = 0.10
"""I.4: about so much coverage of CIFAR-10's test images, grey and 28 × 28, by an MLP trained on MNIST."""
ABOUT = (OUTSIDE / 2, 2 * OUTSIDE)
INSIDE = (0.89, 0.96)
"""F.1: coverage of their own test images by trained networks; I.4 gives none."""
TRIVIAL = 0.012
"""F.1: the most coverage of rays to other classes in a trained network."""


def ray_coverage(tree: xr.DataTree, node: str) -> xr.DataArray:
    """Return coverage by image (encoder, probeset, image).

    Raises
    ------
    BadInput
        Where the node isn't a RayCoverageProbe's.
    """
    ds = stored_node(tree, node)
    if "coverage" not in ds:
        raise BadInput(f"node {node!r} holds no coverage: name a RayCoverageProbe's")
    return ds["coverage"].transpose("encoder", "probeset", "image")


def texts_along(coverage: xr.DataArray, dim: str, name: str) -> list[str]:
    """Return a coordinate over encoder or probeset, "" throughout where the results don't have it."""
    for stored in (f"{dim}_{name}", name):
        if stored in coverage.coords and coverage[stored].dims == (dim,):
            return [str(value) for value in coverage[stored].values]
    return [""] * coverage.sizes[dim]


def measured_sets(coverage: xr.DataArray, encoder: str) -> tuple[list[str], list[str]]:
    """Return the probe sets on which an encoder was measured: of its own data set, and of others.

    A set, or an encoder, that doesn't say of which data set it is, is in neither.
    """
    own = _datasets(coverage, "encoder")[encoder]
    named = {name: data for name, data in _datasets(coverage, "probeset").items() if own and data}
    found = [name for name in named if bool(_of(coverage, encoder, name).notnull().any())]
    return [name for name in found if named[name] == own], [name for name in found if named[name] != own]


def _datasets(coverage: xr.DataArray, dim: str) -> dict[str, str]:
    """Data set of each encoder or probe set."""
    return dict(zip(map(str, coverage[dim].values), texts_along(coverage, dim, "dataset"), strict=True))


def _of(coverage: xr.DataArray, encoder: str, probeset: str) -> xr.DataArray:
    """Coverages of one encoder on one probe set, (image,)."""
    return coverage.sel(encoder=encoder, probeset=probeset).reset_coords(drop=True)


@attrs.frozen(kw_only=True)
class OodClaims(Claims):
    """I.4: a trained classifier covers images from elsewhere, though far fewer of their rays than of its own data's.

    All images together: labels of another data set mean nothing to the classifier, so that nothing is split by whether
    a prediction is "correct". From elsewhere are probe sets whose coordinate `dataset` isn't the encoder's.

    Rules (ours). About 10 %: agrees where the 95 % interval of the mean lies within 5 to 20 %, disagrees where it lies
    outside. Own data: above 89 %, the least that F.1 finds (I.4 gives none). Both are compared for MNIST classifiers
    on CIFAR-10 only. Nontrivial: above 1.2 %, the most that F.1 finds of rays to other classes. Below that of its own
    data: Mann–Whitney U over images. All are inconclusive where the network is at chance on its own data (`at_chance`).

    The last row is another reading of I.4's figure (ours), since A.4 defines coverage by rays of the predicted class:
    the share of rays from training images of every class, each holding the class of its start. Of ten equal classes it
    is a tenth of the coverage, whatever the network.

    Attributes
    ----------
    probe : str
        Node of the `same` rays.
    """

    probe: str = "coverage"

    @property
    def caption(self) -> str:
        """The rules."""
        low, high = (100 * value for value in ABOUT)
        return (
            "mean coverage over images, 95 % bootstrap interval; all images together, since labels from elsewhere mean "
            "nothing to the classifier. Published: Neural Expansion, I.4 (CIFAR-10, grey, 28×28, on an MNIST MLP) and "
            f"F.1 (own data, other classes). About {100 * OUTSIDE:g} %: agrees within {low:g}–{high:g} % by the "
            f"interval, disagrees outside; nontrivial: above {100 * TRIVIAL:g} %, what rays to other classes have at "
            f"most; own data: above {100 * INSIDE[0]:g} %; below own data: Mann–Whitney U, p < {ALPHA}. On other data "
            "the paper's figures are not compared, and small networks on 8×8 digits cover nearly every ray. Rays of "
            "every class: from all training images, each holding the class of its start, so that only those of the "
            "class predicted can be covered: our other reading of I.4's figure, a tenth of coverage by construction. "
            f"Inconclusive where the network is, on its own data, {CHANCE_RULE}"
        )

    def claims(self, tree: xr.DataTree) -> list[Claim]:
        """Return the claims of each trained classifier on each set from elsewhere."""
        coverage = ray_coverage(tree, self.probe)
        data = {dim: _datasets(coverage, dim) for dim in ("encoder", "probeset")}
        random = dict(zip(data["encoder"], initial(coverage).values.tolist(), strict=True))
        found: list[Claim] = []
        for encoder in (name for name, is_random in random.items() if not is_random):
            inside, outside = measured_sets(coverage, encoder)
            own = _of(coverage, encoder, inside[0]) if inside else None
            lost = bool(inside) and encoder in at_chance(stored_node(tree, self.probe), inside[0])
            for name in outside:
                published = (data["encoder"][encoder], data["probeset"][name]) == DATA
                elsewhere = _of(coverage, encoder, name)
                claims = [
                    *_claims(elsewhere, own, "" if published else unclear("other data")),
                    *_of_every_class(elsewhere, pool_share(tree, self.probe, encoder, name)),
                ]
                found += [judged(attrs.evolve(claim, subject=f"{encoder} on {name}"), lost) for claim in claims]
        return found

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table for each classifier and set from elsewhere."""
        return tables_by_subject(self.label, *self.rows(ds))


def _claims(outside: xr.DataArray, inside: xr.DataArray | None, other: str) -> Iterator[Claim]:
    """Claims on one classifier; `other` is the verdict on the paper's figures where the data aren't the paper's."""
    about = _mean("coverage about 10 %", outside, f"~{100 * OUTSIDE:g} %")
    low, high = (100 * value for value in ABOUT)
    yield attrs.evolve(about, verdict=other or within(about.low, about.high, low, high))
    yield attrs.evolve(
        about,
        claim=f"coverage nontrivial: > {100 * TRIVIAL:g} %",
        published="nontrivial",
        verdict=by_interval(about.low, about.high, 100 * TRIVIAL),
    )
    if inside is None:
        return
    least, most = (100 * value for value in INSIDE)
    own = _mean(f"own data: coverage > {least:g} %", inside, f"{least:g}–{most:g} % (F.1)")
    yield attrs.evolve(own, verdict=other or by_interval(own.low, own.high, least))
    test = mann_whitney(outside, inside)
    p, difference = float(test["p"]), float(test["difference"])
    yield Claim(
        subject="",
        claim="coverage minus own data's < 0",
        value=100 * difference,
        p=p,
        n=about.n + own.n,
        units="%",
        verdict=by_sign(p, -difference),
    )


def pool_share(tree: xr.DataTree, node: str, encoder: str, probeset: str) -> xr.DataArray | None:
    """Share of an encoder's training images that are of each image's predicted class, (image,); None if not known."""
    if TRAINING not in tree.children or COUNTS not in tree[TRAINING] or "predicted" not in tree[node]:
        return None
    counts = stored_node(tree, TRAINING)[COUNTS]
    if encoder not in counts["encoder"].values or bool((counts.sel(encoder=encoder) < 0).any()):
        return None
    of = counts.sel(encoder=encoder).reset_coords(drop=True)
    predicted = stored_node(tree, node)["predicted"].sel(encoder=encoder, probeset=probeset).reset_coords(drop=True)
    return (
        (of / of.sum()).reindex({"class": predicted.values}, fill_value=0).rename({"class": "image"}).drop_vars("image")
    )


def _of_every_class(outside: xr.DataArray, pools: xr.DataArray | None) -> Iterator[Claim]:
    """The paper's figure on another reading: rays from all training images, each with the class of its own start.

    Such a ray can be covered only if its image's class is the predicted one, so this is coverage times their share.
    """
    if pools is not None:
        found = _mean("the same, rays of every class", outside * pools, f"~{100 * OUTSIDE:g} %")
        yield attrs.evolve(found, verdict=unclear("our reading"))


def _mean(claim: str, coverage: xr.DataArray, published: str) -> Claim:
    found = mean_interval(coverage, shares=True)
    value, low, high = (100 * float(found[name]) for name in ("mean", "low", "high"))
    return Claim(
        subject="", claim=claim, published=published, value=value, low=low, high=high, n=int(found["n"]), units="%"
    )


def within(low: float, high: float, least: float, most: float) -> str:
    """Verdict on "ours is between", from our interval.

    >>> within(8, 12, 5, 20), within(1, 4, 5, 20), within(4, 12, 5, 20)
    ('agrees', 'disagrees', 'inconclusive')
    """
    if least <= low and high <= most:
        return AGREES
    return DISAGREES if high < least or low > most else INCONCLUSIVE
