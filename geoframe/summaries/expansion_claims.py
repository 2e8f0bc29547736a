"""§5.1.1's claims on generalization intervals over training (Neural Expansion, fig. 1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from geoframe.statistics.compare import LEVEL, mean_interval, pearson
from geoframe.statistics.runs import Run, accuracies, batch_norm, family, probe_fields, recipe, runs
from geoframe.summaries.claim_table import REPORTED, Claim, Claims, by_interval, unclear
from geoframe.summaries.expansion import KINDS, MEASURES, by_image
from geoframe.summaries.tables import number
from geoframe.summary import stored_node

if TYPE_CHECKING:
    import xarray as xr

R = "0.99"
FISHER = 4  # pairs that Fisher's z needs
RUNS = 3  # that a verdict rests on, at least
SETTINGS = ("batch norm", "optimiser", "lr", "batch", "epochs", "cap", "search", "layer", "RSV", "random")
DIRECTIONS = "RSV against random directions"


@attrs.frozen(kw_only=True, slots=False, eq=False)
class ExpansionClaims(Claims):
    """Does GI grow with test accuracy, and more along singular vectors than along random directions?

    Correlations are over the checkpoints of one run, with and without its initial weights, since these decide the sign:
    with batch normalisation an untrained network can have longer intervals than a trained one. So does the learning
    rate: where one epoch brings nearly all of the accuracy, what follows is sharpening, which shortens intervals.
    Differences between directions are paired over images.

    Rule (ours): the published sign is compared. Agrees where the 95 % interval lies above 0, disagrees where it lies
    below, else inconclusive. The published r = 0.99 stands beside ours and decides nothing. The checkpoints of a run
    follow one another, so that two unrelated courses often correlate: a verdict rests on the runs (seeds), by Student's
    interval of their Fisher-transformed r; that of a single run is reported with Fisher's interval.

    Attributes
    ----------
    gi, random : str
        Nodes of the probes along singular vectors and along random directions.
    """

    gi: str = "gi"
    random: str = "gi-random"

    @property
    def needs_node(self) -> str:
        """Node that must be in the tree."""
        return self.random

    @property
    def caption(self) -> str:
        """The rule."""
        return (
            "r: Pearson, over the n checkpoints of a run, of the mean GI or the share of GI > 1 against test accuracy, "
            "with and without the initial weights (epoch 0), reported with Fisher's interval, as if checkpoints were "
            "independent, which they aren't; over n runs: mean of Fisher's z with Student's interval, the verdict. "
            "RSV > random: mean over n images of GI along singular vectors minus that along random directions, in "
            "diagonals of the input box (scale of the probes), bootstrap over images, none below 10; grows: last epoch "
            "minus the named one. Published: Neural Expansion, §5.1.1, an MLP on MNIST, r from 0.994 to 0.998 over 3 "
            "runs; its cap and batch size, which of A.3's learning rates, and whether initial weights count, aren't "
            "given. Verdicts compare the sign: agrees: interval above 0; disagrees: below; else inconclusive."
        )

    def claims(self, tree: xr.DataTree) -> Sequence[Claim]:
        """Return the claims on each run and probe set, claim by claim."""
        table = by_image(tree, self.gi, self.random)
        accuracy = accuracies(tree, table["encoder"])
        found: list[Claim] = []
        for name in map(str, table["probeset"].values):
            one = table.sel(probeset=name)
            several = f" on {name}" if table.sizes["probeset"] > 1 else ""
            alike: dict[str, list[Claim]] = {}
            for run in runs(table):
                cells = one.sel(encoder=list(run.encoders))
                if len(run.trained) > 1 and bool(cells["gi"].notnull().any()):
                    measured = (f"{run.name}{several}", run, cells)
                    of_run = [*_correlations(*measured, accuracy)]
                    found += [*of_run, *_differences(*measured)]
                    alike.setdefault(f"{family(table, run.name)}{several}", []).extend(of_run)
            found += [claim for network, claims in alike.items() for claim in _over_runs(network, claims)]
        order = {claim: place for place, claim in enumerate(dict.fromkeys(claim.claim for claim in found))}
        return sorted(found, key=lambda claim: order[claim.claim])

    def compute(self, tree: xr.DataTree) -> xr.Dataset:
        """Return the claims, and the settings behind them as an attribute."""
        table = by_image(tree, self.gi, self.random)
        last = [run.name for run in runs(table) if len(run.trained) > 1]
        rows = dict.fromkeys(tuple(_settings(tree, self.gi, self.random, name)) for name in last)
        return super().compute(tree).assign_attrs(settings=json.dumps([*rows], ensure_ascii=False))

    def tables(self, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
        """Return the settings that decide the signs, a table a measure, and one of differences between directions."""
        headers, rows = self.rows(ds)
        if "value" not in ds:
            return [(self.label, headers, rows)]
        topics: dict[str, list[list[str]]] = {}
        for row in rows:
            topic = next((text for text in MEASURES.values() if row[1].startswith(f"r: {text}")), DIRECTIONS)
            topics.setdefault(topic, []).append(row)
        settings = (f"{self.label}, settings that decide", [*SETTINGS], json.loads(ds.attrs["settings"]))
        return [settings, *((f"{self.label}, {topic}", headers, found) for topic, found in topics.items())]


def _correlations(subject: str, run: Run, cells: xr.Dataset, accuracy: xr.DataArray) -> Iterator[Claim]:
    """Correlations of both measures with test accuracy, along both kinds of directions, with and without the start."""
    samples = {len(names): names for names in (run.encoders, run.trained)}  # one where there are no initial weights
    for measure, text in MEASURES.items():
        for kind, directions in KINDS.items():
            for names in samples.values():
                at = cells[measure].sel(kind=kind, encoder=list(names)).mean("image")
                ends = pearson(at, accuracy.sel(encoder=list(names)), "encoder")
                n = int((at.notnull() & accuracy.sel(encoder=list(names)).notnull()).sum())
                span = "{:g}–{:g}".format(*(run.epochs[run.encoders.index(name)] for name in (names[0], names[-1])))
                r, p, low, high = (float(ends[name]) for name in ("r", "p", "low", "high"))
                yield Claim(
                    subject=subject,
                    claim=f"r: {text}, {directions}, epochs {span}",
                    published=R,
                    value=r,
                    low=low,
                    high=high,
                    p=p,
                    n=n,
                    verdict=_known(r, n),
                )


def _known(r: float, n: int) -> str:
    """Say that the correlation of one run is reported, or why there is none."""
    if n < FISHER:
        return unclear("no test accuracy" if not n else f"{n} checkpoints")
    return REPORTED if np.isfinite(r) else unclear("no spread")


def _over_runs(network: str, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Verdicts on the correlations of one network's runs, claim by claim."""
    from scipy import stats

    for text in dict.fromkeys(claim.claim for claim in claims):
        r = np.array([one.value for one in claims if one.claim == text and one.verdict == REPORTED])
        pooled = Claim(subject=f"{network}, all runs", claim=text, published=R, n=len(r))
        if len(r) < RUNS:
            yield attrs.evolve(pooled, verdict=unclear(f"{len(r)} runs" if len(r) != 1 else "1 run"))
            continue
        with np.errstate(all="ignore"):  # r of exactly 1, of two points say, has no z
            z = np.arctanh(r)
            error = z.std(ddof=1) / np.sqrt(len(z)) if np.ptp(z) else np.nan  # equal runs are no certainty
            p = 2 * stats.t.sf(abs(z.mean()) / error, len(z) - 1)
        half = error * stats.t.ppf((1 + LEVEL) / 2, len(z) - 1)
        low, high = float(np.tanh(z.mean() - half)), float(np.tanh(z.mean() + half))
        verdict = by_interval(low, high) if np.isfinite([low, high]).all() else unclear("no spread")
        yield attrs.evolve(pooled, value=float(np.tanh(z.mean())), low=low, high=high, p=float(p), verdict=verdict)


