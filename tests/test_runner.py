from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
import xarray as xr

import geoframe as gf
from geoframe.cells import CellStore
from geoframe.encoder import Network
from geoframe.errors import BadInput, StoreConflict
from geoframe.progress import Progress
from geoframe.report import RunFailed
from geoframe.study import Study
from geoframe.summary import Summary
from tests.doubles import BrokenEncoder, Dots, Faded, Norm, TinyEncoder


@attrs.frozen(kw_only=True)
class Largest(Summary):
    """The largest norm."""

    def compute(self, tree):
        return tree["norm"].to_dataset()[["norm"]].max(["probeset", "image", "scale"])

    def rows(self, ds):
        return ["encoder", "largest"], [[str(e), f"{float(v):.1f}"] for e, v in zip(ds.encoder, ds.norm, strict=True)]


class Small(Study):
    """A small study."""

    encoders = (TinyEncoder(name="a"), TinyEncoder(name="b", seed=1))
    probesets = (Dots(n=3, name="three"), Faded(of=Dots(n=1), name="one"))
    probes = (Norm(),)
    summaries = (Largest(),)


class Log(Progress):
    """Keeps what it was told."""

    def __init__(self):
        self.cells, self.lines, self.passes, self.planned = [], [], 0.0, 0.0

    def begin(self, planned):
        self.planned += sum(passes for _, passes in planned)

    def more(self, cell, passes):
        self.planned += passes

    def advance(self, passes):
        self.passes += passes

    def ended(self, cell, seconds, error=""):
        self.cells.append(cell.label)

    def say(self, line):
        self.lines.append(line)


