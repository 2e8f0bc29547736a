"""Ray searches against the plain batched loop, on the same rays, in one run.

    GEOFRAME_DATA=… python -m tests.benchmarks.rays [--rays 256] [--threads 2]

Needs MNIST; the CIFAR row needs the ResNet-20 checkpoint and a folder of CIFAR images, and is left out without them.
Prints wall times, their ratio, and whether the intervals are identical; for the exact search, how many rays it found to
cross where the grid stepped over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import click
import torch
from rich.console import Console
from rich.table import Table

import geoframe as gf
from geoframe.encoders.published import cifar_resnet20
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.rays import steps_to
from geoframe.lines import RayTable, intervals, predicted
from geoframe.loaded import LoadedEncoder
from geoframe.memory import choose_micro_batch
from geoframe.models.small import cnn, mlp
from geoframe.numerics import exact_numerics
from tests.plain_rays import plain_search

PLAIN_BATCH = 1024  # rays that the plain loop moves together


def trained_mlp(images: gf.Images) -> LoadedEncoder:
    """784–1024–512–10 with batch norm, trained briefly."""
    torch.manual_seed(0)
    return trained(mlp(), images, "mlp", epochs=2)


def trained_cnn(images: gf.Images) -> LoadedEncoder:
    """Two convolutions with max pooling and two linear layers, trained briefly."""
    torch.manual_seed(0)
    return trained(cnn(), images, "cnn", epochs=1)


def trained(layers: torch.nn.Sequential, images: gf.Images, name: str, epochs: int) -> LoadedEncoder:
    """Train a sequence of layers, the last one as the head."""
    net, head = layers[:-1], layers[-1]
    x, y = (images.pixels - 0.5) / 0.5, torch.tensor(images.labels)
    optimiser = torch.optim.SGD(layers.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(128):
            loss = torch.nn.functional.cross_entropy(head(net(x[part])), y[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    encoder = gf.ModuleEncoder(net, head=head, input_shape=(1, 28, 28), mean=0.5, std=0.5, name=name).load()
    encoder.micro_batch = choose_micro_batch(encoder)[0]
    return encoder


def timed(work: Callable[[], tuple[torch.Tensor, torch.Tensor]]) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Seconds, intervals, and which are censored."""
    begin = time.perf_counter()
    gi, censored = work()
    return time.perf_counter() - begin, gi, censored


def plain(encoder: LoadedEncoder, rays: RayTable, step: float, cap: float) -> tuple[torch.Tensor, torch.Tensor]:
    """All rays one step at a time."""
    steps = steps_to(cap, step)
    parts = [plain_search(encoder.logits, b.start, b.direction, b.held, steps) for b in rays.blocks(PLAIN_BATCH)]
    return torch.cat([gi for gi, _ in parts]), ~torch.cat([~alive for _, alive in parts])


def ours(
    encoder: LoadedEncoder, rays: RayTable, search: str, step: float, cap: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The search under test."""
    found = intervals(encoder, rays, search, step, cap)  # type: ignore[arg-type]
    return found.gi, found.censored


def random_rays(encoder: LoadedEncoder, pixels: torch.Tensor, n: int) -> RayTable:
    """Rays of the diagonal's length from test images in isotropic directions."""
    direction = unit_directions(encoder.input_shape, 0, "benchmark", 0, n) * math.sqrt(pixels[0].numel())
    start = pixels[torch.arange(n) % len(pixels)]
    return RayTable(start, direction, predicted(encoder, start))


def cifar_rays(encoder: LoadedEncoder, n: int) -> RayTable:
    """Rays between images of one predicted class, as coverage shoots them."""
    pixels = gf.ImageFolder("cifar10-jpeg/test", n=400, seed=0).load((3, 32, 32)).pixels
    held = predicted(encoder, pixels)
    pairs = [(i, j) for i in range(len(held)) for j in range(len(held)) if i != j and held[i] == held[j]]
    chosen = torch.tensor(pairs)[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))[:n]]
    start, end = pixels[chosen[:, 0]], pixels[chosen[:, 1]]
    return RayTable(start, end - start, held[chosen[:, 1]])


def row(table: Table, name: str, theirs: tuple, mine: tuple, remark: str) -> None:
    """Add a comparison."""
    table.add_row(name, f"{theirs[0]:.2f} s", f"{mine[0]:.2f} s", f"{theirs[0] / mine[0]:.1f}", remark)


