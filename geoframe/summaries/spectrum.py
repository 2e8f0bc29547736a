"""GI and local linearity by singular-vector index, over training (Neural Expansion, §5.1.2, §5.1.3, fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.compare import LEVEL, mann_whitney, mean_interval
from geoframe.summaries.claims import CLAIMS, TESTS, Side, Stages, missing, sides, stages
from geoframe.summaries.tables import INTERVALS, RULE, by_sign, interval, measured, number, percent, who
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

NULL = 1e-9  # of the largest singular value: directions below it are null
GI = "scaled direction"  # the diagonal of the input box, unless the probe says otherwise
THIRDS = {
    "gi_first": "GI over the first third of the row space",
    "gi_last": "GI over the last third of the row space",
    "alpha_first": "α over the first third of the row space",
    "alpha_last": "α over the last third of the row space",
}
MEANS = {"gi_mean": "GI, restricted at the search's cap", **THIRDS}
VARIABLES = {
    "images": ("1", "number of images"),
    "gi_median": (GI, "median GI over images, directions and signs"),
    "gi_over_1": ("1", "share of directions and signs with GI > 1"),
    "gi_censored": ("1", "share of directions and signs whose GI reaches the search's cap"),
    "distance_mean": ("raw-pixel L2", "mean distance to the class change, restricted at the cap, along +d"),
    "rank": ("1", "median over images of the number of singular values above the rank threshold"),
    "n_significant": ("1", "median over images of the number of singular values above a share of the largest"),
    **{name: (GI, f"mean over images of the mean {text}") for name, text in MEANS.items()},
    **{f"{name}_low": (GI, f"lower end of the 95 % interval of the mean {text}") for name, text in MEANS.items()},
    **{f"{name}_high": (GI, f"upper end of the 95 % interval of the mean {text}") for name, text in MEANS.items()},
}
DIAGONALS = "GI and α in diagonals of the input box (scale of the probes), over images, directions and signs"


def both_signs(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Mean over v and −v, (…, image, direction): the sign of a singular vector is arbitrary."""
    if f"{name}_negative" not in ds:
        raise BadInput(f"the node holds no {name} along both signs: name the node of a probe along singular vectors")
    return (ds[name] + ds[f"{name}_negative"]) / 2


def over_1(ds: xr.Dataset) -> xr.DataArray:
    """Share of v and −v along which GI > 1, (…, image, direction)."""
    both = (ds["gi"] > 1) * 0.5 + (ds["gi_negative"] > 1) * 0.5
    return both.where(both_signs(ds, "gi").notnull())


