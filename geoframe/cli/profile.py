"""`geoframe profile MODEL [IMAGES]`: the response profile of one model, without a study file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geoframe.cli.options import TRACEBACK, console, plural, traceback_option
from geoframe.cli.values import bytes_of, numbers, shape_of
from geoframe.errors import BadInput

if TYPE_CHECKING:
    from geoframe.encoder import Encoder, Shape
    from geoframe.encoders.model import ModelEncoder
    from geoframe.loading import FoundStudy
    from geoframe.plan import Plan
    from geoframe.probes.ratio import RatioProbe
    from geoframe.probesets.files import FileSet


@click.command()
@click.argument("model")
@click.argument("images", required=False)
@click.option("--from", "library", type=click.Choice(["timm", "torchvision"]), help="Where MODEL is looked up.")
@click.option("--random", is_flag=True, help="Random initialisation, from --seed: needs no weights.")
@click.option("--control", is_flag=True, help="Measure the random copy too, as a second encoder.")
@click.option("-n", "--images", "count", type=click.IntRange(min=1), help="How many images. Default: all.")
@click.option(
    "--target-se",
    type=click.FloatRange(min=0, min_open=True),
    default=0.05,
    show_default=True,
    help="Relative standard error of each image's ratio at which measuring stops.",
)
@click.option(
    "--scales",
    type=click.Choice(["auto", "imagenet", "cifar"]),
    default="auto",
    show_default=True,
    help="Ladder of η; auto takes cifar for inputs up to 64 pixels a side.",
)
@click.option("--input-shape", metavar="CxHxW", help="Such as 3x32x32. A factory needs it; a named model has its own.")
@click.option("--mean", metavar="NUMBERS", help="Normalisation, such as 0.5 or 0.485,0.456,0.406.")
@click.option("--std", metavar="NUMBERS", help="Likewise.")
@click.option(
    "--head",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="auto: features are what the last linear layer sees; none: they are the model's output.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of directions, drawn images, and random weights.")
@click.option("--device", default="auto", show_default=True, help="A torch device; auto takes a GPU if there is one.")
@click.option("--memory", metavar="SIZE", help="Cap on the activations of a forward pass, such as 512MB.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder. Default: runs/profile-MODEL[-IMAGES].")
@traceback_option
@click.pass_context
def profile(ctx: click.Context, /, out: Path | None, device: str, memory: str | None, **asked: Any) -> None:
    """Measure the response profile of MODEL on IMAGES: one table, one picture, one folder of results.

    MODEL is a name in timm or torchvision (resnet50, vit_small_patch16_224.augreg_in1k), or path.py:function, a
    function that builds the network. IMAGES is a folder; without it, the photographs of installed packages are
    measured. The same command finishes a profile that was stopped.
    """
    from geoframe.plan import Plan

    found, lines = _study(**asked)
    cap = bytes_of(memory, "--memory")
    plan = Plan.of(found.study.resolve())
    screen = console()
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)
    from geoframe.cli.conclude import conclude
    from geoframe.cli.progress import progress_for
    from geoframe.runner import Options, execute

    folder = out or Path("runs") / found.study.name
    report = execute(found, plan, folder, Options(device=device, memory=cap), progress_for(screen))
    conclude(screen, report, bool(ctx.meta.get(TRACEBACK)))
    if any("no weights of" in fail.cause or "can't download" in fail.cause for _, fail in report.failures):
        screen.print("add --random to measure the architecture with random weights", markup=False)
    if report.published and (said := _unreached(report.folder, plan)):
        screen.print(said, markup=False, soft_wrap=True)
    ctx.exit(report.exit_code)


def _unreached(folder: Path, plan: Plan) -> str:
    """Say how many ratios have a larger error than was asked for, all directions used up."""
    from geoframe.probes.ratio import RatioProbe
    from geoframe.store import open as open_results
    from geoframe.summaries.profile_table import above_target

    probe = plan.study.probes[0]
    assert isinstance(probe, RatioProbe)
    short, count = above_target(open_results(folder)[probe.label].to_dataset(), probe.target_se)
    if not short:
        return ""
    return (
        f"{short} of {plural(count, 'ratio')} stopped at {probe.directions} directions, the most, above the target of "
        f"{probe.target_se:g}"
    )


def _one_spelling(path: str) -> str:
    """Write a path one way, however it was typed: "./photos/" is "photos", and the same results."""
    absolute, here = Path(os.path.abspath(Path(path).expanduser())), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _study(
    model: str, images: str | None, count: int | None, control: bool, target_se: float, scales: str, **of_encoder: Any
) -> tuple[FoundStudy, list[str]]:
    """Make the study, with the lines that say what was understood; refuse what can't be measured."""
    from geoframe.probes.ratio import RatioProbe
    from geoframe.profiling import SCALES, ladder, profile_study

    file, colon, function = model.rpartition(":")
    model = f"{_one_spelling(file)}{colon}{function}" if file.endswith(".py") else model
    images = _one_spelling(images) if images else images
    encoder, origin = _encoder(model, **of_encoder)
    shape, seed = encoder.expected_shape(), of_encoder["seed"]
    _check_channels(encoder, shape)
    probeset = _images(images, count, seed)
    chosen = ladder(scales, shape)
    probe = RatioProbe(scales=SCALES[chosen], estimator="adaptive", target_se=target_se, seed=seed)
    random = of_encoder["random"]
    called = Path(model).name + ("-random" if random else "")
    copy = _copy(model, encoder, random) if control else None
    at = f" at {' × '.join(map(str, shape))}" if shape else ""
    lines = [
        f"model    {encoder.label}: {origin}" + (f"; and its random copy, {copy.label}" if copy else ""),
        f"images   {plural(len(probeset.files()), 'image')} of {images or 'the embedded photographs'}{at}",
        f"scales   {_ladder(probe, chosen)}, each to a relative standard error of {target_se:g} "
        f"or {probe.directions} directions",
    ]
    return profile_study(called, encoder, probeset, probe, copy), lines


