"""Spearman's ρ, partial too, pooled over networks, with a bootstrap over clusters and images (array layer)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoframe.errors import BadInput
from geoframe.statistics.compare import FEWEST, LEVEL

Array = NDArray[np.float64]
DEGENERATE = 1e-9  # share of a rank's variance that must be left beside the controls
LARGEST_RHO = 1 - 1e-9  # Fisher's z of 1 is infinite
FIELLER = 1.06  # variance of z of a Spearman ρ is about 1.06 / (n − 3 − controls) (Fieller, Hartley, Pearson 1957)
MISSING = 0.05  # share of replicates without a value from which no interval is given


@attrs.frozen
class Pooled:
    """A pooled correlation.

    Attributes
    ----------
    rho, low, high : float
        Pooled ρ and its 95 % interval; NaN where nothing can be said.
    n : int
        Images in all networks that count.
    networks, clusters : int
        How many count, and in how many clusters they are.
    """

    rho: float
    low: float
    high: float
    n: int
    networks: int
    clusters: int


def partial_spearman(x: ArrayLike, y: ArrayLike, *controls: ArrayLike) -> tuple[float, int]:
    """Spearman's ρ of two samples given others: the partial correlation of their ranks.

    Parameters
    ----------
    x, y, *controls : array_like, shape (n,)
        Paired; a pair with a NaN or infinite value anywhere is left out. Ties have mean ranks.

    Returns
    -------
    rho : float
        NaN below `len(controls) + 3` pairs, and where x or y has no spread, or none that the controls leave.
    n : int
        Pairs used.

    Examples
    --------
    >>> partial_spearman([1, 2, 3, 4], [1, 4, 9, 16])
    (1.0, 4)
    >>> round(partial_spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [1, 2, 3, 5, 4])[0], 3)  # (.8 − .9 · .6) / …
    0.746
    """
    columns = [np.asarray(v, dtype=np.float64) for v in (x, y, *controls)]
    if any(v.ndim != 1 or v.shape != columns[0].shape for v in columns):
        raise BadInput(f"a rank correlation needs samples of one length, not {[v.shape for v in columns]}")
    rho, n = rank_correlations(np.stack(columns)[:, None])
    return float(rho[0]), int(n[0])


def rank_correlations(samples: Array) -> tuple[Array, Array]:
    """Partial Spearman ρ of many samples at once.

    Parameters
    ----------
    samples : array, shape (2 + controls, replicate, n)
        x, y and the controls of each replicate; pairs with a value that isn't finite are left out.

    Returns
    -------
    rho, n : array, shape (replicate,)
    """
    from scipy import stats

    good = np.isfinite(samples).all(axis=0)
    count = good.sum(axis=-1)
    ranks = stats.rankdata(np.where(good, samples, np.inf), axis=-1)  # what is left out ranks behind
    mean = np.where(good, ranks, 0).sum(axis=-1, keepdims=True) / np.maximum(count, 1)[..., None]
    centred = np.where(good, ranks - mean, 0)
    spread = np.sqrt((centred**2).sum(axis=-1, keepdims=True))
    unit = centred / np.where(spread > 0, spread, 1)
    correlation = np.einsum("irn,jrn->rij", unit, unit)
    left = correlation[:, :2, :2]
    if len(samples) > 2:
        across = correlation[:, :2, 2:]
        left = left - across @ np.linalg.pinv(correlation[:, 2:, 2:], hermitian=True) @ across.transpose(0, 2, 1)
    variance = left[:, [0, 1], [0, 1]]
    known = (variance > DEGENERATE).all(axis=1) & (count >= len(samples) + 1)
    scale = np.sqrt(np.where(known[:, None], variance, 1).prod(axis=1))
    return np.where(known, np.clip(left[:, 0, 1] / scale, -1, 1), np.nan), count


def fisher_pooled(rho: ArrayLike, n: ArrayLike, controls: int = 0) -> tuple[float, float, float]:
    """Pool correlations of independent samples by Fisher's z, weighted by n − 3 − controls.

    Parameters
    ----------
    rho, n : array_like, shape (sample,)
        Correlations and numbers of pairs; NaN, and samples with no weight, don't count.
    controls : int
        Variables that the correlations are given.

    Returns
    -------
    rho, low, high : float
        With the 95 % interval of z's normal approximation for Spearman's ρ; NaN where nothing counts.

    Examples
    --------
    >>> [round(v, 3) for v in fisher_pooled([0.5, 0.5], [53, 53])]
    [0.5, 0.334, 0.636]
    """
    from scipy import stats

    rho, weight = np.asarray(rho, dtype=np.float64), np.asarray(n, dtype=np.float64) - 3 - controls
    counts = np.isfinite(rho) & (weight > 0)
    if not counts.any():
        return np.nan, np.nan, np.nan
    mean = float(_pooled_z(rho[:, None], np.where(counts, weight, 0)[:, None])[0])
    half = stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(FIELLER / weight[counts].sum())
    low, middle, high = np.tanh([mean - half, mean, mean + half])
    return float(middle), float(low), float(high)


def pooled_spearman(
    x: ArrayLike,
    y: ArrayLike,
    controls: Sequence[ArrayLike] = (),
    clusters: Sequence[object] | None = None,
    *,
    replicates: int = 1000,
    seed: int = 0,
) -> Pooled:
    """(Partial) Spearman ρ within each network, pooled by Fisher's z, with a cluster bootstrap.

    Each replicate draws clusters with replacement, and images: the same ones for all networks, which saw the same
    images. Percentile interval. With one cluster it says how images vary, not how networks do.

    Parameters
    ----------
    x, y, controls : array_like, shape (network, image)
        NaN where a network has no value for an image. Networks with fewer than ten complete images don't count.
    clusters : sequence, optional
        Cluster of each network: the seed of its training, say. Default: each is its own.
    replicates, seed : int
        Without replicates there is no interval.
    """
    samples = np.stack([np.asarray(v, dtype=np.float64) for v in (x, y, *controls)])
    names = list(range(samples.shape[1])) if clusters is None else list(clusters)
    rho, n = rank_correlations(samples)
    counts = np.isfinite(rho) & (n >= FEWEST)
    value = fisher_pooled(rho[counts], n[counts], len(controls))[0]
    used = [names[i] for i in np.flatnonzero(counts)]
    known = sorted(set(used), key=used.index)
    low = high = np.nan
    if used and replicates:
        member = np.array([known.index(name) for name in used])
        low, high = _interval(samples[:, counts], member, len(controls), replicates, seed)
    return Pooled(value, low, high, int(n[counts].sum()), len(used), len(known))


def _interval(
    samples: Array, member: NDArray[np.int64], controls: int, replicates: int, seed: int
) -> tuple[float, ...]:
    """Percentile interval of the pooled ρ of networks (variable, network, image) in clusters."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, samples.shape[2], (replicates, samples.shape[2]))
    clusters = int(member.max()) + 1
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=replicates)
    found = [rank_correlations(samples[:, network][:, image]) for network in range(samples.shape[1])]
    rho, n = (np.stack(parts) for parts in zip(*found, strict=True))
    weight = np.where(np.isfinite(rho), np.maximum(n - 3 - controls, 0) * drawn.T[member], 0)
    return percentiles(np.tanh(_pooled_z(rho, weight)))