def of_rays(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """What a table of intervals says beside their mean, over images, directions and signs; see `VARIABLES`."""
    import xarray as xr

    every = ("image", "direction")
    found = both_signs(ds, "gi").notnull()
    return {
        "images": found.any("direction").sum("image"),
        "gi_median": xr.concat([ds["gi"], ds["gi_negative"]], "sign").median(("sign", *every)),
        "gi_over_1": over_1(ds).mean(every),
        "gi_censored": (ds["censored"] * 0.5 + ds["censored_negative"] * 0.5).where(found).mean(every),
        "distance_mean": ds["distance"].mean(every),
    }


def in_row_space(ds: xr.Dataset) -> xr.DataArray:
    """Which directions have a singular value, (…, image, direction)."""
    values = ds["singular_value"]
    return values > NULL * values.max("direction")


def third(ds: xr.Dataset, values: xr.DataArray, last: bool) -> xr.DataArray:
    """Mean of values over the first or last third of the row space's directions, by image."""
    inside = in_row_space(ds)
    place, count = inside.cumsum("direction"), inside.sum("direction")
    wanted = place > count * 2 / 3 if last else place <= count / 3
    return values.where(inside & wanted).mean("direction")


@attrs.frozen(kw_only=True)
class SpectrumSummary(Summary):
    """GI, α and rank of each checkpoint: medians, means restricted at the cap, censored shares.

    Attributes
    ----------
    gi, linearity, jacobian : str
        Nodes of the three probes.
    """

    gi: str = "gi"
    linearity: str = "linearity"
    jacobian: str = "jacobian"

    def default_name(self) -> str:
        """Return "spectrum"."""
        return "spectrum"

    @property
    def caption(self) -> str:
        """What the columns are."""
        return (
            f"{DIAGONALS}; n: images; means are restricted at the search's cap (Neural Expansion doesn't give that of "
            "its §5.1), cens.: share of rays that reach it; L2: mean distance in raw pixels; first and last third of "
            f"the row space, in order of falling singular value; {INTERVALS}"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images and directions."""
        import xarray as xr

        gi, alpha = stored_node(tree, self.gi), stored_node(tree, self.linearity)
        jacobian = stored_node(tree, self.jacobian)
        mean_gi, mean_alpha = both_signs(gi, "gi"), both_signs(alpha, "alpha")
        table = {
            **of_rays(gi),
            "rank": jacobian["rank"].where(jacobian["rank"] >= 0).median("image"),
            "n_significant": jacobian["n_significant"].where(jacobian["n_significant"] >= 0).median("image"),
        }
        by_image = {"gi_mean": mean_gi.mean("direction")}
        for name, node, values in (("gi", gi, mean_gi), ("alpha", alpha, mean_alpha)):
            by_image |= {f"{name}_first": third(node, values, False), f"{name}_last": third(node, values, True)}
        for name, values in by_image.items():
            ends = mean_interval(values)
            table |= {name: ends["mean"], f"{name}_low": ends["low"], f"{name}_high": ends["high"]}
        return described(xr.Dataset(table), VARIABLES).assign_attrs(level=LEVEL)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each checkpoint that was measured: the whole basis."""
        headers = ["encoder", "probe set", "n", "median GI", "mean GI", "> 1 (%)", "cens. (%)", "L2", "rank"]
        rows = []
        for cell in measured(ds, "gi_mean"):
            shares = (percent(cell[name]) for name in ("gi_over_1", "gi_censored"))
            counts = (f"{float(cell[name]):.0f}" for name in ("rank", "n_significant"))
            mean = interval(cell, "gi_mean", digits=2)
            row = [str(int(cell["images"])), number(cell["gi_median"]), mean, *shares, number(cell["distance_mean"])]
            rows.append([*who(cell), *row, *counts])
        return [*headers, "> 0.1 σ₁"], rows

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the table of the whole basis, and that of the thirds of the row space."""
        headers = ["encoder", "probe set", "GI, first third", "GI, last third", "α, first third", "α, last third"]
        rows = [[*who(cell), *(interval(cell, name, digits=2) for name in THIRDS)] for cell in measured(ds, "gi_mean")]
        return [(self.label, *self.rows(ds)), (f"{self.label}, thirds", headers, rows)]


@attrs.frozen(kw_only=True)
class SpectrumClaims(Summary):
    """Fig. 2's claims, each tested over images (Mann–Whitney U) on the initial, the earliest and the latest weights.

    Each network has rows of its own on each probe set: checkpoints of one training with their initial weights (see
    `networks`). Rule (ours): agrees where p < 0.05 with the published sign, disagrees where p < 0.05 with the other,
    else inconclusive. It is one training: the test is over images, not over seeds.
    """

    gi: str = "gi"
    linearity: str = "linearity"

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            f"means over images; {DIAGONALS}. Mann–Whitney U over n images of one training (one seed), two-sided; late "
            "and early: the last and the first checkpoint after the initial weights. Published: Neural Expansion, "
            "§5.1.2 (its cap isn't given) and §5.1.3, of an MLP on MNIST; on other data a verdict compares the sign "
            f"only. {RULE}"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Test the claims on each probe set; empty where no encoder is trained."""
        import xarray as xr

        gi, alpha = (stored_node(tree, node) for node in (self.gi, self.linearity))
        known = stages(gi)
        if not known:
            return xr.Dataset()
        values = {
            "gi": both_signs(gi, "gi").mean("direction"),
            **{f"gi_{name}": third(gi, both_signs(gi, "gi"), name == "last") for name in ("first", "last")},
            **{f"alpha_{name}": third(alpha, both_signs(alpha, "alpha"), name == "last") for name in ("first", "last")},
        }
        names = list(map(str, gi["probeset"].values))
        parts = [_claims(known, {k: v.sel(probeset=name) for k, v in values.items()}) for name in names]
        texts = {name: np.array([getattr(s, name) for s in known], dtype=object) for name in ("late", "problem")}
        ds = xr.concat(parts, "probeset").assign_coords(
            network=texts["late"],
            problem=("network", texts["problem"]),
            probeset=np.array(names, dtype=object),
            claim=np.array([*CLAIMS], dtype=object),
        )
        return described(ds, TESTS)

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each network, probe set and claim; none where a network was measured on other sets only."""
        headers = ["network", "probe set", "claim", "n", "ours", "published", "p", "verdict"]
        rows = []
        for one in _networks(ds):
            for claim in map(str, ds["claim"].values):
                cell = one.sel(claim=claim)
                counts = f"{int(cell['n_first'])}, {int(cell['n_second'])}"
                ours = f"{number(cell['first'])}, {number(cell['second'])}"
                names = [str(cell[name].item()) for name in ("network", "probeset")]
                rows.append([*names, claim, counts, ours, CLAIMS[claim], number(cell["p"], 2), verdict(cell)])
        return headers, rows

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return a table of claims for each probe set, or one that says why there are none."""
        if not ds.data_vars:
            return [(self.label, ["nothing to compare"], [["no trained network in these results"]])]
        headers, rows = self.rows(ds)
        sets = dict.fromkeys(row[1] for row in rows)
        return [
            (f"{self.label}, {name}", headers[:1] + headers[2:], [row[:1] + row[2:] for row in rows if row[1] == name])
            for name in sets
        ]


def verdict(cell: xr.Dataset) -> str:
    """One claim by the rule of `SpectrumClaims`."""
    if not np.isfinite(float(cell["p"])):
        return missing(str(cell["claim"].item()), str(cell["problem"].item()))
    return by_sign(float(cell["p"]), float(cell["first"]) - float(cell["second"]))


def _claims(known: Sequence[Stages], values: Mapping[str, xr.DataArray]) -> xr.Dataset:
    """Test each network's claims on one probe set, (network, claim)."""
    import xarray as xr

    def of(side: Side) -> xr.DataArray | None:
        return values[side[0]].sel(encoder=side[1]) if side[1] else None

    tests = [xr.concat([_tested(of(a), of(b)) for a, b in sides(stage)], "claim") for stage in known]
    return xr.concat(tests, "network")


def _networks(ds: xr.Dataset) -> Iterator[xr.Dataset]:
    """Yield each network on each probe set that it was measured on; on all where it was on none."""
    for network in ds["network"].values if "network" in ds.coords else ():
        cells = [ds.sel(network=network, probeset=probeset) for probeset in ds["probeset"].values]
        yield from [cell for cell in cells if int(cell["n_first"].sum())] or cells


def _tested(one: xr.DataArray | None, other: xr.DataArray | None) -> xr.Dataset:
    """Compare two samples over images; an absent one is empty."""
    import xarray as xr

    empty = xr.DataArray([np.nan], dims="image")
    first, second = (empty if side is None else side.drop_vars([*side.coords]) for side in (one, other))
    return mann_whitney(first, second).assign(first=first.mean(), second=second.mean())
