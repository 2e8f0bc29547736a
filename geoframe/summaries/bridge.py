"""Does the response's peak scale η* tell how far the boundary is, beyond local geometry? (Ours: neither paper's.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.spec import count
from geoframe.statistics.compare import LEVEL
from geoframe.statistics.rank_correlation import (
    Pooled,
    between_clusters,
    permuted_spearman,
    pooled_spearman,
    reliability,
)
from geoframe.summaries import bridge_tables
from geoframe.summaries.bridge_values import EARLY, INIT, LATE, RANDOM, TRUE, Nodes, bridge_values
from geoframe.summary import Summary, described, stored_node

if TYPE_CHECKING:
    import xarray as xr

L2 = "raw-pixel L2"
QUESTION = "q25 | η_J"
PERMUTED = "q25, permuted"
RELATIONS: dict[str, tuple[str, tuple[str, ...]]] = {  # of η*, with a variable, given others
    "q25": ("q25", ()),
    QUESTION: ("q25", ("eta_j",)),
    "q25 | tr G, q₀, ‖x‖": ("q25", ("trace", "q0", "norm")),
    PERMUTED: ("q25", ()),
    "η_J": ("eta_j", ()),
    "b": ("b", ()),
    "tube": ("tube", ()),
}
PAIRS: dict[str, tuple[str, str]] = {  # what doesn't involve η*
    "q25 with η_J": ("q25", "eta_j"),
    "q25 with b": ("q25", "b"),
    "q25 with tube": ("q25", "tube"),
    "b with b_J": ("b", "b_j"),
}
STATES = (INIT, *(f"{labels} {state}" for labels in (TRUE, RANDOM) for state in (EARLY, LATE)))
HALF_SPACE = 1.4826  # a quarter of the signed rays has left a half-space by this times b√d
MEMORISED = 0.8  # train accuracy below which random labels are not memorised
SMALL = 0.2  # |ρ| that would be too small to matter

_RHO = {
    "": "pooled Spearman ρ",
    "_low": "lower end of the 95 % interval of ρ",
    "_high": "upper end of the 95 % interval of ρ",
    "_n": "number of images in the networks that count",
    "_networks": "number of networks that count",
    "_seeds": "number of seeds that those networks have",
}
_OF = {
    "rho": "of η* with a distance, in each network",
    "pair_rho": "of two distances, in each network",
    "between_rho": "of medians of η* and q25, between checkpoints",
}
VARIABLES = {
    **{f"{name}{end}": ("1", f"{text}: {what}") for name, what in _OF.items() for end, text in _RHO.items()},
    "peak_median": (L2, "median over images of η*"),
    "peaks": ("1", "images with a peak"),
    "at_end": ("1", "images whose response is about largest at the last scale: censored"),
    "absent": ("1", "images without a peak"),
    "kept_median": ("1", "median over images of the share of signed rays that hold the class at η*"),
    "peak_reliability": ("1", "reliability of η*, from halves of its directions"),
    "ceiling": ("1", "largest ρ of η* and q25 that their reliabilities allow"),
    "q25_median": (L2, "median over images of q25"),
    "q25_censored": ("1", "images whose q25 reaches the search's cap"),
    "q25_reliability": ("1", "reliability of q25, from halves of its directions"),
    "b_median": (L2, "median over images of b"),
    "b_missing": ("1", "images for which no attack changed the class"),
    "half_space": ("1", "median over images of q25 over that of a half-space at distance b"),
    "images": ("1", "images measured in all networks of the state"),
    "train_accuracy": ("1", "least share of correct classifications of training images"),
    "test_accuracy": ("1", "mean share of correct classifications of test images"),
}


@attrs.frozen(kw_only=True)
class BridgeSummary(Summary):
    """Correlations of η* with the boundary's distance, given local geometry too, by state of the networks.

    η* (place of the peak of m_η / η²), q25 (distance within which a quarter of isotropic signed rays have left the
    class), b (the best attack's distance), tube radius, and η_J (where random steps cross the linearised boundary) are
    compared image by image within each network; ρ is pooled over the networks of a state by Fisher's z.

    Rule (ours): η* tells more than local geometry where the interval of its partial ρ with q25, given η_J, excludes 0:
    "yes". "no" where the interval lies within ±0.2. Else, and with a single seed or labels that weren't memorised,
    "inconclusive".

    Attributes
    ----------
    probe, gi, local, boundary, tube : str
        Nodes of `ResponseProbe`, `IsotropicGIProbe`, `LocalGeometryProbe`, `BoundaryDistanceProbe` and `TubeProbe`; the
        last three may be absent from the results, and what is made of them is left out.
    probeset : str, optional
        Default: the first one.
    replicates, seed : int
        Bootstrap over seeds of the trainings and over images; permutations.
    note : str
        Appended to the caption.
    """

    probe: str = "response"
    gi: str = "isotropic-gi"
    local: str = attrs.field(default="local-geometry")
    boundary: str = "boundary-distance"
    tube: str = "tube"
    probeset: str | None = None
    replicates: int = count(1000)
    seed: int = 0
    note: str = ""

    def default_name(self) -> str:
        """Return "bridge"."""
        return "bridge"

    @property
    def nodes(self) -> Nodes:
        """The nodes by what they hold."""
        return Nodes(self.probe, self.gi, self.local, self.boundary, self.tube)

    @property
    def caption(self) -> str:
        """What is compared, and the rule."""
        return (
            "Spearman ρ [95 %] of η* and distances to the boundary over images, in each network, pooled (Fisher z); "
            "intervals draw seeds and images; η* and q25 share no directions. Peaks: images with one; n: those in "
            "networks with ten or more, which alone (and their seeds) count. Ceiling: √ of both reliabilities. η_J: "
            "distance to the linearised boundary times √d. Permuted: q25 moved between images of one predicted class "
            "[95 % of permutations]. Beyond η_J: yes where the interval given "
            f"η_J excludes 0, no where it lies within ±{SMALL}, else inconclusive; random labels count as memorised "
            "from 80 % fit on. A peak is 1.3 times the smallest rung, and not within 10 % of the last. "
            "q25, b: distances within which a quarter of random rays have left the class, and to the nearest class "
            "change that attacks find, medians (none found: images without; q25/half-space: over what it is for a "
            "half-space at b); kept: median share of rays that hold the class at η*. "
            f"{self.note}"
        ).strip()

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Correlate."""
        import xarray as xr

        values = bridge_values(tree, self.nodes, self.probeset)
        names = np.array(
            [f"{a} {b}".strip() for a, b in zip(values["labels"].values, values["state"].values, strict=True)]
        )
        known = [*(s for s in STATES if s in names), *(s for s in dict.fromkeys(names.tolist()) if s not in STATES)]
        parts = [self._state(values.isel(encoder=np.flatnonzero(names == state))) for state in known]
        ds = xr.concat(parts, xr.Variable("state", np.array(known, dtype=object)))
        ds = ds.merge(self._between(values))
        for name in ("train_accuracy", "test_accuracy"):
            ds[name] = ("state", _accuracies(tree, values["encoder"].values, names, known, name))
        verdicts = [
            [verdict(ds.sel(state=state, output=output), state) for output in ds["output"].values] for state in known
        ]
        ds = ds.assign_coords(verdict=(("state", "output"), np.array(verdicts, dtype=object)))
        return described(ds, VARIABLES).assign_attrs(level=LEVEL)

    def _state(self, one: xr.Dataset) -> xr.Dataset:
        """What is known of the networks of one state."""
        import xarray as xr

        outputs = [str(v) for v in one["output"].values]
        seeds = one["seed"].values.tolist()
        grid = [[self._related(one.sel(output=o), name, seeds) for name in RELATIONS] for o in outputs]
        pairs = [self._pooled(one, *pair, (), seeds) for pair in PAIRS.values()]
        ds = xr.Dataset(
            {
                **{f"rho{end}": (("output", "relation"), v) for end, v in _fields(grid).items()},
                **{f"pair_rho{end}": ("pair", v[0]) for end, v in _fields([pairs]).items()},
            },
            {"output": outputs, "relation": [*RELATIONS], "pair": [*PAIRS]},
        )
        return ds.assign(_sizes(one)).assign(_peak_sizes(one))

    def _related(self, one: xr.Dataset, name: str, seeds: Sequence[int]) -> Pooled:
        other, given = RELATIONS[name]
        if name == PERMUTED:
            x, y = one["peak"].values, one[other].values
            return permuted_spearman(x, y, one["predicted"].values, replicates=self.replicates // 2, seed=self.seed)
        return self._pooled(one, "peak", other, given, seeds)

    def _pooled(self, one: xr.Dataset, x: str, y: str, given: Sequence[str], seeds: Sequence[int]) -> Pooled:
        if any(name not in one for name in (x, y, *given)):
            return Pooled(np.nan, np.nan, np.nan, 0, 0, 0)
        controls = [one[name].values for name in given]
        return pooled_spearman(
            one[x].values, one[y].values, controls, seeds, replicates=self.replicates, seed=self.seed
        )

    def _between(self, values: xr.Dataset) -> xr.Dataset:
        """Medians of η* and of q25 across checkpoints: of networks, whatever their images do."""
        import xarray as xr

        peak, q25 = values["peak"].median("image"), values["q25"].median("image")
        seeds = values["seed"].values.tolist()
        found = [
            between_clusters(peak.sel(output=o).values, q25.values, seeds, replicates=self.replicates, seed=self.seed)
            for o in values["output"].values
        ]
        return xr.Dataset({f"between_rho{end}": ("output", v[0]) for end, v in _fields([found]).items()})

    def rows(self, ds: xr.Dataset) -> tuple[list[str], list[list[str]]]:
        """Return the first table: η* with q25, and given η_J."""
        return bridge_tables.question(ds)

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the question, controls, other distances, sizes, networks, and between checkpoints."""
        return bridge_tables.tables(self.label, ds)


def verdict(cell: xr.Dataset, state: str) -> str:
    """Say by the rule of `BridgeSummary` whether η* tells more than local geometry; of one state and output."""
    low, high, seeds = (float(cell[f"rho{end}"].sel(relation=QUESTION)) for end in ("_low", "_high", "_seeds"))
    if not np.isfinite([low, high]).all():
        return "inconclusive: few peaks"
    if seeds < 2:
        return "inconclusive: one seed"
    accuracy = float(cell["train_accuracy"])
    if state == f"{RANDOM} {LATE}" and accuracy < MEMORISED:
        return f"inconclusive: fit {100 * accuracy:.0f} %"
    if low > 0 or high < 0:
        return "yes" if low > 0 else "yes, inversely"
    return "no" if low > -SMALL and high < SMALL else "inconclusive"


def _fields(grid: Sequence[Sequence[Pooled]]) -> dict[str, Any]:
    """Arrays of what pooled correlations hold, by the end of the variable's name."""
    ends = {"": "rho", "_low": "low", "_high": "high", "_n": "n", "_networks": "networks", "_seeds": "clusters"}
    return {end: np.array([[getattr(p, name) for p in row] for row in grid]) for end, name in ends.items()}


def _sizes(one: xr.Dataset) -> dict[str, Any]:
    """Typical q25 and b of a state's networks, and how reliable and how often censored q25 is."""
    every = ("encoder", "image")
    there = one["q25"].notnull()
    found: dict[str, Any] = {
        "images": int(there.sum()),
        "q25_median": one["q25"].median(),
        "q25_censored": int((one["q25_censored"] & there).sum()),
        "q25_reliability": reliability(*(one["q25_half"].sel(half=h).values for h in one["half"].values)),
        "b_median": np.nan,
        "b_missing": np.nan,
        "half_space": np.nan,
    }
    if "b" in one:
        found |= {"b_median": one["b"].median(every), "b_missing": int((one["b"].isnull() & there).sum())}
    if "b" in one and "b_j" in one:
        root = one["eta_j"] / one["b_j"].where(one["b_j"] > 0)
        found["half_space"] = (one["q25"] / (HALF_SPACE * one["b"].where(one["b"] > 0) * root)).median(every)
    return found


def _peak_sizes(one: xr.Dataset) -> dict[str, Any]:
    """Typical η* by output, how many images have one, and how reliable it is."""
    every = ("encoder", "image")
    peaks, end = one["peak"].notnull(), one["at_end"]
    reliable = [
        reliability(*(one["peak_half"].sel(half=h, output=o).values for h in one["half"].values))
        for o in one["output"].values
    ]
    q25 = reliability(*(one["q25_half"].sel(half=h).values for h in one["half"].values))
    return {
        "peak_median": one["peak"].median(every),
        "peaks": peaks.sum(every),
        "at_end": end.sum(every),
        "absent": (one["valid"] & ~peaks & ~end).sum(every),
        "kept_median": one["kept"].median(every),
        "peak_reliability": ("output", reliable),
        "ceiling": ("output", np.sqrt(np.array(reliable) * q25)),
    }


def _accuracies(tree: xr.DataTree, encoders: Any, names: Any, known: Sequence[str], name: str) -> list[float]:
    """Least (of training images) or mean accuracy of each state's networks; NaN where it isn't known."""
    if "training" not in tree.children:
        return [np.nan] * len(known)
    node = stored_node(tree, "training")
    values = node[name].sel(encoder=encoders).values
    take = np.nanmin if name == "train_accuracy" else np.nanmean
    mine = [values[names == state] for state in known]
    return [float(take(v)) if np.isfinite(v).any() else np.nan for v in mine]
