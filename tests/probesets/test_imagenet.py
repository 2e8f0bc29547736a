from __future__ import annotations

import csv
import shutil

import pytest

from geoframe.errors import BadInput, MissingFile
from geoframe.probesets.imagenet import ImageNetA, ImageNetO, ImageNetSD, ImageNetVal, class_index


def test_there_are_a_thousand_classes_in_order():
    index = class_index()
    assert list(index) == sorted(index)
    assert list(index.values()) == list(range(1000))
    assert (index["n01440764"], index["n02123045"], index["n15075141"]) == (0, 281, 999)


def test_the_first_image_of_each_drawn_class(imagenet):
    images = ImageNetVal(n=6).load((3, 8, 8))
    assert len(set(images.labels)) == 6
    assert list(images.labels) == sorted(images.labels)
    for name, label in zip(images.ids, images.labels, strict=True):
        wnid, _, file = name.partition("/")
        assert class_index()[wnid] == label
        assert file == "ILSVRC2012_val_00000007.JPEG"
    assert ImageNetVal(n=6, seed=1).wnids() != ImageNetVal(n=6).wnids()
    assert ImageNetVal(n=None).count() == 40


def test_val_and_sd_share_their_classes(imagenet, tmp_path, picture):
    for wnid in set(class_index()) - set(imagenet):
        (tmp_path / "imagenet/val" / wnid).mkdir()
    sd = ImageNetSD(n=3)
    assert sd.wnids() == ImageNetVal(n=3).wnids()
    with pytest.raises(MissingFile, match=r"no folder at .*imagenet-sd: render one image"):
        sd.load((3, 8, 8))
    for wnid in sd.wnids():
        picture(f"imagenet-sd/{wnid}/1.png", seed=1)
        picture(f"imagenet-sd/{wnid}/0.png", seed=0)
    images = sd.load((3, 8, 8))
    assert images.ids == tuple(f"{wnid}/0.png" for wnid in sd.wnids())
    assert images.labels == tuple(class_index()[wnid] for wnid in sd.wnids())
    shutil.rmtree(tmp_path / "imagenet-sd" / sd.wnids()[0])
    with pytest.raises(MissingFile, match=f"no image in .*{sd.wnids()[0]}"):
        sd.load((3, 8, 8))


def test_a_part_of_the_split_that_holds_the_drawn_classes_gives_the_same_draw(imagenet, tmp_path):
    drawn = ImageNetVal(n=6).wnids()
    for wnid in imagenet[:30]:
        if wnid not in drawn:
            shutil.rmtree(tmp_path / "imagenet/val" / wnid)
    assert ImageNetVal(n=6).wnids() == drawn


def test_adversarial_and_out_of_distribution_draws(tmp_path, picture, monkeypatch):
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    wnids = list(class_index())[:5]
    for which in "ao":
        for wnid in wnids:
            for i in range(3):
                picture(f"imagenet-{which}/{wnid}/{i}.jpg", seed=i)
    a, o = ImageNetA(n=7).load((3, 8, 8)), ImageNetO(n=7).load((3, 8, 8))
    assert a.labels == tuple(class_index()[name.partition("/")[0]] for name in a.ids)
    assert o.labels == (-1,) * 7
    assert a.ids == o.ids


def test_names_are_the_papers():
    sets = ImageNetVal(), ImageNetA(), ImageNetO(), ImageNetSD(), ImageNetVal(n=8)
    assert [probeset.label for probeset in sets] == ["val64", "a64", "o64", "sd64", "val8"]
    assert len({probeset.key for probeset in sets}) == 5
    assert ImageNetVal(seed=3).coords == {"seed": 3}


@pytest.mark.parametrize(
    ("probeset", "advice"),
    [
        (ImageNetVal(), "imagenet/val: download .* https://image-net.org"),
        (ImageNetA(), "imagenet-a: download .*natural-adv-examples"),
        (ImageNetO(), "imagenet-o: download .*natural-adv-examples"),
    ],
)
def test_missing_data_say_where_they_come_from(probeset, advice, tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingFile, match=advice):
        probeset.load((3, 8, 8))
    assert probeset.count() == 64
    assert probeset.source_digest() is None


def test_bad_folders_are_one_line(imagenet, tmp_path, picture):
    with pytest.raises(BadInput, match=r"64 asked for, but there are only 40 ImageNet classes in .*val: lower n"):
        ImageNetVal().load((3, 8, 8))
    picture("flat/ILSVRC2012_val_00000001.JPEG")
    with pytest.raises(BadInput, match="no folder called by an ImageNet class"):
        ImageNetVal(root=tmp_path / "flat").load((3, 8, 8))
    (tmp_path / "hollow" / imagenet[0]).mkdir(parents=True)
    with pytest.raises(MissingFile, match=f"no image in .*{imagenet[0]}"):
        ImageNetVal(root=tmp_path / "hollow", n=1).load((3, 8, 8))


def test_a_real_sample(real_data):
    rows = csv.DictReader((real_data("imagenet-sample") / "imagenet-sample/classes.csv").read_text().splitlines())
    labels = {row["wnid"]: int(row["index"]) for row in rows}
    images = ImageNetVal(root="imagenet-sample", n=4).load((3, 64, 64))
    assert images.labels == tuple(labels[name.partition("/")[0]] for name in images.ids)
    assert ImageNetVal(root="imagenet-sample").count() == len(labels)
