"""RatioProbe, paper's and adaptive estimator, against what a researcher would write, on the same image, in one run.

    python -m tests.benchmarks.ratio [--directions 2048] [--encoder NAME]

Each row is a process of its own: wall time and CPU time of the measurement, forward passes, peak memory above the
loaded network, and the relative standard errors that it reaches. The adaptive estimator is given the plain one's least
error as its target, so that it has to reach it on every scale. GEOFRAME_DATA adds the trained CIFAR ResNet-20.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.attention import SDPBackend, sdpa_kernel

import geoframe as gf
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.ratio import estimate_ratio
from geoframe.loaded import LoadedEncoder
from geoframe.measuring import measure_block
from geoframe.process import share_cores
from geoframe.settings import choose_settings

BATCH = 32
PER_JVP = 8  # directions a Jacobian–vector product, as in the protocol: else the errors are of another kind
NAMES = ("efficientnet_lite0", "resnet20", "vit_tiny")


def subject(name: str) -> tuple[gf.Encoder, gf.ProbeSet, tuple[float, ...]]:
    """Encoder, one image and ladder."""
    if name == "resnet20":
        root = Path(os.environ["GEOFRAME_DATA"])
        architecture = gf.FactoryEncoder(
            "geoframe.models.cifar_resnet:resnet20",
            input_shape=(3, 32, 32),
            mean=(0.485, 0.456, 0.406),
            std=(0.229, 0.224, 0.225),
        )
        weights = gf.CheckpointEncoder(architecture, file=root / "weights/resnet20-12fca82f.th")
        return weights, gf.ImageFolder(root / "cifar10-jpeg/test", n=1), gf.CIFAR_SCALES
    scales = gf.RatioProbe().scales
    if name == "vit_tiny":
        return gf.TimmEncoder("vit_tiny_patch16_224", pretrained=False), gf.Photos(n=1), scales
    return gf.EfficientNetLite0(), gf.Photos(n=1), scales


class Normalised(torch.nn.Module):
    """A network on raw pixels."""

    def __init__(self, encoder: LoadedEncoder, network: torch.nn.Module) -> None:
        super().__init__()
        self.network, self.mean, self.std = network, encoder.mean, encoder.std

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network((x - self.mean) / self.std)


def plain(
    phi: torch.nn.Module, x: torch.Tensor, u: torch.Tensor, scales: tuple[float, ...], jvps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The protocol as one would write it: default layout, directions in batches, one JVP after the other."""
    with torch.no_grad():
        start, rows = phi(x), []
        for scale in scales:
            energies = [[(phi(x + s * scale * p) - start).square().sum(1) for p in u.split(BATCH)] for s in (1, -1)]
            rows.append(sum(torch.cat(signed).double() for signed in energies) / (2 * scale**2))
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):  # fused attention has no forward-mode derivative
        warnings.simplefilter("ignore")
        pushed = [torch.func.jvp(phi, (x,), (one[None],))[1].detach().double().square().sum() for one in u[:jvps]]
    return torch.stack(rows, 1).numpy(), torch.stack(pushed).numpy()


def measured(name: str, method: str, directions: int, target: float) -> dict[str, object]:
    """Measure one image by one method, after a small one to warm up."""
    spec, images, scales = subject(name)
    encoder = spec.load("cpu")
    data = images.load(encoder.input_shape)
    probe = gf.RatioProbe(scales=scales, directions=directions, jvp_directions=directions // PER_JVP)
    if method in ("adaptive", "ladder"):
        ladder = "ladder" if method == "ladder" else "float32"
        probe = probe.evolve(estimator="adaptive", target_se=target, precision=ladder)
    if method == "plain":
        return _plain(encoder, spec, data, probe)
    settings = choose_settings(encoder, timed=probe.timed())
    encoder.preflight(data.pixels)
    measure_block(probe.smoke(), encoder, data, 0, 1, settings)
    before, encoder.passes = resource.getrusage(resource.RUSAGE_SELF), 0.0
    begin = time.perf_counter()
    found = measure_block(probe, encoder, data, 0, 1, settings)
    return _row(begin, before, encoder.passes, found["ratio"].values[0], found["ratio_se"].values[0])


def _plain(
    encoder: LoadedEncoder, spec: gf.Encoder, data: gf.probeset.Images, probe: gf.RatioProbe
) -> dict[str, object]:
    network = spec.build().features.eval().requires_grad_(False)
    phi = Normalised(encoder, network)
    u = unit_directions(encoder.input_shape, 0, data.ids[0], 0, probe.pairs)
    plain(phi, data.pixels, u[:BATCH], probe.scales[:1], 1)
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    found = estimate_ratio(*plain(phi, data.pixels, u, probe.scales, probe.jvps))
    return _row(begin, before, probe.forward_passes(), found.ratio, found.ratio_se)


def _row(
    begin: float, before: resource.struct_rusage, passes: float, ratio: np.ndarray, error: np.ndarray
) -> dict[str, object]:
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "passes": passes,
        "megabytes": (after.ru_maxrss - before.ru_maxrss) / 1024,
        "ratio": ratio.tolist(),
        "error": (error / ratio).tolist(),
    }


def run(name: str, method: str, directions: int, target: float) -> dict[str, object]:
    """Measure in a process of its own, so that peak memory is the method's."""
    arguments = ["--one", method, "--encoder", name, "--directions", str(directions), "--target", str(target)]
    command = [sys.executable, "-m", "tests.benchmarks.ratio", *arguments]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(printed.splitlines()[-1]))


@click.command()
@click.option("--directions", default=2048)
@click.option("--encoder", "names", multiple=True, type=click.Choice(NAMES))
@click.option("--one", hidden=True, default="")
@click.option("--target", hidden=True, default=0.02)
def main(directions: int, names: tuple[str, ...], one: str, target: float) -> None:
    """Print the table."""
    share_cores()
    if "resnet20" in names and "GEOFRAME_DATA" not in os.environ:
        raise click.UsageError("resnet20 needs GEOFRAME_DATA: the folder of weights/ and cifar10-jpeg/")
    if one:
        print(json.dumps(measured(names[0], one, directions, target)))
        return
    for name in names or [n for n in NAMES if n != "resnet20" or "GEOFRAME_DATA" in os.environ]:
        table = Table("encoder", "method", "wall", "plain / it", "CPU", "passes", "peak MB", "error", "difference")
        base = run(name, "plain", directions, target)
        reached = min(base["error"])
        for method in ("plain", "paper", "adaptive", "ladder"):
            row = base if method == "plain" else run(name, method, directions, reached)
            gap = np.nanmax(np.abs(np.array(row["ratio"]) / np.array(base["ratio"]) - 1))
            errors = f"{min(row['error']):.2%} – {max(row['error']):.2%}"
            faster = f"{base['seconds'] / row['seconds']:.2f}"
            costs = (f"{row['seconds']:.1f} s", faster, f"{row['cpu']:.1f} s", f"{row['passes']:.0f}")
            table.add_row(name, method, *costs, f"{row['megabytes']:.0f}", errors, f"{gap:.1e}")
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
