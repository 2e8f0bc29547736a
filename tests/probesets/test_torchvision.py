from __future__ import annotations

import struct

import numpy as np
import pytest
import torch

from geoframe.errors import BadInput, MissingFile, UnknownName
from geoframe.probesets.torchvision import TorchvisionSet


@pytest.fixture
def mnist(tmp_path):
    """A test split of noise in MNIST's files, of the true size; a training split that is cut short."""
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (10000, 28, 28), dtype=np.uint8)
    for split, n in (("t10k", 10000), ("train", 5)):
        images = struct.pack(">IIII", 2051, n, 28, 28) + pixels[:n].tobytes()
        labels = struct.pack(">II", 2049, n) + (np.arange(n) % 10).astype(np.uint8).tobytes()
        (raw / f"{split}-images-idx3-ubyte").write_bytes(images)
        (raw / f"{split}-labels-idx1-ubyte").write_bytes(labels)
    return tmp_path, pixels


def test_a_seeded_draw(mnist):
    root, pixels = mnist
    images = TorchvisionSet("MNIST", n=12, root=root).load((1, 28, 28))
    indices = [int(name.removeprefix("test/")) for name in images.ids]
    assert indices == sorted(set(indices))
    assert images.ids[0] == f"test/{indices[0]:05d}"
    assert images.labels == tuple(i % 10 for i in indices)
    assert torch.equal(images.pixels[:, 0], torch.from_numpy(pixels[indices]) / 255)
    assert TorchvisionSet("MNIST", n=12, root=root, seed=1).chosen() != indices


def test_only_drawn_images_are_decoded(mnist, monkeypatch):
    from torchvision.datasets import MNIST

    seen, get = [], MNIST.__getitem__
    monkeypatch.setattr(MNIST, "__getitem__", lambda self, index: seen.append(index) or get(self, index))
    probeset = TorchvisionSet("MNIST", n=3, root=mnist[0])
    list(probeset.records())
    assert seen == probeset.chosen()


def test_a_cut_data_set_is_refused(mnist):
    with pytest.raises(BadInput, match=r"MNIST train at .* holds 5 images, not 60000"):
        TorchvisionSet("MNIST", split="train", root=mnist[0], n=2).load((1, 28, 28))


@pytest.mark.parametrize("dataset", ["MNIST", "FashionMNIST", "CIFAR10", "Imagenette"])
def test_missing_data_are_one_line(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path))
    probeset = TorchvisionSet(dataset, n=2)
    with pytest.raises(
        MissingFile, match=f"{dataset} is not at {tmp_path} in torchvision's layout .*: .*download=True"
    ):
        probeset.load((1, 28, 28))
    assert probeset.source_digest() is None
    assert probeset.count() == 2


def test_unknown_names_suggest_near_ones():
    with pytest.raises(UnknownName, match="no data set 'FashionMNST'; did you mean 'FashionMNIST'"):
        TorchvisionSet("FashionMNST")
    with pytest.raises(UnknownName, match="Imagenette has no split 'test'; known: train, val"):
        TorchvisionSet("Imagenette", split="test")


def test_names_coords_and_key(mnist):
    cifar = TorchvisionSet("CIFAR10", n=32)
    assert cifar.label == "cifar10-test32"
    assert cifar.coords == {"dataset": "CIFAR10", "split": "test", "seed": 0}
    assert TorchvisionSet("MNIST").coords == {"dataset": "MNIST", "split": "test"}
    assert (TorchvisionSet("MNIST").count(), TorchvisionSet("Imagenette").split) == (10000, "val")
    assert TorchvisionSet("MNIST", root=mnist[0]).key == TorchvisionSet("MNIST").key
    assert cifar.key != cifar.evolve(split="train").key


def test_the_source_digest_follows_the_splits_files(mnist):
    root, _ = mnist
    before = TorchvisionSet("MNIST", root=root).source_digest()
    (root / "MNIST/raw/train-labels-idx1-ubyte").write_bytes(b"changed")
    assert TorchvisionSet("MNIST", root=root).source_digest() == before
    (root / "MNIST/raw/t10k-labels-idx1-ubyte").write_bytes(b"changed")
    assert TorchvisionSet("MNIST", root=root).source_digest() != before


@pytest.mark.parametrize("dataset", ["MNIST", "FashionMNIST"])
def test_the_real_data(dataset, real_data):
    root = real_data(dataset)
    images = TorchvisionSet(dataset, n=40, root=root).load((1, 28, 28))
    assert len(set(images.labels)) > 5
    assert 0.05 < images.pixels.mean() < 0.5


def test_all_at_once_is_the_same_as_one_by_one(mnist):
    from geoframe.probesets.frame import load_framed

    probeset = TorchvisionSet("MNIST", n=12, root=mnist[0])
    once, each = probeset.load((1, 28, 28)), load_framed(probeset, (1, 28, 28))
    assert (once.ids, once.labels, once.digest) == (each.ids, each.labels, each.digest)
    assert probeset.load((1, 14, 14)).digest == load_framed(probeset, (1, 14, 14)).digest


def test_colour_images_come_channel_first(monkeypatch):
    from PIL import Image

    class Source:
        data = np.random.default_rng(0).integers(0, 256, (10000, 4, 4, 3), dtype=np.uint8)
        targets = list(range(10000))

        def __getitem__(self, index):
            return Image.fromarray(self.data[index]), self.targets[index]

    from geoframe.probesets.frame import load_framed

    monkeypatch.setattr(TorchvisionSet, "_open", lambda self: Source())
    probeset = TorchvisionSet("CIFAR10", n=5)
    once, each = probeset.load((3, 4, 4)), load_framed(probeset, (3, 4, 4))
    assert (once.labels, once.digest) == (each.labels, each.digest)


def test_some_of_the_draw(mnist):
    probeset = TorchvisionSet("MNIST", n=12, root=mnist[0])
    whole, places = probeset.load((1, 28, 28)), [0, 5, 11]
    assert probeset.listing() == (whole.ids, whole.labels)
    for shape in ((1, 28, 28), (1, 14, 14)):
        picked = probeset.pick(shape, places)
        assert (picked.ids, picked.labels) == probeset.listing().at(places)
        assert torch.equal(picked.pixels, probeset.load(shape).pixels[places])


def test_more_than_there_are_is_one_line(mnist):
    with pytest.raises(BadInput, match="10001 asked for, but there are only 10000 images in MNIST test"):
        TorchvisionSet("MNIST", n=10001, root=mnist[0]).load((1, 28, 28))


def test_imagenettes_labels_are_known_without_decoding(tmp_path, monkeypatch):
    class Source:
        _samples = [("a.jpeg", i % 10) for i in range(3925)]

    monkeypatch.setattr(TorchvisionSet, "_open", lambda self: Source())
    ids, labels = TorchvisionSet("Imagenette", n=3).listing()
    assert labels == tuple(int(name[-1]) for name in ids)
