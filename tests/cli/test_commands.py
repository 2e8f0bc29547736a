from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from geoframe.cli import cli

ROOT = Path(__file__).parents[2]
STUDY = """
import geoframe as gf
from tests.doubles import BrokenEncoder, Dots, Faded, Norm, TinyEncoder

class Small(gf.Study):
    "What it shows."
    encoders = (TinyEncoder(name="a"), TinyEncoder(name="b", seed=1))
    probesets = (Dots(n=3, name="dots"),)
    probes = (Norm(),)
    presets = {"broken": {"encoders": (TinyEncoder(name="a"), BrokenEncoder(name="x"))},
               "wide": {"probes.norm.repeats": 3}}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.py").write_text(STUDY)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(cli, arguments)


def shell(*arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "geoframe", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_is_light():
    code = (
        "import sys\nfrom geoframe.cli import cli\ncli(['--help'], standalone_mode=False)\n"
        "print([m for m in ('torch', 'timm', 'matplotlib', 'xarray', 'numpy', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "plugins" in done.stdout


@pytest.mark.parametrize("command", ["run", "profile", "list", "status", "plot", "plugins"])
def test_every_command_has_help(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_run_status_and_a_second_run(here):
    result = call("run", "study.py", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "small: What it shows." in result.output
    assert "preset paper" in result.output
    assert "[2/2] b × dots × norm: done in" in result.output
    assert "results  runs/small-paper/results.zarr" in result.output
    assert "\x1b" not in result.output
    status = call("status", "runs/small-paper")
    assert "small: What it shows; preset paper; " in status.output
    assert "2 of 2 cells are finished; results in" in status.output
    again = call("run", "study.py", "--explain")
    assert "skip    a × dots × norm: finished before" in again.output
    assert again.exit_code == 0


def test_a_preset_says_what_it_changes(here):
    result = call("run", "study.py", "--preset", "wide", "--dry-run", "--set", "encoders=b")
    assert result.exit_code == 0
    assert "preset wide, which changes:" in result.output
    assert "probes.norm.repeats: 1 → 3" in result.output
    assert "encoders: 2 (a, b) → 1 (b)" in result.output
    assert "1 cell, 9 forward passes, about 0.0 s on cpu\n" in result.output
    assert not (here / "runs").exists()


def test_failed_cells_are_reported_with_their_cause_and_exit_code_1(here):
    result = call("run", "study.py", "--preset", "broken", "--out", "out", "--device", "cpu")
    assert result.exit_code == 1
    assert "geoframe: x × dots × norm failed: RuntimeError: weights went missing" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "incomplete: 1 of 2 cells are finished; to go on, run the same command: geoframe" in result.stdout
    assert "Traceback" not in result.stderr
    assert "failed: RuntimeError: weights went missing" in call("status", "out").output
    again = call("run", "study.py", "--preset", "broken", "--out", "out", "--explain", "--traceback")
    assert "run     x × dots × norm: failed before: RuntimeError: weights went missing" in again.output
    assert "Traceback" in again.stderr


BAD = [
    (["run", "nowhere.py"], "no study file nowhere.py"),
    (["run", "bupm"], "did you mean 'bump'"),
    (["run", "study.py::Smal"], "did you mean 'Small'"),
    (["run", "syntax.py"], "syntax.py:1: syntax error"),
    (["run", "empty.py"], "holds no study"),
    (["run", "misspelt.py"], "no field 'enconders'; did you mean 'encoders'?"),
    (["run", "study.py", "--preset", "wied"], "did you mean 'wide'"),
    (["run", "study.py", "--set", "probes.norm.repaets=1"], "did you mean 'repeats'"),
    (["run", "study.py", "--set", "probes"], "PATH=VALUE"),
    (["run", "study.py", "--device", "abacus"], "device 'abacus' can't be used here"),
    (["run", "study.py", "--engine", "serail"], "did you mean 'serial'"),
    (["run", "study.py", "--out", "full"], "not a run of geoframe"),
    (["run", "study.py", "--out", "study.py"], "can't write study.py"),
    (["run", "study.py", "--out", "study.py/run"], "can't write study.py/run"),
    (["status", "nowhere"], "not the folder of a run"),
    (["plot", "nowhere"], "not the folder of a run"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(here, arguments, message):
    (here / "syntax.py").write_text("class (")
    (here / "empty.py").write_text("")
    (here / "misspelt.py").write_text("import geoframe as gf\nclass A(gf.Study):\n    enconders = ()\n")
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("")
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("geoframe: ")


def test_a_folder_of_another_study_is_refused(here):
    (here / "other.py").write_text(STUDY.replace("class Small", "class Other"))
    assert call("run", "study.py", "--out", "out", "--device", "cpu").exit_code == 0
    result = call("run", "other.py", "--out", "out")
    assert result.exit_code == 2
    assert "holds a run of study 'small', not 'other'" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder(here):
    (here / "locked").mkdir(mode=0o500)
    result = call("run", "study.py", "--out", "locked/run")
    assert result.exit_code == 2
    assert "can't write" in result.stderr


def test_traceback_shows_the_whole_error(here):
    result = call("run", "nowhere.py", "--traceback")
    assert result.exit_code == 1
    assert result.exception is not None


def test_plot_draws_again_from_what_is_stored(here):
    study = """