def _encoder(
    model: str,
    library: str | None,
    random: bool,
    seed: int,
    input_shape: str | None,
    mean: str | None,
    std: str | None,
    head: str,
) -> tuple[ModelEncoder, str]:
    from geoframe.encoders.named import named_encoder

    frame = {
        "input_shape": shape_of(input_shape, "--input-shape"),
        "mean": numbers(mean, "--mean"),
        "std": numbers(std, "--std"),
        "head": None if head == "none" else head,
    }
    return named_encoder(model, library, random=random, seed=seed, **frame)


def _check_channels(encoder: ModelEncoder, shape: Shape | None) -> None:
    """Refuse a normalisation of another number of channels, before anything is loaded."""
    for option, values in (("--mean", encoder.mean), ("--std", encoder.std)):
        if shape and isinstance(values, tuple) and len(values) != shape[0]:
            raise BadInput(
                f"{option} has {len(values)} numbers, and images have {plural(shape[0], 'channel')}: "
                "give one number, or one for each channel"
            )


def _copy(model: str, encoder: ModelEncoder, random: bool) -> Encoder:
    copy = encoder.randomised()
    if random or copy.key == encoder.key:
        why = "it is random itself" if random else "it is what a function builds"
        raise BadInput(f"{model} has no random copy to measure as a control, {why}: leave out --control")
    return copy.evolve(name=None)


def _images(folder: str | None, count: int | None, seed: int) -> FileSet:
    """Return the probe set; a folder or a photograph that isn't there is refused now."""
    from geoframe.probesets.folder import ImageFolder
    from geoframe.probesets.photos import Photos

    if folder == "":
        raise BadInput("IMAGES is empty: name a folder, or leave it out for the embedded photographs")
    probeset = Photos(n=count) if folder is None else ImageFolder(folder, n=count, seed=seed)
    probeset.files()
    return probeset


def _ladder(probe: RatioProbe, chosen: str) -> str:
    first, last = probe.scales[0], probe.scales[-1]
    return f"{len(probe.scales)} from η = {first:.3g} to {last:.3g} ({chosen})"
