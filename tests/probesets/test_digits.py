from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.probesets import digits as module

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")


def test_pixels_and_labels_are_scikit_learns():
    from sklearn.datasets import load_digits

    source = load_digits()
    images = gf.Digits(split="train").load((1, 8, 8))
    rows = [int(name.partition("/")[2]) for name in images.ids]
    np.testing.assert_array_equal(images.pixels[:, 0].numpy() * 16, source.images[rows])
    assert list(images.labels) == source.target[rows].tolist()


def test_the_split_is_one_whatever_the_seed():
    train, test = gf.Digits(split="train"), gf.Digits()
    assert (train.count(), test.count()) == (len(train.chosen()), len(test.chosen())) == (1197, 600)
    assert not set(train.chosen()) & set(test.chosen())
    drawn = gf.Digits(n=50, seed=7)
    assert set(drawn.chosen()) <= set(test.chosen())
    assert drawn.chosen() != gf.Digits(n=50).chosen()
    assert drawn.label == "digits-test50"


def test_another_shape():
    (small,) = gf.Digits(n=1).load((1, 8, 8)).pixels
    (large,) = gf.Digits(n=1).load((3, 32, 32)).pixels
    assert large.shape == (3, 32, 32)
    assert torch.equal(large[0], large[2])
    assert abs(float(large.mean() - small.mean())) < 0.02


def test_too_many_asked_for():
    with pytest.raises(gf.BadInput, match="601 asked for, but there are only 600 digits in the test split"):
        gf.Digits(n=601).chosen()


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(gf.MissingFile, match="pip install"):
        module.digits_file()


def test_scikit_learn_is_not_imported():
    code = "import sys, geoframe as gf; gf.Digits(n=1).load((1, 8, 8)); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