def between_clusters(
    x: ArrayLike, y: ArrayLike, clusters: Sequence[object], *, replicates: int = 1000, seed: int = 0
) -> Pooled:
    """Spearman ρ of one pair of values a network, with a bootstrap that draws whole clusters of networks.

    Parameters
    ----------
    x, y : array_like, shape (network,)
        A network's median, say; NaN where it has none.
    clusters : sequence
        Cluster of each network.
    replicates, seed : int

    Returns
    -------
    Pooled
        `n` is the number of networks; no interval with one cluster.
    """
    pair = np.stack([np.asarray(v, dtype=np.float64) for v in (x, y)])
    good = np.flatnonzero(np.isfinite(pair).all(axis=0))
    used = [clusters[int(k)] for k in good]
    rho, n = partial_spearman(*pair)
    known = sorted(set(used), key=used.index)
    low = high = np.nan
    if len(known) > 1 and np.isfinite(rho):
        rng = np.random.default_rng(seed)
        places = [np.flatnonzero([name == mine for name in used]) for mine in known]
        drawn = [
            np.concatenate([places[k] for k in row]) for row in rng.integers(0, len(known), (replicates, len(known)))
        ]
        low, high = percentiles(np.array([partial_spearman(*pair[:, good][:, row])[0] for row in drawn]))
    return Pooled(rho, low, high, n, n, len(known))