import attrs

@attrs.frozen(kw_only=True)
class Bars(gf.Figure):
    "Mean norms."
    def draw(self, tree):
        from matplotlib.figure import Figure
        figure = Figure(figsize=(1, 1))
        figure.subplots().plot(tree["norm"]["norm"].mean(["probeset", "image", "scale"]))
        return {"bars": figure}

class Drawn(_Small):
    figures = (Bars(probe="norm"),)
"""
    (here / "study.py").write_text(STUDY.replace("class Small", "class _Small") + study)
    result = call("run", "study.py", "--out", "out", "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    picture = here / "out" / "figures" / "bars.png"
    assert "figure   out/figures/bars.png" in result.output
    before = picture.read_bytes()
    picture.unlink()
    again = call("plot", "out")
    assert (again.exit_code, picture.read_bytes()) == (0, before)
    (here / "study.py").unlink()
    assert call("plot", "out").exit_code == 2


def test_results_that_a_failed_run_left_are_said_to_be_of_earlier_settings(here):
    summary = SUMMARY.format(node="norm", table="['x'], [['1']]")
    drawn = STUDY.replace("class Small", "class _Small") + summary + "    figures = (gf.TubeRadii(probe='norm'),)\n"
    (here / "study.py").write_text(drawn)
    run = ("run", "study.py", "--out", "out", "--device", "cpu", "--set", "encoders=a")
    call(*run)
    assert "1 of 1 cells are finished; results in out/results.zarr" in call("status", "out").output
    assert "earlier settings" not in call("plot", "out").output
    (here / "study.py").write_text(drawn.replace("TinyEncoder(name", "BrokenEncoder(name"))
    failed = call(*run)
    assert "this run replaces them once a cell is finished" in failed.stdout
    status = call("status", "out").output
    assert "0 of 1 cells are finished; the results in out/results.zarr are of earlier settings" in status
    assert "the results in out are of earlier settings than the last run's" in call("plot", "out").output


def test_a_failing_figure_is_a_line_and_exit_code_1(here):
    figure = """
import attrs

@attrs.frozen(kw_only=True)
class Bad(gf.Figure):
    def draw(self, tree):
        return 1 / 0

class Drawn(_Small):
    figures = (Bad(),)
"""
    (here / "study.py").write_text(STUDY.replace("class Small", "class _Small") + figure)
    result = call("run", "study.py", "--out", "out", "--device", "cpu")
    assert result.exit_code == 1
    assert result.stderr == "geoframe: figure bad: study.py:18: ZeroDivisionError: division by zero\n"
    assert "all of 2 cells are finished, but a summary or figure failed: correct" in result.stdout
    assert "which measures nothing again" in result.stdout
    assert call("plot", "out").exit_code == 1
    assert "return 1 / 0" in call("plot", "out", "--traceback").stderr


SUMMARY = """
import attrs

