"""Intervals of adaptive estimates hold the truth as often as they say, stopping rule and all: 2,000 a scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.geometry.adaptive import AdaptiveEstimate, AdaptiveSampler
from geoframe.geometry.response import Displacements, pair_responses
from geoframe.geometry.trace import _sketch
from geoframe.models.cifar import resnet20
from tests.adaptive import grey, sample
from tests.networks import SIZE, Square, relu_net

INTERVALS = 2000
WIDE = 0.995  # where the pilot is enough, intervals are wider than they need be, and cost nothing
SMALL = (3, 8, 8)


def brute_force(net: torch.nn.Module, x: torch.Tensor, scales: list[float], pairs: int) -> tuple[np.ndarray, float]:
    """The ratio from many directions, with the prediction as a control variate; and its largest relative error."""
    size, generator = x[0].numel(), torch.Generator().manual_seed(5)
    jacobian = torch.autograd.functional.jacobian(net, x).reshape(-1, size)
    mean, controls, responses = float(jacobian.square().sum()) / size, [], []
    moves = Displacements(net, x)
    with torch.no_grad():
        for _ in range(pairs // 10_000):
            u = torch.randn(10_000, *x.shape[1:], generator=generator, dtype=torch.float64)
            u /= u.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
            responses.append(pair_responses(moves, lambda i, j, u=u: u[i:j], len(u), scales, block=500)[0].numpy())
            controls.append((u.flatten(1) @ jacobian.T).square().sum(1).numpy())
    response, control = np.concatenate(responses), np.concatenate(controls)
    slope = [np.cov(control, response[:, k])[0, 1] / control.var() for k in range(len(scales))]
    left = response - np.outer(control - mean, slope)
    return left.mean(0) / mean, float((left.std(0) / np.sqrt(len(left)) / left.mean(0)).max())


def trained_resnet() -> torch.nn.Module:
    """A narrow ResNet-20 after 120 steps on small crops of photographs: features, in eval mode."""
    crops = gf.PhotoCrops(split="train", n=480).load(SMALL)
    labels = torch.tensor(crops.labels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = resnet20(classes=6, width=0.5).train()
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(120):
            chosen = torch.randint(len(labels), (32,))
            loss = torch.nn.functional.cross_entropy(net(crops.pixels[chosen] * 4 - 2), labels[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    head = [module for module in net.modules() if isinstance(module, torch.nn.Linear)][-1]
    head.weight.data, head.bias.data = torch.eye(head.in_features), torch.zeros(head.in_features)
    return net.eval().double()


def coverage(run: Callable[[int], AdaptiveEstimate], want: np.ndarray) -> np.ndarray:
    """Share of the intervals that hold the truth, by scale."""
    found = [run(seed) for seed in range(INTERVALS)]
    return np.asarray(np.mean([np.abs(one.ratio - want) < 1.96 * one.ratio_se for one in found], 0))


def one_feature(
    slope: float, energy: Callable[[torch.Tensor], torch.Tensor], scales: list[float], target: float, seed: int
) -> AdaptiveEstimate:
    """The sampler on one feature of one coordinate, of this derivative; `energy` is that of both antipodes' mean.

    Its directions are drawn at once, and its responses come from the formula.
    """
    u = torch.randn(4096, SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    u /= u.norm(dim=1, keepdim=True)
    axis = torch.full((SIZE,), SIZE**-0.5, dtype=torch.float64)
    etas = torch.tensor(scales, dtype=torch.float64)

    def respond(u: torch.Tensor, chosen: list[int]) -> torch.Tensor:
        return energy((u @ axis).unsqueeze(1) * etas[chosen]) / etas[chosen].square()

    sketch = _sketch(None, (slope * axis).unsqueeze(0))
    return AdaptiveSampler(respond, torch.Tensor.clone, lambda i, j: u[i:j], sketch, len(scales), len(u)).run(target)


def squared_projection(scales: list[float], target: float, seed: int) -> AdaptiveEstimate:
    """Of `Square`: (2pηs)² + (η²s²)²."""
    slope = SIZE**0.5
    return one_feature(slope, lambda s: (slope * s).square() + s.square().square(), scales, target, seed)


def sine_energy(moved: torch.Tensor) -> torch.Tensor:
    """Of sin(4s + 1/2)."""
    start = np.sin(0.5)
    return ((torch.sin(0.5 + 4 * moved) - start).square() + (torch.sin(0.5 - 4 * moved) - start).square()) / 2


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.02, 0.05])
def test_a_relu_network(target: float) -> None:
    net, scales = relu_net().double(), [0.1, 1.0, 3.0, 10.0]
    want = brute_force(net, grey(), scales, 400_000)[0]
    share = coverage(lambda seed: sample(net, scales, target, seed=seed, rows=65), want)
    print("relu", target, share)
    assert (share >= 0.92).all()
    assert (share <= WIDE).all()


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.02, 0.05])
def test_a_squared_projection(target: float) -> None:
    """It has the heaviest tail there is."""
    scales = [1.0, 10.0, 30.0, 100.0]
    network, formula = sample(Square(), scales, 0.3), squared_projection(scales, 0.3, 0)
    np.testing.assert_allclose(formula.prediction, network.prediction, rtol=1e-12)
    want = 1 + 3 * np.square(scales) / (4 * 0.25 * SIZE * (SIZE + 2))
    share = coverage(lambda seed: squared_projection(scales, target, seed), want)
    print("square", target, share)
    assert (share >= 0.92).all()
    assert (share[1:] <= WIDE).all(), "the control leaves nothing but the ridge's part at the first: wide there"


@pytest.mark.slow
@pytest.mark.parametrize("scales", [[0.25, 0.5, 1.0, 2.0], [1.5]])
@pytest.mark.parametrize("target", [0.02, 0.05, 0.1])
def test_a_sine(target: float, scales: list[float]) -> None:
    """One feature that saturates: what the control leaves has its tail where few directions go."""
    slope, s = 4 * np.cos(0.5), torch.linspace(-1, 1, 20_001, dtype=torch.float64)
    density = (1 - s.square()).pow((SIZE - 3) / 2)
    means = [float((sine_energy(eta * s) * density).sum() / density.sum()) / eta**2 for eta in scales]
    share = coverage(
        lambda seed: one_feature(slope, sine_energy, scales, target, seed), np.array(means) / (slope**2 / SIZE)
    )
    print("sine", target, scales, share)
    assert (share >= 0.93).all()
    assert (share <= WIDE).all()


@pytest.fixture(scope="module")
def residual() -> tuple[torch.nn.Module, torch.Tensor, list[float], np.ndarray]:
    """A trained network, an image, scales, and the ratios there."""
    pytest.importorskip("skimage", reason="photos come with scikit-image")
    net, scales = trained_resnet(), [0.05, 0.5, 2.0, 8.0]
    x = gf.PhotoCrops(n=1).load(SMALL).pixels.double() * 4 - 2
    want, error = brute_force(net, x, scales, 40_000)
    assert error < 2e-3
    return net, x, scales, want


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.03, 0.06])
def test_a_trained_residual_network(residual, target: float) -> None:
    net, x, scales, want = residual
    share = coverage(lambda seed: sample(net, scales, target, seed=seed, x=x, rows=65), want)
    print("resnet", target, want.round(3), share)
    assert (share >= 0.92).all()
    assert (share <= WIDE).all()
