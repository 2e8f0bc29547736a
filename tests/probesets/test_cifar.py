from __future__ import annotations

import numpy as np
import pytest

from geoframe.errors import BadInput, MissingFile, UnknownName
from geoframe.probesets.blurred import Blurred
from geoframe.probesets.cifar import STAND_IN, Cifar10Jpeg, cifar10, stand_in_note
from geoframe.probesets.crops import PhotoCrops
from geoframe.probesets.folder import ImageFolder
from geoframe.probesets.noise import NoiseImages, NoiseSet
from geoframe.probesets.published import (
    cifar_evaluation_sets,
    cifar_training_sets,
    photo_evaluation_sets,
    treated,
)
from geoframe.probesets.relabelled import PermutedLabels
from geoframe.probesets.torchvision import TorchvisionSet


@pytest.fixture
def jpegs(tmp_path, picture, monkeypatch):
    """$GEOFRAME_DATA with a tiny stand-in: 3 classes, 4 images each, in both splits."""
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    for s, split in enumerate(("train", "test")):
        for c, name in enumerate(("bird", "airplane", "truck")):
            for i in range(4):
                picture(f"cifar10-jpeg/{split}/{name}/{i:04d}.jpg", size=(32, 32), seed=100 * s + 10 * c + i)
    return tmp_path


def test_labels_are_cifars_and_ids_tell_the_split(jpegs):
    images = Cifar10Jpeg("train").load((3, 32, 32))
    assert images.ids[::4] == ("train/airplane/0000.jpg", "train/bird/0000.jpg", "train/truck/0000.jpg")
    assert images.labels == (0,) * 4 + (2,) * 4 + (9,) * 4
    assert Cifar10Jpeg("train").listing() == (images.ids, images.labels)
    assert not set(images.ids) & set(Cifar10Jpeg("test").listing().ids)
    plain = ImageFolder("cifar10-jpeg/train").load((3, 32, 32))
    assert plain.digest == images.digest
    assert plain.labels == (0,) * 4 + (1,) * 4 + (2,) * 4  # by the folders that are there


def test_a_draw_of_the_stand_in(jpegs):
    few, more = Cifar10Jpeg(n=3).listing().ids, Cifar10Jpeg(n=6).listing().ids
    assert set(few) <= set(more)
    assert (len(few), Cifar10Jpeg(n=3).count(), Cifar10Jpeg().count()) == (3, 3, 12)
    (jpegs / "cifar10-jpeg/test/other").mkdir()
    (jpegs / "cifar10-jpeg/test/truck/0000.jpg").rename(jpegs / "cifar10-jpeg/test/other/0000.jpg")
    assert Cifar10Jpeg().count() == 11  # no class of CIFAR-10


def test_the_exact_images_come_first(jpegs):
    assert isinstance(cifar10("test", n=4), TorchvisionSet)
    found = cifar10("train", n=4, seed=2, stand_in=True)
    assert found.key == Cifar10Jpeg("train", n=4, seed=2).key
    (jpegs / "cifar-10-batches-py").mkdir()
    exact = cifar10("train", n=4, seed=2, stand_in=True)
    assert exact.key == TorchvisionSet("CIFAR10", split="train", n=4, seed=2).key
    assert "stand_in" not in exact.coords