def _differences(subject: str, run: Run, cells: xr.Dataset) -> Iterator[Claim]:
    """GI along singular vectors minus GI along random directions: at the end, and how much more it has grown."""
    units = "diag." if str(cells["gi"].attrs["units"]).startswith("diagonal") else str(cells["gi"].attrs["units"])
    gap = cells["gi"].sel(kind="rsv") - cells["gi"].sel(kind="random")
    end = gap.sel(encoder=run.name)
    yield _difference(subject, "RSV > random at the end", "larger", end, units)
    starts = (run.encoders[0], run.trained[0], run.trained[(len(run.trained) - 1) // 2])
    for name in dict.fromkeys(starts):
        claim = f"RSV grows more, from epoch {run.epochs[run.encoders.index(name)]:g}"
        yield _difference(subject, claim, "faster", end - gap.sel(encoder=name), units)


def _difference(subject: str, claim: str, published: str, values: xr.DataArray, units: str) -> Claim:
    ends = mean_interval(values)
    value, low, high, n = (float(ends[name]) for name in ("mean", "low", "high", "n"))
    known = np.isfinite([low, high]).all()
    return Claim(
        subject=subject,
        claim=claim,
        published=published,
        value=value,
        low=low,
        high=high,
        n=int(n),
        units=units,
        verdict=by_interval(low, high) if known else unclear("too few images"),
    )


def _settings(tree: xr.DataTree, rsv: str, random: str, encoder: str) -> list[str]:
    """What decides the signs, of the run that ends with an encoder; "?" where provenance doesn't say."""
    node = stored_node(tree, rsv)
    fields, probe = recipe(node, encoder), probe_fields(node)
    others = probe_fields(stored_node(tree, random))
    search = str(probe.get("search", "?"))
    if search == "grid":
        search = f"steps of {number(probe.get('step', np.nan))}"
    counts = [_count(probe.get("n_directions", "?"), "basis"), _count(others.get("n_directions", "?"), "100")]
    names = ("optimiser", "lr", "batch", "epochs")
    texts: list[Any] = [*(fields.get(name, "?") for name in names), probe.get("cap", "?")]
    return [batch_norm(fields), *map(_text, texts), search, str(probe.get("layer", "post")), *counts]


def _count(n: Any, default: str) -> str:
    return default if n is None else str(n)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
