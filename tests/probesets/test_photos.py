from __future__ import annotations

import subprocess
import sys

import pytest

from geoframe.errors import BadInput, MissingFile, UnknownName
from geoframe.probesets import photos
from geoframe.probesets.photos import Photos


def test_all_six_photos_load():
    images = Photos().load((3, 32, 32))
    assert images.ids == ("astronaut", "chelsea", "coffee", "rocket", "china", "flower")
    assert images.labels == (-1,) * 6
    assert len({images.pixels[i].sum().item() for i in range(6)}) == 6
    assert images.digest == Photos().load((3, 32, 32)).digest


def test_the_packages_are_not_imported():
    code = (
        "import sys; from geoframe.probesets.photos import Photos; list(Photos().records());"
        "sys.exit(bool({'skimage', 'sklearn', 'pooch', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_fewer_photos():
    assert Photos(n=2).chosen() == ("astronaut", "chelsea")
    assert Photos(names="china").count() == 1
    assert Photos(n=2).key != Photos(n=3).key
    with pytest.raises(BadInput, match="7 photos asked for, but only 6"):
        Photos(n=7).count()
    with pytest.raises(BadInput, match="n=0 should be a whole number"):
        Photos(n=0)


def test_an_unknown_photo_suggests_near_ones():
    with pytest.raises(UnknownName, match="no photo 'cofee'; did you mean 'coffee'"):
        Photos(names=("cofee",))


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setattr(photos, "find_spec", lambda name: None)
    with pytest.raises(MissingFile, match=r"'china' comes with scikit-learn.*pip install 'geoframe\[demo\]'"):
        Photos(names=("china",)).load((3, 32, 32))
    assert Photos().source_digest() is None


def test_the_source_digest_follows_the_photos():
    assert Photos(n=1).source_digest() == Photos(names=("astronaut",)).source_digest()
    assert Photos(n=1).source_digest() != Photos(n=2).source_digest()
