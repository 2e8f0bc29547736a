"""Kill a run at random moments, run the same command until it ends, and compare the results bit for bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUDY = """
import geoframe as gf
from tests.doubles import Dots, Norm, TinyEncoder

class Killed(gf.Study):
    encoders = (TinyEncoder(name="a"), TinyEncoder(name="b", seed=1))
    probesets = (Dots(n=5, name="five"), Dots(n=3, seed=1, name="three"))
    probes = (Norm(), gf.RatioProbe(scales=(0.1, 1.0), directions=8, jvp_directions=4))
"""


def heed_ctrl_c():
    """Undo what a shell does to what it starts in the background: to ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "geoframe", "run", "study.py", "--out", "run", "--device", "cpu"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment, preexec_fn=heed_ctrl_c, **pipes)


def finish(folder):
    run = start(folder)
    _, errors = run.communicate(timeout=300)
    assert (run.returncode, errors) == (0, b"")


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results and duration of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "study.py").write_text(STUDY)
    since = time.monotonic()
    finish(folder)
    return contents(folder / "run" / "results.zarr"), time.monotonic() - since


def kill_and_resume(folder, duration, seed):
    """Kill a run at least twice, at moments spread over its whole course, then let it end."""
    (folder / "study.py").write_text(STUDY)
    draw = random.Random(seed)
    kills = 0
    while kills < 2:
        run = start(folder)
        try:
            run.wait(draw.uniform(0.2, 1.0) * duration)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.wait()
        run.communicate()
        kills += 1
    finish(folder)
    return contents(folder / "run" / "results.zarr")


def test_a_killed_run_resumes_to_the_same_bits(whole, tmp_path):
    results, duration = whole
    assert kill_and_resume(tmp_path, duration, 0) == results


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_twenty_killed_runs_resume_to_the_same_bits(whole, tmp_path, seed):
    results, duration = whole
    assert kill_and_resume(tmp_path, duration, seed) == results


def test_ctrl_c_is_a_clean_stop(tmp_path, whole):
    (tmp_path / "study.py").write_text(STUDY)
    run = start(tmp_path)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "run" / "cells").glob("*.zarr")) and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    output, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (130, b"")
    assert output.decode().splitlines()[-1].startswith("stopped: ")
    assert "run the same command: geoframe run study.py --out run" in output.decode()
    finish(tmp_path)
    assert contents(tmp_path / "run" / "results.zarr") == whole[0]
