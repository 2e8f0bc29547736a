"""Time and memory of RatioProbe against what a researcher would write, on the same images, in one run.

    python -m tests.benchmarks.ratio [--directions 64] [--images 1] [--rounds 3]

Prints a table of wall time, forward passes a second and their ratio; the two take turns, since machines are noisy.
"""

from __future__ import annotations

import time
import warnings

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.attention import SDPBackend, sdpa_kernel

import geoframe as gf
from geoframe.geometry.directions import unit_directions

ENCODERS = {
    "efficientnet_lite0": gf.EfficientNetLite0(),
    "resnet18": gf.TorchvisionEncoder("resnet18", weights=None),
    "vit_tiny": gf.TimmEncoder("vit_tiny_patch16_224", pretrained=False),
}


def plain(phi: torch.nn.Module, x: torch.Tensor, u: torch.Tensor, scales: tuple[float, ...], batch: int) -> np.ndarray:
    """The protocol as one would write it: default layout, directions in batches, one JVP after the other."""
    with torch.no_grad():
        start = phi(x)
        rows = []
        for scale in scales:
            moved = [phi(x + s * scale * part) for part in u.split(batch) for s in (1, -1)]
            rows.append(torch.cat([(m - start).double().square().sum(1) for m in moved]).mean() / scale**2)
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):  # fused attention has no forward-mode derivative
        warnings.simplefilter("ignore")
        jvps = [torch.func.jvp(phi, (x,), (one[None],))[1] for one in u]
    predicted = torch.stack([j.detach().double().square().sum() for j in jvps]).mean()
    return np.array([float(row / predicted) for row in rows])


def compare(spec: gf.Encoder, directions: int, images: int, rounds: int) -> tuple[float, float, float]:
    """Seconds of both, the least of several rounds each, and the largest relative difference of valid ratios."""
    probe, photos = gf.RatioProbe(directions=directions), gf.Photos(n=images)
    encoder = spec.load()
    pixels = photos.load(encoder.input_shape)
    fold = torch.nn.Sequential(Normalise(encoder.mean, encoder.std), spec.build().features).eval().requires_grad_(False)
    ours, theirs, gap = [], [], 0.0
    for _ in range(rounds):
        begin = time.perf_counter()
        found = gf.measure(probe, spec, photos, device="cpu")
        ours.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        for row, image_id in enumerate(pixels.ids):
            u = unit_directions(encoder.input_shape, 0, image_id, 0, directions // 2)
            ratios = plain(fold, pixels.pixels[row : row + 1], u, probe.scales, batch=32)
            gap = max(gap, float((abs(found["ratio"][row] / ratios - 1)).max()))
        theirs.append(time.perf_counter() - begin)
    return min(ours), min(theirs), gap


class Normalise(torch.nn.Module):
    """What precedes a network."""

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.std


@click.command()
@click.option("--directions", default=64)
@click.option("--images", default=1)
@click.option("--rounds", default=3)
@click.option("--encoder", "names", multiple=True, type=click.Choice(list(ENCODERS)))
def main(directions: int, images: int, rounds: int, names: tuple[str, ...]) -> None:
    """Print the table."""
    table = Table("encoder", "geoframe", "plain", "plain / geoframe", "passes / s", "largest difference")
    for name in names or ENCODERS:
        ours, theirs, gap = compare(ENCODERS[name], directions, images, rounds)
        rate = gf.RatioProbe(directions=directions).forward_passes() * images / ours
        table.add_row(name, f"{ours:.1f} s", f"{theirs:.1f} s", f"{theirs / ours:.2f}", f"{rate:.0f}", f"{gap:.1e}")
    Console().print(table)


if __name__ == "__main__":
    main()
