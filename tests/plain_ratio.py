"""The paper's protocol for r_η (A.2), written plainly and slowly, in float64: one direction at a time, J in full."""

from __future__ import annotations

import math

import torch


def plain_ratio(
    phi: torch.nn.Module, x: torch.Tensor, base: list[torch.Tensor], scales: list[float], jvps: int
) -> tuple[list[float], list[float]]:
    """r_η and its standard error; `base` are the Gaussian unit vectors, x one image, phi takes raw pixels."""
    jacobian = torch.autograd.functional.jacobian(lambda flat: phi(flat.view(1, *x.shape))[0], x.flatten())
    predicted = [float((jacobian @ u.flatten()).square().sum()) for u in base[:jvps]]
    mean_predicted = sum(predicted) / jvps
    start = phi(x[None])[0]
    ratios, errors = [], []
    for scale in scales:
        pairs = []
        for u in base:
            ahead = float((phi((x + scale * u)[None])[0] - start).square().sum())
            behind = float((phi((x - scale * u)[None])[0] - start).square().sum())
            pairs.append((ahead + behind) / 2 / scale**2)
        ratio = sum(pairs) / len(pairs) / mean_predicted
        ratios.append(ratio)
        errors.append(_error(pairs, predicted, ratio, mean_predicted))
    return ratios, errors


def _variance(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / (len(values) - 1)


def _error(pairs: list[float], predicted: list[float], ratio: float, mean_predicted: float) -> float:
    n, m = len(pairs), len(predicted)
    rest = _variance([pair - ratio * p for pair, p in zip(pairs, predicted, strict=False)])
    variance = rest / n + (1 / m - 1 / n) * ratio**2 * _variance(predicted)
    return math.sqrt(variance) / mean_predicted