@attrs.frozen(kw_only=True)
class S(gf.Summary):
    def compute(self, tree):
        return tree["{node}"].to_dataset()[["norm"]].max()

    def rows(self, ds):
        return {table}

class Told(_Small):
    summaries = (S(),)
"""


def run_summary(here, table, *options, node="norm"):
    text = STUDY.replace("class Small", "class _Small") + SUMMARY.format(node=node, table=table)
    (here / "study.py").write_text(text)
    return call("run", "study.py", "--out", "out", "--device", "cpu", *options)


def test_numbers_in_a_summarys_table_are_written_as_text(here):
    result = run_summary(here, "['x', 'y', 'z'], [[ds['norm'].item() * 0 + 0.25, ds['norm'].values[()] > 0, 'text']]")
    assert result.exit_code == 0, result.output
    assert ["0.25", "True", "text"] in [line.split() for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("['x', 'y'], [['1', '2'], ['3']]", "row 2 of its table has length 1, but the headers have 2"),
        ("['x'], [['1', '2']]", "row 1 of its table has length 2, but the headers have 1"),
        ("['x'], [[None]]", "its table holds None, a NoneType: give text or a number"),
        ("['x'], [[ds]]", "a Dataset: give text or a number"),
    ],
)
def test_a_table_that_can_not_be_shown_is_a_line_and_costs_nothing_else(here, table, message):
    result = run_summary(here, table)
    assert result.exit_code == 1
    assert result.stderr.startswith("geoframe: summary s: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "results  out/results.zarr" in result.stdout


def test_a_summary_that_computes_no_dataset_is_a_line(here):
    result = run_summary(here, "['x'], [['1']]\n    compute = lambda self, tree: 3.0")
    assert result.stderr == "geoframe: summary s: compute returned a float, not a Dataset\n"
    assert "results  out/results.zarr" in result.stdout


def test_an_error_in_a_summary_has_its_place_and_on_request_its_traceback(here):
    result = run_summary(here, "[], []", node="nrom")
    line = "geoframe: summary s: study.py:18: KeyError: 'Could not find node at nrom'; the nodes are norm\n"
    assert result.stderr == line
    again = run_summary(here, "[], []", "--traceback", node="nrom")
    assert again.stderr.startswith(line + "Traceback")


MISSING = """
class Drawn(_Small):
    {field} = ({item},)
"""


@pytest.mark.parametrize(
    ("field", "item", "message"),
    [
        ("figures", "gf.RatioProfiles()", "figure 'fig1a' is made from the results of 'ratio'"),
        ("figures", "gf.TubeRadii(probe='nrom')", "leave the figure out; did you mean 'norm'?"),
        ("summaries", "gf.SpectrumSummary(gi='norm', jacobian='norm')", "is made from the results of 'linearity'"),
        ("summaries", "gf.CoverageSummary(probe='norm')", "is made from the results of 'coverage-different'"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_summary_or_figure_of_what_is_not_measured_is_refused_first(here, field, item, message, options):
    study = STUDY.replace("class Small", "class _Small") + MISSING.format(field=field, item=item)
    (here / "study.py").write_text(study)
    result = call("run", "study.py", "--out", "out", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (here / "out").exists()


def test_an_encoder_that_is_not_timed_is_named_with_the_reason(here):
    study = (
        STUDY.replace("class Small", "class _Small")
        + """
class Typo(_Small):
    encoders = (gf.FactoryEncoder("geoframe.models.small:mpl", input_shape=(1, 4, 4), name="f"),)
"""
    )
    (here / "study.py").write_text(study)
    result = call("run", "study.py", "--dry-run")
    assert result.exit_code == 0
    assert "1 cell, 3 forward passes; how long they take on cpu is not known" in result.stdout
    assert "encoder f was not timed: UnknownName: geoframe.models.small has no function 'mpl'" in result.stdout


TRAINED = """
import geoframe as gf

