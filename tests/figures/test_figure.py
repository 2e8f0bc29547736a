"""Saving figures: names, bytes, and the user's own settings."""

from __future__ import annotations

import subprocess
import sys

import attrs
import matplotlib as mpl
import pytest
from matplotlib.figure import Figure as Canvas

from geoframe.errors import BadInput, UnknownName
from geoframe.figures.figure import Figure, safe_stem, save_all
from geoframe.figures.grid import RatioGrid
from geoframe.figures.profiles import RatioProfiles


@attrs.frozen(kw_only=True)
class Blank(Figure):
    """A figure from elsewhere."""

    file: str = "blank"

    def draw(self, tree):
        return {self.stem(self.file): Canvas(figsize=(1, 1))}


@attrs.frozen(kw_only=True)
class Stem(Figure):
    """A figure that ignores its name."""

    def draw(self, tree):
        return {"same": Canvas(figsize=(1, 1))}


def test_files_are_named_after_what_they_show(pair, tmp_path):
    figures = [RatioProfiles(), RatioProfiles(median=True), RatioGrid(training="trained"), RatioGrid(training="random")]
    paths = save_all(figures, pair, tmp_path / "new" / "figures")
    assert [p.name for p in paths] == [
        "fig1a_profiles_lite0.png", "fig1b_medians.png", "fig3_trained.png", "fig4_random.png"
    ]  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "new" / "figures").iterdir()) == sorted(p.name for p in paths)


def test_the_same_results_give_the_same_bytes_whatever_the_users_settings(pair, tmp_path):
    figures = [RatioProfiles(median=True, note="A note."), RatioGrid()]
    first = [p.read_bytes() for p in save_all(figures, pair, tmp_path)]
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "savefig.dpi": 30, "savefig.bbox": "tight"}):
        again = [p.read_bytes() for p in save_all(figures, pair, tmp_path)]
        assert mpl.rcParams["font.size"] == 30
    assert first == again
    assert not any(word in data for data in first for word in (b"Software", b"Creation", b"tIME", b"tEXt"))


def test_two_figures_of_one_name_are_refused(pair, tmp_path):
    with pytest.raises(BadInput, match=r"two figures \(a and b\) would both be saved as same.png"):
        save_all([Stem(name="a"), Stem(name="b")], pair, tmp_path)


def test_a_figures_name_is_its_files(pair, tmp_path):
    paths = save_all([Blank(), Blank(name="mine/α"), Blank(probe="ratio-cifar")], pair, tmp_path)
    assert [p.name for p in paths] == ["blank.png", "mine.png", "blank_ratio-cifar.png"]


@pytest.mark.parametrize(
    ("name", "stem"),
    [("a/b\\c", "a_b_c"), ("../up", "up"), ("hub:org/m@1", "hub_org_m_1"), ("??", "figure"), ("x" * 400, "x" * 150)],
)
def test_stems_are_safe(name, stem):
    assert safe_stem(name) == stem


def test_an_interrupted_save_leaves_the_old_file(pair, tmp_path, monkeypatch):
    (path,) = save_all([Blank()], pair, tmp_path)
    old = path.read_bytes()

    def broken(self, where, **kwargs):
        where.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Canvas, "savefig", broken)
    with pytest.raises(OSError, match="disk full"):
        save_all([Blank()], pair, tmp_path)
    assert path.read_bytes() == old


def test_a_missing_node_is_named(pair, tmp_path):
    with pytest.raises(UnknownName, match="no node 'ratoi'; did you mean 'ratio'"):
        save_all([RatioProfiles(probe="ratoi")], pair, tmp_path)


def test_a_node_without_ratios_is_refused(pair, tmp_path):
    pair["ratio"] = pair["ratio"].to_dataset().drop_vars("ratio")
    with pytest.raises(BadInput, match="holds no ratios"):
        save_all([RatioGrid()], pair, tmp_path)


def test_specs_load_no_plotting_library_and_drawing_loads_no_torch():
    code = """
import sys
import geoframe.figures.grid, geoframe.figures.profiles, geoframe.summaries.bump
assert not {"matplotlib", "xarray", "torch"} & set(sys.modules), "too much is loaded"
import geoframe.figures.style
assert "torch" not in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_check_for_readable_texts_can_fail(faults):
    figure = Canvas(figsize=(2, 1))
    figure.text(0.1, 0.5, "one")
    assert faults(figure) == []
    figure.text(0.15, 0.5, "two")
    figure.text(0.9, 0.1, "a long one")
    assert faults(figure) == ["'a long one' is cut off", "'two' overlaps 'one'"]
