"""Runs of a study that trains, stopped by kills, Ctrl-C or a full disk: finished, they have the bits of a whole one."""

from __future__ import annotations

import fnmatch
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.test_kill import heed_ctrl_c

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
ROOT = Path(__file__).parents[2]
STUDY = """
import geoframe as gf
from geoframe.training.published import digits_training

training = digits_training(
    "mlp", epochs=120, checkpoints=(20,), checkpoint_steps=(5, 300), momentum=0.5, schedule="cosine",
    augment="crop-flip",
)

class Stopped(gf.Study):
    encoders = tuple(gf.TrainedEncoder(training, at_step=step) for step in (4560, 760, 300, 5, 0))
    probesets = (gf.Digits(n=6),)
    probes = (
        gf.RatioProbe(scales=(0.1, 0.3, 1.0), directions=256, jvp_directions=32),
        gf.GIProbe(n_directions=16),
    )
"""


class Place:
    """A folder with the study, a run and a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        folder.mkdir(exist_ok=True)
        (folder / "study.py").write_text(STUDY)

    def start(self, out: str = "run", **options) -> subprocess.Popen:
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GEOFRAME_CACHE": str(self.cache),
        }  # fmt: skip
        command = [sys.executable, "-m", "geoframe", "run", "study.py", "--out", out, "--device", "cpu"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {"preexec_fn": heed_ctrl_c} | options
        return subprocess.Popen(command, cwd=self.folder, env=environment, text=True, **pipes, **options)

    def finish(self, out: str = "run") -> str:
        run = self.start(out)
        _, said = run.communicate(timeout=600)
        assert run.returncode == 0, said
        return said

    def await_change(self, run: subprocess.Popen, pattern: str = "*") -> None:
        """Wait until a run has written something that is called so."""
        before, deadline = self.stamps(pattern), time.monotonic() + 120
        while self.stamps(pattern) == before and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def stamps(self, pattern: str) -> dict[str, int]:
        found = {}
        for top, _, names in [*os.walk(self.cache), *os.walk(self.folder / "run")]:
            for path in (os.path.join(top, name) for name in fnmatch.filter(names, pattern)):
                with suppress(FileNotFoundError):  # replaced meanwhile
                    found[path] = os.stat(path).st_mtime_ns
        return found

    @property
    def measures(self) -> bool:
        return any(self.cache.rglob("epoch-00120.pt"))

    def contents(self) -> dict[str, bytes]:
        """Checkpoints and their log, and the results."""
        assert not list(self.folder.rglob("*.partial"))
        files = [*self.cache.rglob("*.pt"), *self.cache.rglob("*.json")]
        files += [path for path in (self.folder / "run/results.zarr").rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an uninterrupted run leaves, and how long it takes once it has begun to train."""
    place = Place(tmp_path_factory.mktemp("whole"))
    run = place.start()
    place.await_change(run)
    since = time.monotonic()
    run.communicate(timeout=600)
    assert run.returncode == 0
    contents = place.contents()
    assert sum(name.endswith(".pt") for name in contents) == 4
    assert sum("results.zarr" in name for name in contents) > 20
    return contents, time.monotonic() - since


def test_ctrl_c_while_training_is_a_clean_stop(whole, tmp_path):
    place = Place(tmp_path / "stopped")
    run = place.start()
    place.await_change(run, "step-0000300.pt")
    run.send_signal(signal.SIGINT)
    output, said = run.communicate(timeout=120)
    assert run.returncode == 130
    assert "Traceback" not in output + said
    assert not place.measures
    line = output.splitlines()[-1]
    assert line.startswith("stopped: ")
    assert "to go on, run the same command: geoframe run study.py --out run" in line
    assert "training mlp-digits: goes on after epoch" in place.finish()
    assert place.contents() == whole[0]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
def test_a_checkpoint_that_cannot_be_written_is_one_line_and_leaves_those_before(whole, tmp_path):
    """A process that may write files of 100 kB: a checkpoint fits, the state of the optimiser beside it doesn't."""
    import resource

    place = Place(tmp_path / "full")
    small = place.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
    said = small.communicate(timeout=300)[1]
    assert small.returncode == 1, "what was kept, and initial weights, are measured"
    (line,) = [line for line in said.splitlines() if not line.startswith("training ")]
    assert line.startswith("geoframe: mlp-digits-step4560 × digits-test6 × ratio (and 5 more) failed: can't write ")
    assert line.endswith(
        "resume.pt: File too large; set GEOFRAME_CACHE to another folder, then run the same command again"
    )
    assert [path.name for path in place.cache.rglob("*.pt*")] == ["step-0000005.pt"], "no rest takes up space"
    place.finish()
    assert place.contents() == whole[0]


def test_of_two_runs_one_waits_and_says_so(whole, tmp_path):
    place = Place(tmp_path / "two")
    first = place.start()
    place.await_change(first, "step-0000005.pt")
    second = place.start("other")
    said = [run.communicate(timeout=600)[1] for run in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    if "another run is at it" in said[1]:  # unless a busy computer started it too late
        assert said[1].splitlines()[0] == "training mlp-digits: another run is at it; waiting for it"
    assert "trained again" not in said[1]
    assert place.contents() == whole[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_was_killed_five_times_ends_with_the_same_bits(whole, tmp_path, seed):
    """Three times somewhere, mostly while it trains, and twice while it measures."""
    contents, seconds = whole
    place, draw = Place(tmp_path / "killed"), random.Random(seed)
    moments = []
    for kill in range(5):
        run = place.start()
        place.await_change(run)
        while kill > 2 and not place.measures and run.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, seconds / 8))
        assert run.poll() is None, "it ended too early to be killed"
        run.send_signal(signal.SIGKILL)
        run.communicate()
        moments.append("measuring" if place.measures else "training")
    place.finish()
    print("killed while", *moments)
    assert place.contents() == contents
