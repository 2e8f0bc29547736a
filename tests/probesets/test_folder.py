from __future__ import annotations

import os

import pytest
import torch

from geoframe.errors import BadInput, MissingFile
from geoframe.probesets import folder
from geoframe.probesets.folder import ImageFolder


@pytest.fixture
def pets(picture, tmp_path):
    for i, name in enumerate(["dog/b.png", "dog/a.JPG", "cat/deep/er/c.jpeg", "cat/d.png", "top.png"]):
        picture(f"pets/{name}", seed=i)
    (tmp_path / "pets" / "notes.txt").write_text("not an image")
    (tmp_path / "pets" / "empty").mkdir()
    for hidden in ("pets/cat/._d.png", "pets/.trash/e.png"):
        picture(hidden)
    return tmp_path / "pets"


def test_ids_are_relative_paths_and_labels_sub_folders(pets):
    images = ImageFolder(pets).load((3, 16, 20))
    assert dict(zip(images.ids, images.labels, strict=True)) == {
        "cat/d.png": 0, "cat/deep/er/c.jpeg": 0, "dog/a.JPG": 1, "dog/b.png": 1, "top.png": -1,
    }  # fmt: skip
    assert list(images.ids) == sorted(images.ids)
    assert images.pixels.shape == (5, 3, 16, 20)


def test_the_draw_keeps_labels_and_does_not_follow_the_listing_order(pets, monkeypatch):
    drawn = [ImageFolder(pets, n=2, seed=seed).files() for seed in range(8)]
    assert len({tuple(file.id for file in files) for files in drawn}) > 2
    everything = {file.id: file.label for file in ImageFolder(pets).files()}
    assert all(everything[file.id] == file.label for files in drawn for file in files)
    walk = os.walk

    def backwards(top, **kwargs):
        for where, below, files in walk(top, **kwargs):
            below.sort(reverse=True)
            yield where, below, sorted(files, reverse=True)

    monkeypatch.setattr(folder.os, "walk", backwards)
    assert [ImageFolder(pets, n=2, seed=seed).files() for seed in range(8)] == drawn


def test_where_the_folder_lies_does_not_change_the_draw(pets, tmp_path):
    before = [file.id for file in ImageFolder(pets, n=3).files()]
    pets.rename(tmp_path / "elsewhere")
    assert [file.id for file in ImageFolder(tmp_path / "elsewhere", n=3).files()] == before


def test_a_relative_root_is_looked_for_here_and_then_in_the_data_root(pets, tmp_path, monkeypatch, picture):
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert ImageFolder("pets").count() == 5
    picture("work/pets/one.png")
    assert ImageFolder("pets").count() == 1
    with pytest.raises(MissingFile, match=r"no folder at pots nor at .*pots: check the path, or set GEOFRAME_DATA"):
        ImageFolder("pots").load((3, 8, 8))
    assert ImageFolder("pots").count() is None
    assert ImageFolder("pots", n=4).count() == 4
    assert ImageFolder("pots").source_digest() is None


def test_patterns(pets):
    assert [file.id for file in ImageFolder(pets, pattern="cat/*.png").files()] == ["cat/d.png"]
    with pytest.raises(BadInput, match=r"holds no image that matches '\*\.gif'"):
        ImageFolder(pets, pattern="*.gif").load((3, 8, 8))


def test_bad_folders_are_one_line(pets, picture):
    with pytest.raises(BadInput, match=r"empty holds no image \(\.bmp"):
        ImageFolder(pets / "empty").load((3, 8, 8))
    with pytest.raises(BadInput, match=r"top\.png is a file, not a folder"):
        ImageFolder(pets / "top.png").load((3, 8, 8))
    with pytest.raises(BadInput, match=r"6 asked for, but there are only 5 images in .*pets: lower n"):
        ImageFolder(pets, n=6).load((3, 8, 8))
    broken = picture("pets/cat/z.jpg", size=(64, 64))
    broken.write_bytes(broken.read_bytes()[:900])
    with pytest.raises(BadInput, match=r"cat/z\.jpg: .*truncated"):
        ImageFolder(pets).load((3, 8, 8))


def test_names_and_coords(pets):
    assert ImageFolder(pets).label == "pets"
    assert ImageFolder(pets).coords == {}
    assert ImageFolder(pets, n=2, seed=7).coords == {"seed": 7}


def test_the_source_digest_follows_the_bytes(pets, picture):
    probeset = ImageFolder(pets)
    before = probeset.source_digest()
    assert before == probeset.source_digest()
    picture("pets/top.png", seed=99)
    assert probeset.source_digest() != before
    assert ImageFolder(pets, n=2).source_digest() != ImageFolder(pets, n=3).source_digest()


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_links_are_followed_but_not_in_circles(pets, tmp_path, picture):
    picture("far/bird/f.png")
    (pets / "bird").symlink_to(tmp_path / "far" / "bird")
    (pets / "cat" / "loop").symlink_to(pets)
    ids = [file.id for file in ImageFolder(pets).files()]
    assert "bird/f.png" in ids
    assert len(ids) == 6


def test_loading_twice_gives_the_same_bits(pets):
    first, second = (ImageFolder(pets).load((3, 8, 8)).pixels for _ in range(2))
    assert torch.equal(first, second)


def test_a_pattern_does_not_number_the_classes_anew(pets):
    everything = {file.id: file.label for file in ImageFolder(pets).files()}
    dogs = ImageFolder(pets, pattern="dog/*").files()
    assert [file.label for file in dogs] == [everything[file.id] for file in dogs] == [1, 1]


def test_a_folder_has_one_key_however_it_is_spelled(pets):
    keys = {ImageFolder(text).key for text in (str(pets), f"{pets}/", f"{pets}/./", f"{pets.parent}/x/../pets")}
    assert len(keys) == 1