@click.command()
@click.option("--rays", default=256)
@click.option("--threads", default=2)
def main(rays: int, threads: int) -> None:
    """Print the table."""
    torch.set_num_threads(threads)
    table = Table("rays", "plain loop", "geoframe", "ratio", "results")
    images = gf.TorchvisionSet("MNIST", split="train", n=20000).load((1, 28, 28))
    encoder, convolutional = trained_mlp(images), trained_cnn(images)
    with exact_numerics():
        pixels = gf.TorchvisionSet("MNIST", split="test", n=200).load((1, 28, 28)).pixels
        compare_mlp(table, encoder, random_rays(encoder, pixels, rays))
        compare_cnn(table, convolutional, random_rays(convolutional, pixels, rays))
        try:
            compare_cifar(table)
        except gf.MissingFile as error:
            print(f"without CIFAR: {error}")
    Console(width=140).print(table)


def compare_mlp(table: Table, encoder: LoadedEncoder, shot: RayTable) -> None:
    """Grid against the loop at step 0.01; exact against the loop at step 0.001."""
    ours(encoder, shot, "grid", 0.5, 3.0)  # warm up
    theirs, mine = (timed(lambda f=f: f(encoder, shot)) for f in (coarse_plain, coarse_grid))
    same = bool(torch.equal(theirs[1], mine[1]))
    row(table, f"MLP, grid, step 0.01, cap 3, {len(shot)} rays", theirs, mine, "identical" if same else "DIFFERENT")
    theirs = timed(lambda: plain(encoder, shot, 0.001, 3.0))
    mine = timed(lambda: ours(encoder, shot, "exact", 0.001, 3.0))
    remark = stepped_over(encoder, shot, theirs[1], mine[1], 0.001)
    row(table, f"MLP, exact against step 0.001, cap 3, {len(shot)} rays", theirs, mine, remark)


def compare_cnn(table: Table, encoder: LoadedEncoder, shot: RayTable) -> None:
    """Exact against the loop at two steps, and against our own step search, which drops rays that are done."""
    ours(encoder, shot, "exact", 0.001, 0.1)  # warm up
    mine = timed(lambda: ours(encoder, shot, "exact", 0.001, 1.0))
    for step in (0.01, 0.001):
        theirs = timed(lambda step=step: plain(encoder, shot, step, 1.0))
        remark = stepped_over(encoder, shot, theirs[1], mine[1], step)
        row(table, f"CNN, exact against step {step}, cap 1, {len(shot)} rays", theirs, mine, remark)
        theirs = timed(lambda step=step: ours(encoder, shot, "grid", step, 1.0))
        row(table, f"CNN, exact against our grid, step {step}", theirs, mine, "")


def stepped_over(encoder: LoadedEncoder, shot: RayTable, grid: torch.Tensor, exact: torch.Tensor, step: float) -> str:
    """How many exact intervals are too long for the grid's, and how many end where the grid stepped over."""
    above = int((exact > grid + step + 1e-6).sum())
    below = exact < grid - 1e-6
    real = int(crosses(encoder, shot, exact)[below].sum())
    return f"{above} above, {int(below.sum())} stepped over, {real} of them real"


def coarse_plain(encoder: LoadedEncoder, shot: RayTable) -> tuple[torch.Tensor, torch.Tensor]:
    """The plain loop at A.4's coarser step."""
    return plain(encoder, shot, 0.01, 3.0)


def coarse_grid(encoder: LoadedEncoder, shot: RayTable) -> tuple[torch.Tensor, torch.Tensor]:
    """The grid search at the same step."""
    return ours(encoder, shot, "grid", 0.01, 3.0)


def crosses(encoder: LoadedEncoder, shot: RayTable, t: torch.Tensor) -> torch.Tensor:
    """Whether the class is another one just behind t, in float64."""
    fine = encoder.double()
    assert fine is not None
    assert encoder.head is not None
    head = torch.nn.Sequential(encoder.head).double()
    behind = (t + 1e-9).view(-1, 1, 1, 1)
    changed = head(fine.features(shot.start.double() + behind * shot.direction.double())).argmax(1) != shot.held
    encoder.head.float()
    return changed


def compare_cifar(table: Table) -> None:
    """Coverage rays of a convolutional network."""
    encoder = cifar_resnet20().load()
    encoder.micro_batch = choose_micro_batch(encoder)[0]
    shot = cifar_rays(encoder, 2000)
    mine = timed(lambda: ours(encoder, shot, "grid", 0.01, 1.0))
    theirs = timed(lambda: plain(encoder, shot, 0.01, 1.0))
    differing = int((mine[1] != theirs[1]).sum())
    row(table, f"ResNet-20, grid, step 0.01, cap 1, {len(shot)} rays", theirs, mine, f"{differing} differ")


if __name__ == "__main__":
    main()