def test_without_any_data_the_error_is_about_the_exact_images(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    with pytest.raises(MissingFile, match=r"CIFAR10 is not at .* in torchvision's layout"):
        cifar10(stand_in=True).load((3, 32, 32))
    with pytest.raises(MissingFile, match=r"no folder at .*cifar10-jpeg/test.*: put CIFAR-10 as JPEG files there"):
        Cifar10Jpeg().load((3, 32, 32))
    assert (Cifar10Jpeg().count(), Cifar10Jpeg(n=3).count(), Cifar10Jpeg().source_digest()) == (None, 3, None)
    (tmp_path / "cifar10-jpeg/test").mkdir(parents=True)
    with pytest.raises(BadInput, match="holds no image in a folder called by a class of CIFAR-10"):
        Cifar10Jpeg().load((3, 32, 32))
    with pytest.raises(UnknownName, match="CIFAR10 has no split 'trian'; did you mean 'train'"):
        Cifar10Jpeg("trian")


def test_the_stand_in_says_so(jpegs):
    stand_in = Cifar10Jpeg(n=3)
    assert stand_in.coords == {"dataset": "CIFAR10", "split": "test", "stand_in": STAND_IN, "seed": 0}
    assert (stand_in.label, stand_in.classes()) == ("cifar10-jpeg-test3", 10)
    for wrapped in (Blurred(stand_in, 1), PermutedLabels(stand_in)):
        assert wrapped.coords["stand_in"] == STAND_IN
    assert stand_in_note(stand_in, Blurred(stand_in, 1)) == "JPEG stand-in: low-passed."
    assert stand_in_note(stand_in, NoiseSet(2)) == "JPEG stand-in: low-passed (cifar10-jpeg-test3)."
    assert stand_in_note(NoiseSet(2)) == stand_in_note() == ""


def test_the_six_evaluation_sets(jpegs):
    sets = cifar_evaluation_sets()
    assert list(sets) == ["cifar32", "cifar32train", "cifar32b1", "cifar32b2", "noise32", "noise32train"]
    assert [probeset.label for probeset in sets.values()] == list(sets)
    assert {probeset.count() for probeset in sets.values()} == {32}
    assert len({probeset.key for probeset in sets.values()}) == 6
    assert sets["cifar32"].key == TorchvisionSet("CIFAR10", n=32).key
    assert [sets[name].coords.get("split") for name in ("cifar32", "cifar32train")] == ["test", "train"]
    assert [sets[name].sigma for name in ("cifar32b1", "cifar32b2")] == [1, 2]


def test_evaluation_sets_of_the_stand_in_load_and_share_images(jpegs):
    sets = cifar_evaluation_sets(n=4, stand_in=True)
    loaded = {name: probeset.load((3, 32, 32)) for name, probeset in sets.items()}
    assert loaded["cifar4"].ids == loaded["cifar4b1"].ids == loaded["cifar4b2"].ids
    deviations = [float(loaded[name].pixels.std()) for name in ("cifar4", "cifar4b1", "cifar4b2")]
    assert deviations == sorted(deviations, reverse=True)
    assert loaded["cifar4train"].ids[0].startswith("train/")
    training = cifar_training_sets(stand_in=True)["random-data"].load((3, 32, 32))
    assert loaded["noise4train"].ids == training.ids[:4]
    assert np.array_equal(loaded["noise4train"].pixels, training.pixels[:4])
    assert not set(loaded["noise4"].ids) & set(training.ids)


def test_the_training_sets(jpegs):
    sets = cifar_training_sets(stand_in=True)
    assert list(sets) == ["clean", "random-labels", "random-data", "blur1", "blur2"]
    clean, random = sets["clean"].load((3, 32, 32)), sets["random-labels"].load((3, 32, 32))
    assert (random.digest, sorted(random.labels)) == (clean.digest, sorted(clean.labels))
    assert random.labels != clean.labels
    assert isinstance(sets["random-data"], NoiseImages)
    assert [sets[name].sigma for name in ("blur1", "blur2")] == [1, 2]
    assert {probeset.count() for probeset in cifar_training_sets().values()} == {50000}


def test_a_part_is_the_same_images_under_every_treatment(jpegs):
    sets = cifar_training_sets(n=9, stand_in=True)
    loaded = {name: probeset.load((3, 32, 32)) for name, probeset in sets.items()}
    clean = loaded["clean"]
    for name in ("random-labels", "blur1", "blur2"):
        assert loaded[name].ids == clean.ids
    assert loaded["blur1"].labels == loaded["random-data"].labels == clean.labels
    assert sorted(loaded["random-labels"].labels) == sorted(clean.labels)
    evaluation = cifar_evaluation_sets(n=4, stand_in=True, trained_on=9)
    assert set(evaluation["cifar4train"].load((3, 32, 32)).ids) < set(clean.ids)
    assert evaluation["noise4train"].load((3, 32, 32)).ids == loaded["random-data"].ids[:4]


def test_photo_sets_are_the_like():
    sets = photo_evaluation_sets(n=6)
    assert list(sets) == ["photo6", "photo6train", "photo6b1", "photo6b2", "noise6", "noise6train"]
    train = treated(PhotoCrops(split="train", n=12))
    assert set(sets["photo6train"].listing().ids) < set(train["clean"].listing().ids)
    assert sets["noise6train"].listing().ids == train["random-data"].listing().ids[:6]


def test_the_real_stand_in(real_data, monkeypatch):
    monkeypatch.setenv("GEOFRAME_DATA", str(real_data("cifar10-jpeg")))
    images = Cifar10Jpeg(n=40).load((3, 32, 32))
    assert len(set(images.labels)) > 5
    assert (Cifar10Jpeg("train").count(), Cifar10Jpeg().count()) == (10000, 2000)