def training(seed, epochs=2):
    mlp = gf.FactoryEncoder("geoframe.models.small:mlp", kwargs={"inputs": 64}, input_shape=(1, 8, 8))
    return gf.Training(model=mlp, data=gf.Digits(split="train"), epochs=epochs, seed=seed, name=f"net{seed}")

class Trained(gf.Study):
    encoders = (gf.TrainedEncoder(training(0)), gf.TrainedEncoder(training(0), step="init"),
                gf.TrainedEncoder(training(1)))
    probesets = (gf.Digits(n=1),)
    probes = (gf.RayCoverageProbe(reference=gf.ImageFolder("refs"), n_reference=1),)
    presets = {"more": {"encoders": (gf.TrainedEncoder(training(0)), gf.TrainedEncoder(training(2, epochs=1)))},
               "many": {"encoders": tuple(gf.TrainedEncoder(training(seed)) for seed in range(20))},
               "random": {"encoders": (gf.TrainedEncoder(training(0), step="init"),)},
               "mnist": {"probesets": (gf.TorchvisionSet("MNIST", n=1),), "probes": (gf.JacobianProbe(),)}}
"""


@pytest.fixture
def trained(here, monkeypatch):
    monkeypatch.setenv("GEOFRAME_CACHE", str(here / "cache"))
    monkeypatch.setenv("GEOFRAME_DATA", str(here / "nothing"))
    monkeypatch.setattr("geoframe.estimate.Estimator.seconds", lambda *_: 1.0)
    monkeypatch.setattr("geoframe.estimate.Estimator.training_seconds", lambda _, training: 60.0 * training.epochs)
    (here / "trained.py").write_text(TRAINED)
    return here


def test_a_dry_run_names_trainings(trained, monkeypatch):
    result = call("run", "trained.py", "--dry-run", "--device", "cpu")
    assert (
        "2 trainings of 2 epochs come first where not in the cache: net0, net1; about 4 min on cpu\n" in result.stdout
    )
    assert "first where" not in call("run", "trained.py", "--dry-run", "--preset", "random").stdout
    monkeypatch.setattr("geoframe.training.cache.TrainingCache.holds", lambda cache, _: cache.training.seed == 0)
    result = call("run", "trained.py", "--dry-run", "--preset", "more", "--device", "cpu")
    said = "first where not in the cache: net2 (1 epoch), net0 (2 epochs, cached); about 60 s on cpu\n"
    assert said in result.stdout


def test_a_dry_run_of_many_trainings_names_the_first_that_are_not_done(trained, monkeypatch):
    monkeypatch.setattr("geoframe.training.cache.TrainingCache.holds", lambda cache, _: cache.training.seed < 3)
    monkeypatch.setattr(
        "geoframe.estimate.Estimator.training_seconds", lambda _, training: None if training.seed == 5 else 600.0
    )
    line = (
        "20 trainings of 2 epochs come first where not in the cache, which has 3 of them: "
        "net3, net4, net5, net6, net7, net8 and 14 more; about 2.7 h on cpu, and 1 of unknown time\n"
    )
    assert line in call("run", "trained.py", "--dry-run", "--preset", "many", "--device", "cpu").stdout
    monkeypatch.setattr("geoframe.estimate.Estimator.training_seconds", lambda *_: None)
    unknown = call("run", "trained.py", "--dry-run", "--preset", "many", "--device", "cpu").stdout
    assert "and 14 more; how long on cpu is not known\n" in unknown
    monkeypatch.setattr("geoframe.training.cache.TrainingCache.holds", lambda *_: True)
    done = call("run", "trained.py", "--dry-run", "--preset", "many", "--device", "cpu").stdout
    assert "which has 20 of them: net0 (cached), net1 (cached)," in done
    assert "and 14 more\n" in done


def test_a_dry_run_warns_of_data_that_are_not_there(trained):
    result = call("run", "trained.py", "--dry-run")
    assert result.exit_code == 0
    assert "warning: the data of 'refs' can't be found: no folder at refs" in result.stdout
    result = call("run", "trained.py", "--dry-run", "--preset", "mnist")
    assert result.exit_code == 0
    assert result.stdout.count("warning:") == 1
    assert "warning: the data of 'mnist-test1' can't be found: MNIST is not at" in result.stdout
    raw = trained / "nothing" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "t10k-images-idx3-ubyte").touch()
    assert "warning" not in call("run", "trained.py", "--dry-run", "--preset", "mnist").stdout


def test_weights_that_are_not_there_are_told_before_anything_is_measured(here):
    (here / "weights.py").write_text(
        "import geoframe as gf\n"
        "net = gf.FactoryEncoder('geoframe.models.small:mlp', kwargs={'inputs': 64}, input_shape=(1, 8, 8))\n"
        "class Weights(gf.Study):\n"
        "    encoders = (net, gf.CheckpointEncoder(net, file='nothere.pth', name='mine'))\n"
        "    probesets = (gf.NoiseSet(n=1, shape=(1, 8, 8)),)\n"
        "    probes = (gf.RatioProbe(scales=(1.0,), directions=4, jvp_directions=2),)\n"
    )
    said = "warning: weights of 'mine': no file at nothere.pth"
    assert said in call("run", "weights.py", "--dry-run").stdout
    result = call("run", "weights.py")
    assert result.exit_code == 1
    assert result.stdout.index(said) < result.stdout.index("mlp × ")


def test_plot_needs_figures(here):
    assert call("run", "study.py", "--out", "out", "--device", "cpu").exit_code == 0
    result = call("plot", "out")
    assert (result.exit_code, "has no figures" in result.stderr) == (2, True)


def test_list_and_plugins():
    listing = call("list")
    assert listing.exit_code == 0
    assert all(name in listing.output for name in ("bump", "ratio", "timm", "photos", "serial", "geoframe 0.1.0"))
    plugins = call("plugins")
    assert plugins.exit_code == 0
    assert "builtin" in plugins.output


def test_as_a_module(here):
    done = shell("run", "study.py", "--set", "encoders=a", cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "[1/1] a × dots × norm: done in" in done.stdout
    assert shell("--version", cwd=here).stdout == "geoframe 0.1.0\n"


def said(result):
    assert result.exit_code == 0, result.output
    return [line for line in result.output.splitlines() if "this run replaces them" in line]


def test_a_run_with_other_settings_says_what_it_replaces(here):
    run = ("run", "study.py", "--device", "cpu", "--set", "encoders=a")
    more = (*run, "--set", "probes.norm.repeats=2")
    line = (
        "the results in runs/small-paper are {}: this run replaces them once a cell is finished (finished cells stay)"
    )
    assert said(call(*run)) == said(call(*run)) == []
    assert said(call(*more, "--dry-run")) == [line.format("with encoders: 2 (a, b) → 1 (a)")]
    assert said(call(*more)) == [line.format("with encoders: 2 (a, b) → 1 (a)")]
    assert said(call(*more)) == []
    assert said(call(*run)) == [line.format("with encoders: 2 (a, b) → 1 (a) and 1 more")]
    assert said(call("run", "study.py")) == [line.format("with encoders: 2 (a, b) → 1 (a)")]
    assert said(call(*run)) == [line.format("without these changes")]
    (here / "study.py").write_text(STUDY.replace("Norm(),", "Norm(repeats=4),"))
    assert said(call(*run)) == [line.format("of the study as it was before")]
    call(*run, "--out", "out")
    assert said(call(*run, "--out", "out", "--preset", "smoke")) == [
        line.format("of preset paper").replace("runs/small-paper", "out")
    ]


def test_the_study_file_of_a_folder_is_told(here):
    (here / "study.py").write_text(STUDY.replace('    "What it shows."\n', ""))
    (here / "twin.py").write_text(STUDY)
    assert said(call("run", "study.py", "--device", "cpu")) == []
    status = call("status", "runs/small-paper").output.splitlines()[0]
    assert status == f"small; preset paper; {(here / 'study.py').resolve()}::Small"
    assert f"are of {(here / 'study.py').resolve()}::Small:" in said(call("run", "twin.py"))[0]
