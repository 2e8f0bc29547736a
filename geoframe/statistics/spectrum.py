"""GI and local linearity by singular-vector index, over training (Neural Expansion, §5.1.2, §5.1.3, fig. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.errors import BadInput
from geoframe.statistics.compare import mann_whitney
from geoframe.summary import Summary, stored_node

if TYPE_CHECKING:
    import xarray as xr

ALPHA = 0.05
NULL = 1e-9  # of the largest singular value: directions below it are null
CLAIMS = {  # what the paper's text gives
    "mean GI, late > early": "11.5 > 7 (cap not given)",
    "GI, last > first third of the row space, late": "yes",
    "α, last > first third of the row space, late": "1.2 > 0.4",
    "α in the last third, late > initial": "1.2 > 0.4",
}


def both_signs(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Mean over v and −v, (…, image, direction): the sign of a singular vector is arbitrary."""
    if f"{name}_negative" not in ds:
        raise BadInput(f"the node holds no {name} along both signs: name the node of a probe along singular vectors")
    return (ds[name] + ds[f"{name}_negative"]) / 2


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
            "GI and α in diagonals of the input box, over images, directions and signs; means are restricted at the "
            "search's cap, which B doesn't give for §5.1; α and GI by thirds of the row space, in order of falling "
            "singular value"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Aggregate over images and directions."""
        import xarray as xr

        gi, alpha = stored_node(tree, self.gi), stored_node(tree, self.linearity)
        jacobian = stored_node(tree, self.jacobian)
        mean_gi, mean_alpha = both_signs(gi, "gi"), both_signs(alpha, "alpha")
        every = ("image", "direction")
        measured = mean_gi.notnull()
        table = {
            "gi_median": xr.concat([gi["gi"], gi["gi_negative"]], "sign").median(("sign", *every)),
            "gi_mean": mean_gi.mean(every),
            "gi_over_1": ((gi["gi"] > 1) * 0.5 + (gi["gi_negative"] > 1) * 0.5).where(measured).mean(every),
            "gi_censored": (gi["censored"] * 0.5 + gi["censored_negative"] * 0.5).where(measured).mean(every),
            "distance_mean": gi["distance"].mean(every),
            "gi_first": third(gi, mean_gi, last=False).mean("image"),
            "gi_last": third(gi, mean_gi, last=True).mean("image"),
            "alpha_first": third(alpha, mean_alpha, last=False).mean("image"),
            "alpha_last": third(alpha, mean_alpha, last=True).mean("image"),
            "rank": jacobian["rank"].where(jacobian["rank"] >= 0).median("image"),
            "n_significant": jacobian["n_significant"].where(jacobian["n_significant"] >= 0).median("image"),
        }
        return xr.Dataset(table).drop_attrs()

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each checkpoint that was measured."""
        headers = ["encoder", "probe set", "GI median", "GI mean", "> 1 (%)", "censored (%)", "mean L2"]
        headers += ["GI thirds", "α thirds", "rank", "> 0.1 σ₁"]
        rows = []
        for place in np.ndindex(ds["gi_mean"].shape):
            cell = ds.isel(dict(zip(map(str, ds["gi_mean"].dims), place, strict=True)))
            if not np.isfinite(float(cell["gi_mean"])):
                continue
            number = {name: float(cell[name]) for name in map(str, ds.data_vars)}
            rows.append(
                [
                    str(cell["encoder"].item()),
                    str(cell["probeset"].item()),
                    *(f"{number[name]:.3g}" for name in ("gi_median", "gi_mean")),
                    *(f"{100 * number[name]:.3g}" for name in ("gi_over_1", "gi_censored")),
                    f"{number['distance_mean']:.3g}",
                    f"{number['gi_first']:.2g} … {number['gi_last']:.2g}",
                    f"{number['alpha_first']:.2g} … {number['alpha_last']:.2g}",
                    *(f"{number[name]:.0f}" for name in ("rank", "n_significant")),
                ]
            )
        return headers, rows


@attrs.frozen(kw_only=True)
class SpectrumClaims(Summary):
    """Fig. 2's claims, each tested over images (Mann–Whitney U) on the initial, the earliest and the latest weights.

    Rule (ours): agrees where p < 0.05 with the published sign, disagrees where p < 0.05 with the other one, else
    inconclusive. It is one training: the test is over images, not over seeds.
    """

    gi: str = "gi"
    linearity: str = "linearity"

    def default_name(self) -> str:
        """Return "spectrum-claims"."""
        return "spectrum-claims"

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            "means over images; Mann–Whitney U over images of one training (one seed), GI and α in diagonals; agrees: "
            f"p < {ALPHA} with the published sign; disagrees: with the other one"
        )

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Test the claims on the first probe set; empty where no encoder is trained."""
        import xarray as xr

        gi, alpha = (stored_node(tree, node).isel(probeset=0, drop=True) for node in (self.gi, self.linearity))
        epochs = gi["epoch"].values if "epoch" in gi.coords else np.zeros(gi.sizes["encoder"])
        trained = np.flatnonzero(epochs > 0)
        if not len(trained):
            return xr.Dataset()
        places = {"early": trained[np.argmin(epochs[trained])], "late": trained[np.argmax(epochs[trained])]}
        mean_gi, mean_alpha = both_signs(gi, "gi"), both_signs(alpha, "alpha")

        def at(values: xr.DataArray, which: Any) -> xr.DataArray:
            return values.isel(encoder=which).drop_vars([c for c in values.coords if c != "image"], errors="ignore")

        late = places["late"]
        sides = [
            (at(mean_gi.mean("direction"), late), at(mean_gi.mean("direction"), places["early"])),
            (at(third(gi, mean_gi, True), late), at(third(gi, mean_gi, False), late)),
            (at(third(alpha, mean_alpha, True), late), at(third(alpha, mean_alpha, False), late)),
        ]
        initial = np.flatnonzero(epochs == 0)
        last = third(alpha, mean_alpha, True)
        other = at(last, initial[0]) if len(initial) else xr.full_like(at(last, late), np.nan)
        sides.append((at(last, late), other))
        found = [mann_whitney(a, b).assign(first=a.mean(), second=b.mean()) for a, b in sides]
        return xr.concat(found, xr.Variable("claim", np.array(list(CLAIMS), dtype=object)), coords="minimal")

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return a row for each claim."""
        headers = ["claim", "ours", "published", "p", "verdict"]
        rows = []
        for claim in map(str, ds["claim"].values if "claim" in ds.coords else ()):
            cell = ds.sel(claim=claim)
            first, second, p = (float(cell[name]) for name in ("first", "second", "p"))
            verdict = "inconclusive" if not p < ALPHA else "agrees" if first > second else "disagrees"
            rows.append([claim, f"{first:.3g}, {second:.3g}", CLAIMS[claim], f"{p:.2g}", verdict])
        return headers, rows
