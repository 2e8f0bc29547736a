"""`geoframe profile` with a tiny network from a file; what it refuses is one line and exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import geoframe as gf
from geoframe.cli import cli
from geoframe.encoders.split import OUTPUT
from geoframe.probes.ratio import CIFAR_SCALES, IMAGENET_SCALES, RatioProbe

ROOT = Path(__file__).parents[2]
NET = """
import torch

def build():
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))

def fails():
    raise RuntimeError("no such layer")

def number():
    return 3
"""
TINY = ("net.py:build", "photos", "--input-shape", "1x8x8", "--mean", "0.5", "--std", "0.25", "--device", "cpu")
LOOSE = ("--target-se", "0.5")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "data"))
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "photos").mkdir()
    pixels = np.random.default_rng(0)
    for i in range(3):
        Image.fromarray(pixels.integers(0, 256, (8, 8), dtype=np.uint8)).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli, arguments)


def profile(*arguments):
    return call("profile", *arguments)


def test_table_picture_and_folder(here):
    result = profile(*TINY, "--target-se", "0.1", "-n", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert "model    build: built by net.py:build\n" in result.output
    assert "images   2 images of photos at 1 × 8 × 8\n" in result.output
    assert (
        "scales   17 from η = 0.00141 to 14.1 (cifar), each to a relative standard error of 0.1 or 2048 directions\n"
        in result.output
    )
    assert "results  runs/profile-net.py-build-photos/results.zarr" in result.output
    out = Path("runs/profile-net.py-build-photos")
    assert (out / "figures" / "profiles.png").is_file()
    tree = gf.open(out)
    ds = tree["ratio"].to_dataset().isel(encoder=0, probeset=0)
    np.testing.assert_allclose(ds["scale"], CIFAR_SCALES)
    assert ds.sizes["image"] == 2
    assert bool((ds["ratio_se"] <= 0.1 * ds["ratio"]).all())
    rows = [line.split() for line in result.output.splitlines() if line.split()[-2:-1] == ["2/2"]]
    assert len(rows) == 17
    for row, eta, median, used in zip(
        rows, CIFAR_SCALES, ds["ratio"].median("image"), ds["directions_used"].median("image"), strict=True
    ):
        assert float(row[0]) == pytest.approx(eta, rel=5e-3)
        assert float(row[1]) == pytest.approx(float(median), rel=5e-3)
        assert row[2] == "±"
        assert int(row[-1]) == used
    assert "peak η" in result.output
    assert tree["bump"]["is_bump"].dims == ("encoder", "probeset")


def test_numbers_are_those_of_gf_measure(here):
    assert profile(*TINY, *LOOSE, "--seed", "3", "--out", "out").exit_code == 0
    stored = gf.open("out")["ratio"]["ratio"].values[0, 0]
    encoder = gf.FactoryEncoder("net.py:build", input_shape=(1, 8, 8), mean=0.5, std=0.25, seed=3)
    probe = gf.RatioProbe(scales=CIFAR_SCALES, estimator="adaptive", target_se=0.5, seed=3)
    measured = gf.measure(probe, encoder, gf.ImageFolder("photos"), device="cpu")["ratio"]
    np.testing.assert_allclose(stored, measured, rtol=1e-3)  # what is chosen by timing changes last digits


def test_the_same_command_measures_nothing_again(here):
    first = profile(*TINY, *LOOSE)
    assert "[1/1] build × photos × ratio: done" in first.output
    status = call("status", "runs/profile-net.py-build-photos")
    assert (
        "profile-net.py-build-photos: Response profile of build on photos, relative standard error 0.5" in status.output
    )
    assert "1 of 1 cells are finished" in status.output
    again = profile(*TINY, *LOOSE)
    assert again.exit_code == 0
    assert "[1/1]" not in again.output
    assert again.output.split("profile  ")[1:] == first.output.split("profile  ")[1:]  # the tables and what follows


def test_an_interrupted_profile_goes_on(here, monkeypatch):
    whole = profile(*TINY, *LOOSE, "--out", "whole")
    assert whole.exit_code == 0
    measured, real = [], RatioProbe.measure

    def measure(probe, encoder, batch):
        measured.append(batch.ids[0])
        if len(measured) == 3:
            raise KeyboardInterrupt
        return real(probe, encoder, batch)

    monkeypatch.setattr(RatioProbe, "measure", measure)
    stopped = profile(*TINY, *LOOSE, "--out", "out")
    assert stopped.exit_code == 130
    assert "stopped: 0 of 1 cells are finished; to go on, run the same command" in stopped.output
    assert "1 of 2 blocks" in call("status", "out").output
    assert profile(*TINY, *LOOSE, "--out", "out").exit_code == 0
    assert measured == ["0.png", "1.png", "2.png", "2.png"]
    ratios = [gf.open(out)["ratio"]["ratio"] for out in ("out", "whole")]
    np.testing.assert_allclose(*ratios, rtol=1e-3)  # what is chosen by timing changes last digits


def test_plot_draws_the_pictures_again(here):
    assert profile(*TINY, *LOOSE, "--out", "out").exit_code == 0
    before = {path: path.read_bytes() for path in Path("out/figures").iterdir()}
    assert {path.name for path in before} == {"profiles.png", "medians.png"}
    for path in before:
        path.unlink()
    assert call("plot", "out").exit_code == 0
    assert {path: path.read_bytes() for path in Path("out/figures").iterdir()} == before


def test_ladders(here):
    result = profile(*TINY, *LOOSE, "--scales", "imagenet", "--out", "out")
    assert "17 from η = 0.01 to 100 (imagenet)" in result.output
    np.testing.assert_allclose(gf.open("out")["ratio"]["scale"], IMAGENET_SCALES)


def test_features_can_be_the_output(here):
    layers = []
    for head in ("none", "auto"):
        result = profile(*TINY, *LOOSE, "--head", head, "--out", "out")
        assert "[1/1] build × photos × ratio: done" in result.output, "another layer is another cell"
        layers.append(json.loads(gf.open("out")["ratio"].attrs["cells"])["build"]["photos"]["layer"])
    assert layers == [OUTPUT, "3"]


def test_a_named_model_at_random(here):
    pytest.importorskip("skimage", reason="the photographs come with scikit-image")
    options = ("--input-shape", "3x32x32", "-n", "1", "--scales", "cifar", "--target-se", "0.9", "--device", "cpu")
    result = profile("resnet10t", "--random", *options)
    assert result.exit_code == 0, result.stderr
    assert "model    resnet10t-random: timm's, random\n" in result.output
    tree = gf.open("runs/profile-resnet10t-random")
    assert tree["ratio"]["encoder"].values.tolist() == ["resnet10t-random"]
    assert tree["ratio"]["training"].values.tolist() == ["random"]


def test_the_control_is_a_second_encoder_of_the_same_network():
    from geoframe.cli.profile import _study
    from geoframe.controls import networks_and_controls

    plain = {"images": None, "count": 1, "target_se": 0.05, "scales": "auto", "library": None, "random": False}
    frame = {"input_shape": None, "mean": None, "std": None, "head": "auto"}
    found, lines = _study("resnet50", control=True, seed=7, **plain, **frame)
    trained, copy = found.study.encoders
    assert (trained.label, copy.label) == ("resnet50", "resnet50-random")
    assert networks_and_controls((trained, copy)) == (["resnet50"] * 2, ["resnet50-random", ""])
    assert copy.seed == found.study.probes[0].seed == 7
    assert "and its random copy, resnet50-random" in lines[0]
    assert "at 3 × 224 × 224" in lines[1]
    assert "(imagenet)" in lines[2]
    assert found.study.name == "profile-resnet50"


SHAPE = ("--input-shape", "1x8x8")
BAD = [
    (["resnt50"], "neither timm nor torchvision has a model 'resnt50'; did you mean 'resnet50'"),
    (["--from", "timm", "convnext_tinny"], "timm has no model 'convnext_tinny'; did you mean 'convnext_tiny'"),
    (["vit_small_patch16_224.augreg_in2k"], "no weights 'augreg_in2k' of vit_small_patch16_224; did you mean"),
    (["net.py"], "say which function builds the network, as in net.py:build"),
    (["weights.pth"], "weights.pth holds weights, but no network"),
    (["net.py:build"], "--input-shape 3x32x32"),
    (["nope.py:build", *SHAPE], "no file nope.py"),
    (["net.py:biuld", *SHAPE], "did you mean 'build'?"),
    (["net.py:fails", "photos", *SHAPE], "net.py:fails failed: RuntimeError: no such layer"),
    (["net.py:number", "photos", *SHAPE], "net.py:number returned a int"),
    (["net.py:build", "photos", "--input-shape", "8x8"], "give channel, height and width, as in 3x32x32"),
    (["net.py:build", "photos", "--input-shape", "3x8x8"], "encoder 'build' fails on images of shape (3, 8, 8)"),
    (["net.py:build", "photos", *SHAPE, "--mean", "half"], "--mean 'half': give a number"),
    (["net.py:build", "photos", *SHAPE, "--mean", "1,2"], "--mean has 2 numbers, and images have 1 channel:"),
    (["net.py:build", "photos", *SHAPE, "--target-se", "5"], "a relative standard error: 5 % is 0.05"),
    (["net.py:build", "photos", *SHAPE, "--memory", "lots"], "--memory 'lots': give a size"),
    (["net.py:build", "photos", *SHAPE, "--device", "abacus"], "device 'abacus' can't be used here"),
    (["net.py:build", "photos", *SHAPE, "--random"], "random copies are of named models"),
    (["net.py:build", "photos", *SHAPE, "--from", "timm"], "--from timm is of named models"),
    (["net.py:build", "photos", *SHAPE, "--control"], "no random copy to measure as a control"),
    (["resnet50", "photos", "--random", "--control"], "it is random itself: leave out --control"),
    (["net.py:build", "nowhere", *SHAPE], "no folder at nowhere"),
    (["net.py:build", "net.py", *SHAPE], "net.py is a file, not a folder of images"),
    (["net.py:build", "empty", *SHAPE], "the folder empty holds no image"),
    (["net.py:build", "", *SHAPE], "IMAGES is empty: name a folder"),
    (["net.py:build", "photos", *SHAPE, "--std", "0"], "std=0.0 should be above 0"),
    (["net.py:build", os.fsdecode(b"photos\xff"), *SHAPE], "isn't valid UTF-8, which results need: rename it"),
    (["net.py:build", "photos", *SHAPE, "-n", "4"], "4 asked for, but there are only 3 images in photos"),
    (["net.py:build", "broken", *SHAPE], "can't read the image broken/a.png: it is no image"),
    (["net.py:build", "deep", *SHAPE], "deep/a.png has 16 bits a channel"),
    (["net.py:build", "photos", *SHAPE, "--out", "photos"], "not a run of geoframe: choose another --out"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(here, arguments, message):
    for folder in ("empty", "broken", "deep"):
        (here / folder).mkdir()
    (here / "empty" / "notes.txt").touch()
    (here / "broken" / "a.png").write_bytes(b"not a picture")
    (here / "weights.pth").touch()
    Image.fromarray(np.full((8, 8), 40000, dtype=np.uint16)).save(here / "deep" / "a.png")
    result = profile(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("geoframe: ")


def test_results_of_another_run_are_not_shown_as_ones_own(here):
    assert profile(*TINY, *LOOSE, "-n", "1").exit_code == 0
    result = profile("net.py:build", "photos", "--input-shape", "3x8x8", "-n", "1", "--device", "cpu")
    assert result.exit_code == 2
    assert "results " not in result.stdout.replace("the results in", "")
    assert "figure " not in result.stdout
    assert "--random" not in result.stdout


def test_folders_in_other_scripts_have_runs_of_their_own(here):
    for name in ("фото", "写真"):
        (here / "photos").rename(here / name)
        result = profile("net.py:build", name, *TINY[2:], *LOOSE, "-n", "1")
        assert result.exit_code == 0, result.stderr
        (here / name).rename(here / "photos")
    assert len(list((here / "runs").iterdir())) == 2


def test_missing_weights_say_what_to_put_where(here, monkeypatch):
    pytest.importorskip("skimage", reason="the photographs come with scikit-image")
    monkeypatch.setenv("TORCH_HOME", str(here / "hub"))

    def refuse(*_args: object, **_options: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("torch.hub.download_url_to_file", refuse)
    result = profile("resnet18", "-n", "1", "--device", "cpu")
    assert result.exit_code == 2
    assert "can't download https://download.pytorch.org/models/resnet18-" in result.stderr
    assert f"save it as {here / 'data' / 'weights' / 'resnet18-'}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "add --random" in result.stdout


def test_help_is_light():
    code = (
        "import sys\nfrom geoframe.cli import cli\ncli(['profile', '--help'], standalone_mode=False)\n"
        "print([m for m in ('torch', 'timm', 'matplotlib', 'xarray', 'numpy', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "--target-se" in done.stdout


def test_a_path_typed_in_another_way_is_the_same_run(here):
    first = profile(*TINY, *LOOSE)
    assert first.exit_code == 0, first.stderr
    for model, images in ((f"{here}/net.py:build", "photos/"), ("./net.py:build", f"{here}/photos")):
        again = profile(model, images, *TINY[2:], *LOOSE)
        assert again.exit_code == 0, again.stderr
        assert "replaces" not in again.output
        assert json.loads((here / "runs/profile-net.py-build-photos/run.json").read_text())["log"][-1]


def test_a_target_that_is_not_reached_is_said(here):
    assert "stopped at" not in profile(*TINY, *LOOSE).output
    result = profile(*TINY, "--target-se", "1e-9")
    assert result.exit_code == 0, result.stderr
    assert "stopped at 2048 directions, the most, above the target of 1e-09" in result.output


def test_where_nothing_was_measured_the_same_command_is_no_cure(here):
    result = profile("net.py:fails", *TINY[1:])
    assert result.exit_code == 2
    assert "nothing was measured: correct what is said above, and run it again" in result.output
    assert "to go on" not in result.output