def percentiles(values: Array) -> tuple[float, float]:
    """95 % interval of replicates; NaN where more than a twentieth have no value."""
    good = values[np.isfinite(values)]
    if not len(good) or len(good) < (1 - MISSING) * len(values):
        return np.nan, np.nan
    low, high = np.quantile(good, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _pooled_z(rho: Array, weight: Array) -> Array:
    """Weighted mean of Fisher's z over the first axis; NaN where nothing has weight."""
    z = np.arctanh(np.clip(np.where(weight > 0, rho, 0), -LARGEST_RHO, LARGEST_RHO))
    total = weight.sum(axis=0)
    return np.asarray(np.where(total > 0, (z * weight).sum(axis=0) / np.where(total > 0, total, 1), np.nan))


def reliability(first: ArrayLike, second: ArrayLike) -> float:
    """Reliability of a whole measurement from its two halves, (network, image) each: Spearman–Brown, 2ρ / (1 + ρ).

    ρ is within networks, pooled; NaN where the halves don't agree at all.
    """
    half = pooled_spearman(first, second, replicates=0).rho
    return 2 * half / (1 + half) if half > 0 else np.nan


def permuted_within(y: Array, groups: NDArray[np.int64], replicates: int, rng: np.random.Generator) -> Array:
    """Permute a sample within groups: (n,) to (replicate, n)."""
    out = np.broadcast_to(y, (replicates, len(y))).copy()
    for group in np.unique(groups):
        places = np.flatnonzero(groups == group)
        out[:, places] = rng.permuted(out[:, places], axis=1)
    return out


def permuted_spearman(x: ArrayLike, y: ArrayLike, groups: ArrayLike, *, replicates: int = 500, seed: int = 0) -> Pooled:
    """Pooled ρ that is left when images are permuted within groups: what the group alone explains.

    Parameters
    ----------
    x, y, groups : array_like, shape (network, image)
        Group, whole numbers: the class predicted, say.
    replicates, seed : int

    Returns
    -------
    Pooled
        Mean over permutations, and the interval that holds 95 % of them.
    """
    x, y = (np.asarray(v, dtype=np.float64) for v in (x, y))
    label, rng = np.asarray(groups), np.random.default_rng(seed)
    rhos, counts = [], []
    for network in range(len(x)):
        good = np.isfinite(x[network]) & np.isfinite(y[network])
        if good.sum() < FEWEST:
            continue
        moved = permuted_within(y[network, good], label[network, good], replicates, rng)
        rho, n = rank_correlations(np.stack([np.broadcast_to(x[network, good], moved.shape), moved]))
        if np.isfinite(rho).all():
            rhos.append(rho)
            counts.append(n)
    if not rhos or not replicates:
        return Pooled(np.nan, np.nan, np.nan, 0, 0, 0)
    pooled = np.tanh(_pooled_z(np.stack(rhos), np.stack(counts) - 3.0))
    total = int(sum(n[0] for n in counts))
    return Pooled(float(pooled.mean()), *percentiles(pooled), total, len(rhos), len(rhos))
