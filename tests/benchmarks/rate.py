"""Forward passes a second inside RatioProbe, as a share of the encoder's bare rate at the same batch.

    python -m tests.benchmarks.rate [--encoder NAME] [--rounds 5]

The bare rate is the limit: the network as it is measured, on batches that are already there. The two take turns, and
the best of each counts, since machines are noisy.
"""

from __future__ import annotations

import time

import click
import torch
from rich.console import Console
from rich.table import Table

from geoframe.fusing import fused
from geoframe.geometry.response import even_blocks, pair_responses, pairs_within
from geoframe.loaded import LoadedEncoder
from geoframe.numerics import exact_numerics, with_fused_attention
from geoframe.precision import displacements
from geoframe.process import share_cores
from geoframe.ratio_estimators import ImageDirections
from geoframe.settings import choose_settings
from tests.benchmarks.ratio import NAMES, subject

PAIRS = 16


def bare(encoder: LoadedEncoder, batches: int) -> float:
    """Images a second."""
    features = with_fused_attention(encoder.features)
    images = torch.rand(encoder.micro_batch, *encoder.input_shape).contiguous(memory_format=encoder.layout)
    begin = time.perf_counter()
    for _ in range(batches):
        features(images)
    return batches * len(images) / (time.perf_counter() - begin)


def inside(encoder: LoadedEncoder, x: torch.Tensor, scales: tuple[float, ...]) -> float:
    """Images a second of the numerator: directions drawn, images moved, energies taken; the image itself included."""
    draw, block = ImageDirections(encoder, 0, "rate"), even_blocks(PAIRS, pairs_within(encoder.micro_batch))
    begin, before = time.perf_counter(), encoder.passes
    pair_responses(displacements(encoder, x), draw, PAIRS, scales, block)
    return (encoder.passes - before) / (time.perf_counter() - begin)


@click.command()
@click.option("--encoder", "names", multiple=True, type=click.Choice(NAMES))
@click.option("--rounds", default=5)
def main(names: tuple[str, ...], rounds: int) -> None:
    """Print the table."""
    share_cores()
    table = Table("encoder", "batch", "bare", "inside", "inside / bare")
    for name in names or NAMES:
        spec, images, scales = subject(name)
        encoder = spec.load("cpu")
        settings = choose_settings(encoder)
        network = encoder.derived(fused)
        network.micro_batch = settings.micro_batch
        x = images.load(encoder.input_shape).pixels
        with exact_numerics():
            batches = 2 * PAIRS * len(scales) // network.micro_batch + 1
            rates = [(bare(network, batches), inside(network, x, scales)) for _ in range(rounds)]
        best = [max(column) for column in zip(*rates, strict=True)]
        table.add_row(name, str(network.micro_batch), *(f"{rate:.0f} / s" for rate in best), f"{best[1] / best[0]:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