def rerun(out, study=Small, **options):
    log = Log()
    gf.run(study, out=out, progress=log, device="cpu", **options)
    return log


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def altered(**fields):
    return type("Small", (Small,), fields)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One finished run; not to be changed."""
    out = tmp_path_factory.mktemp("run") / "small"
    rerun(out)
    return out


@pytest.fixture
def out(finished, tmp_path):
    """A copy of the finished run, to be changed."""
    subprocess.run(["cp", "-a", finished, tmp_path / "small"], check=True)
    return tmp_path / "small"


def test_results_are_readable_by_plain_xarray_without_a_warning(finished):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xr.open_datatree(finished / "results.zarr", engine="zarr", consolidated=False)
        node = tree["norm"].to_dataset().load()
    assert node["norm"].dims == ("encoder", "probeset", "image", "scale")
    assert node["norm"].sel(encoder="b", probeset="three").notnull().all()
    assert node["norm"].sel(probeset="one").notnull().sum() == 2 * 1 * 2
    assert node["positive"].dtype == bool
    assert node["digit"].sel(probeset="one").values[:, 1:].tolist() == [[-1, -1]] * 2
    assert node["training"].values.tolist() == ["none", "none"]
    assert node["label"].sel(probeset="one").values.tolist() == [0, -1, -1]
    assert dict(tree.dataset.sizes) == {}
    assert all({"units", "long_name"} <= set(node[name].attrs) for name in node.data_vars)


def test_the_folder_holds_what_is_promised_and_nothing_else(finished):
    assert {path.name for path in finished.iterdir()} == {"results.zarr", "cells", "run.json"}
    assert {path.name for path in (finished / "results.zarr").iterdir()} == {"zarr.json", "norm", "largest"}
    run = json.loads((finished / "run.json").read_text())
    assert run["study"]["name"] == "small"
    assert len(run["plan"]) == 4
    assert [entry["status"] for entry in run["log"]] == ["done"] * 4
    assert torch.__version__.startswith(run["provenance"]["versions"]["torch"])


def test_a_cell_has_the_bits_names_and_provenance_of_measure(finished):
    alone = gf.measure(Norm(), Small.encoders[1], Small.probesets[0], device="cpu")
    node = gf.open(finished)["norm"].to_dataset()
    cell = node.sel(encoder="b", probeset="three")
    for name in alone.data_vars:
        np.testing.assert_array_equal(cell[name].values, alone[name].values)
    assert set(alone.coords) <= set(cell.coords)
    by_cell = json.loads(node.attrs["cells"])["b"]["three"]
    assert (alone.attrs.pop("encoder"), alone.attrs.pop("probeset")) == ("b", "three")  # coordinates in a run
    for name, value in alone.attrs.items():
        assert node.attrs.get(name, by_cell.get(name)) == value


def test_provenance_has_no_time_and_no_path(finished):
    text = "".join(str(node.attrs) for node in gf.open(finished).subtree)
    assert "0x1." not in text  # numbers are for people
    assert str(finished) not in text
    assert "seconds" not in text


def test_summaries_are_nodes(finished):
    assert gf.open(finished)["largest"]["norm"].dims == ("encoder",)


def test_a_finished_run_computes_nothing_and_gives_the_same_bytes(out):
    before = contents(out / "results.zarr")
    assert rerun(out).cells == []
    assert contents(out / "results.zarr") == before


def test_progress_adds_up(tmp_path):
    log = rerun(tmp_path / "run", set=["probes.norm.repeats=3", "probesets=three"])
    assert log.planned == 2 * 3 * 3
    assert log.passes >= log.planned


def test_what_a_failed_cell_left_is_no_longer_planned(tmp_path):
    log = Log()
    study = altered(encoders=(BrokenEncoder(name="broken"), TinyEncoder(name="b")))
    with pytest.raises(RunFailed):
        gf.run(study, out=tmp_path / "run", progress=log, device="cpu")
    assert log.planned == log.passes == 4  # of the other encoder, on sets of three images and of one


def test_changing_one_encoder_recomputes_its_cells_only(out):
    study = altered(encoders=(TinyEncoder(name="a"), TinyEncoder(name="b", seed=2)))
    assert rerun(out, study).cells == ["b × three × norm", "b × one × norm"]
    assert rerun(out).cells == []


def test_changed_weights_are_noticed_and_said(out, monkeypatch):
    def build(self):
        torch.manual_seed(99)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, self.width), torch.nn.Tanh())
        return Network(features=net, input_shape=(1, 4, 4))

    before = gf.open(out)["norm"]["norm"].sel(encoder="a").values
    monkeypatch.setattr(TinyEncoder, "build", build)
    study = altered(probesets=(*Small.probesets, Dots(n=2, seed=5, name="new")), encoders=Small.encoders[:1])
    log = rerun(out, study)
    assert log.cells == ["a × three × norm", "a × one × norm", "a × new × norm"]
    assert log.lines == [
        f"the results in {out} are of the study as it was before: "
        "this run replaces them once a cell is finished (finished cells stay)",
    ] + [f"a × {name} × norm: computed again, the weights of encoder 'a' have changed" for name in ("three", "one")]
    after = gf.open(out)["norm"]["norm"].sel(encoder="a", probeset=["three", "one"]).values
    assert (before != after).any()


def test_changed_images_are_noticed_when_they_are_loaded(out, monkeypatch):
    def records(self):
        for record in Dots.records(self.of):
            yield attrs.evolve(record, image=record.image * 0.9)

    monkeypatch.setattr(Faded, "records", records)
    log = rerun(out, altered(probes=(Norm(), Norm(name="twice", repeats=2))))
    assert sorted(set(log.lines)) == [
        f"{name} × one × norm: computed again, the images of probe set 'one' have changed" for name in "ab"
    ]


def test_changed_files_are_noticed_without_loading(out, monkeypatch):
    cells = CellStore(out / "cells")
    for record in list(cells.records()):
        if record.names["encoder"] == "a":
            (out / "cells" / f"{record.key}.settings.json").write_text(
                json.dumps({**attrs.asdict(record), "sources": {"encoder": "old"}})
            )
    monkeypatch.setattr(TinyEncoder, "source_digest", lambda self: "new")
    assert rerun(out).cells == ["a × three × norm", "a × one × norm"]


def test_a_failed_cell_is_kept_retried_and_stops_nothing(tmp_path, monkeypatch):
    study = altered(encoders=(BrokenEncoder(name="broken"), TinyEncoder(name="b")))
    with pytest.raises(
        RunFailed, match=r"2 of 4 cells failed: broken × three × norm: .*weights went missing"
    ) as failed:
        rerun(tmp_path / "run", study)
    report = failed.value.report
    assert report.exit_code == 1
    assert len(report.finished) == 2
    node = gf.open(tmp_path / "run")["norm"].to_dataset()
    assert np.isnan(node["norm"].sel(encoder="broken")).all()
    assert node["norm"].sel(encoder="b", probeset="three").notnull().all()
    failures = list((tmp_path / "run" / "cells").glob("*.failed.json"))
    assert len(failures) == 2
    assert "went missing" in json.loads(failures[0].read_text())["traceback"]

    monkeypatch.setattr(BrokenEncoder, "build", TinyEncoder.build)
    assert rerun(tmp_path / "run", study).cells == ["broken × three × norm", "broken × one × norm"]
    assert list((tmp_path / "run" / "cells").glob("*.failed.json")) == []


@pytest.mark.parametrize(("owner", "method"), [(BrokenEncoder, "build"), (Dots, "records"), (Norm, "measure")])
def test_a_plugin_that_exits_costs_its_cells_only(tmp_path, monkeypatch, owner, method):
    def leave(self, *arguments):
        raise SystemExit(3)

    right = TinyEncoder.build if owner is BrokenEncoder else getattr(owner, method)
    monkeypatch.setattr(BrokenEncoder, "build", TinyEncoder.build)
    monkeypatch.setattr(owner, method, leave)
    study = altered(encoders=(BrokenEncoder(name="broken"),), summaries=())
    with pytest.raises(RunFailed, match="SystemExit: 3") as failed:
        rerun(tmp_path / "run", study)
    assert failed.value.report.exit_code == 1
    monkeypatch.setattr(owner, method, right)
    assert len(rerun(tmp_path / "run", study).cells) == 2


def test_exit_code_is_2_where_bad_input_left_nothing_to_measure(tmp_path, monkeypatch):
    def build(self):
        raise BadInput("no weights")

    monkeypatch.setattr(BrokenEncoder, "build", build)
    with pytest.raises(RunFailed) as failed:
        rerun(tmp_path / "none", altered(encoders=(BrokenEncoder(name="broken"),)))
    assert failed.value.report.exit_code == 2
    with pytest.raises(RunFailed) as failed:
        rerun(tmp_path / "some", altered(encoders=(BrokenEncoder(name="broken"), TinyEncoder(name="b"))))
    assert failed.value.report.exit_code == 1


def test_a_failing_summary_costs_nothing_but_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(Largest, "compute", lambda self, tree: 1 / 0)
    with pytest.raises(
        RunFailed, match=r"every cell is finished, but summary largest: test_runner.py:\d+: Zero"
    ) as failed:
        rerun(tmp_path / "run")
    assert failed.value.report.exit_code == 1
    assert set(gf.open(tmp_path / "run").children) == {"norm"}


def interrupt_after(monkeypatch, blocks, stop):
    """Make the run stop by `stop` when that many blocks are written."""
    count = []
    write = CellStore.write

    def counted(self, *arguments):
        write(self, *arguments)
        count.append(1)
        if len(count) == blocks:
            raise stop

    monkeypatch.setattr(CellStore, "write", counted)
    return lambda: monkeypatch.setattr(CellStore, "write", write)


def test_an_interrupted_run_publishes_what_is_done_and_resumes_to_the_same_bytes(finished, tmp_path, monkeypatch):
    restore = interrupt_after(monkeypatch, 4, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        rerun(tmp_path / "run")
    node = gf.open(tmp_path / "run")["norm"].to_dataset()
    assert node["norm"].sel(encoder="a").notnull().any()
    assert not node["norm"].sel(encoder="b").notnull().any()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["log"][-1]["status"] == "interrupted"
    restore()
    assert rerun(tmp_path / "run").cells == ["b × three × norm", "b × one × norm"]
    assert contents(tmp_path / "run" / "results.zarr") == contents(finished / "results.zarr")


def test_a_resumed_cell_keeps_its_settings_and_its_blocks(tmp_path, monkeypatch):
    restore = interrupt_after(monkeypatch, 1, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        rerun(tmp_path / "run", memory=2**20)
    (settings,) = (tmp_path / "run" / "cells").glob("*.settings.json")
    before = json.loads(settings.read_text())
    assert before["blocks"] == [[0, 2], [2, 3]]
    restore()
    written = []
    write = CellStore.write
    monkeypatch.setattr(
        CellStore, "write", lambda self, key, start, ds: (written.append(start), write(self, key, start, ds))
    )
    rerun(tmp_path / "run", memory=2**22)
    assert written[0] == 2
    assert json.loads(settings.read_text()) == before


@pytest.mark.parametrize(("name", "value"), [("torch", "1.0"), ("device", "cuda"), ("device_name", "abacus")])
def test_a_half_finished_cell_is_not_mixed(tmp_path, monkeypatch, name, value):
    restore = interrupt_after(monkeypatch, 1, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        rerun(tmp_path / "run")
    restore()
    (settings,) = (tmp_path / "run" / "cells").glob("*.settings.json")
    record = json.loads(settings.read_text())
    record["settings"][name] = value
    settings.write_text(json.dumps(record))
    with pytest.raises(StoreConflict, match=rf"half finished with {name.replace('_', ' ')} {value}, but here it is"):
        rerun(tmp_path / "run")


def test_a_cell_that_never_finished_a_block_may_move(tmp_path, monkeypatch):
    rerun(tmp_path / "run", set=["probesets=one", "encoders=a"])
    cells = tmp_path / "run" / "cells"
    (settings,) = cells.glob("*.settings.json")
    record = json.loads(settings.read_text())
    record["settings"]["torch"] = "1.0"
    settings.write_text(json.dumps(record))
    (whole,) = cells.glob("*.zarr")
    subprocess.run(["rm", "-r", whole], check=True)
    assert rerun(tmp_path / "run", set=["probesets=one", "encoders=a"]).cells == ["a × one × norm"]
    assert json.loads(settings.read_text())["settings"]["torch"] == torch.__version__


def test_a_kill_before_packing_is_made_up_for(out):
    cells = CellStore(out / "cells")
    key = next(r.key for r in cells.records() if r.names["encoder"] == "a" and r.n_images == 3)
    data = cells.read(key)
    subprocess.run(["rm", "-r", out / "cells" / f"{key}.zarr"], check=True)
    for start, rows in ((0, slice(0, 2)), (2, slice(2, 3))):
        cells.write(key, start, data.isel(image=rows))
    before = contents(out / "results.zarr")
    assert rerun(out).cells == []
    assert contents(out / "results.zarr") == before
    assert (out / "cells" / f"{key}.zarr").exists()
    assert not list((out / "cells").glob("*-*.zarr"))


def test_lost_values_are_noticed_said_and_computed_again(out):
    before = contents(out / "results.zarr")
    damaged = sorted((out / "cells").glob("*.zarr"))[0]
    (damaged / "norm" / "c" / "0" / "0").unlink()
    log = rerun(out)
    assert len(log.cells) == 1
    assert "were changed or lost" in log.lines[0]
    assert contents(out / "results.zarr") == before


def test_names_do_not_matter_to_what_is_computed(out):
    study = altered(encoders=(TinyEncoder(name="renamed"), TinyEncoder(name="b", seed=1)))
    assert rerun(out, study).cells == []
    assert gf.open(out)["norm"]["encoder"].values.tolist() == ["renamed", "b"]


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = gf.run(Small, set="encoders=a", preset="smoke", device="cpu")
    assert (tmp_path / "runs" / "small-smoke" / "results.zarr").is_dir()
    assert tree["norm"].sizes["image"] == 1


def test_a_bad_device_is_refused_even_where_nothing_is_left_to_compute(out):
    with pytest.raises(BadInput, match="device 'abacus' can't be used here"):
        gf.run(Small, out=out, device="abacus")


def test_bad_devices_and_engines_are_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(BadInput, match="device 'abacus' can't be used here"):
        gf.run(Small, out=tmp_path / "run", device="abacus")
    with pytest.raises(BadInput, match="no engine 'serail'; did you mean 'serial'"):
        gf.run(Small, out=tmp_path / "run", device="cpu", engine="serail")


def test_disk_full_stops_the_run_in_one_line(tmp_path, monkeypatch):
    def full(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "to_zarr", full)
    with pytest.raises(BadInput, match=r"can't write .*: No space left on device; free some space"):
        rerun(tmp_path / "run")
