from __future__ import annotations

import os

import pytest
import torch

import geoframe as gf
from geoframe.encoders.weights import file_sha256
from geoframe.models.cifar_resnet import resnet20

NET = gf.FactoryEncoder("geoframe.models.cifar_resnet:resnet20", input_shape=(3, 32, 32), training="random")


@pytest.fixture
def state():
    torch.manual_seed(7)
    return resnet20().state_dict()


def _encoder(file, **kwargs):
    return gf.CheckpointEncoder(NET, file=file, **kwargs)


def _check(network, state):
    whole = {**network.features.state_dict(), "linear.weight": network.head.weight, "linear.bias": network.head.bias}
    assert whole.keys() == state.keys()
    assert all(torch.equal(whole[key], value) for key, value in state.items())


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.module.", "model.backbone."])
def test_usual_prefixes_go_by_themselves(weights, state, prefix):
    path = weights / "net.pth"
    torch.save({"epoch": 1, "state_dict": {prefix + k: v for k, v in state.items()}}, path)
    _check(_encoder(path).build(), state)


def test_looked_for_as_given_then_among_the_weights(weights, state, tmp_path, monkeypatch):
    torch.save(state, weights / "net.pth")
    for file in ("net.pth", "elsewhere/net.pth", weights / "net.pth"):
        encoder = _encoder(file)
        assert encoder.build().source == str(weights / "net.pth")
        assert encoder.source_digest() == file_sha256(weights / "net.pth")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.pth").write_bytes((weights / "net.pth").read_bytes())
    assert _encoder("net.pth").build().source == "net.pth"


def test_download_once(weights, state, tmp_path):
    source = tmp_path / "server" / "net.pth"
    source.parent.mkdir()
    torch.save(state, source)
    encoder = gf.CheckpointEncoder(NET, url=source.as_uri(), sha256=file_sha256(source))
    assert encoder.source_digest() is None
    _check(encoder.build(), state)
    source.unlink()
    _check(encoder.build(), state)
    assert [p.name for p in weights.iterdir()] == ["net.pth"]


def test_a_failed_download_names_url_page_and_place(weights):
    url = "http://127.0.0.1:9/net.pth?x=1"
    encoder = gf.CheckpointEncoder(NET, url=url, page="https://example.org/nets", name="mine")
    with pytest.raises(gf.MissingFile) as caught:
        encoder.build()
    message = str(caught.value)
    for part in ("'mine'", url, "https://example.org/nets", str(weights / "net.pth"), "refused"):
        assert part in message
    assert "\n" not in message
    assert not list(weights.iterdir())


def test_a_download_that_is_another_file_is_not_kept(weights, tmp_path):
    source = tmp_path / "net.pth"
    source.write_bytes(b"other")
    encoder = gf.CheckpointEncoder(NET, url=source.as_uri(), file="kept.pth", sha256="0" * 64)
    with pytest.raises(gf.BadInput, match="not the file meant"):
        encoder.build()
    assert not list(weights.iterdir())


def test_a_missing_file_says_where_it_was_looked_for(weights):
    with pytest.raises(gf.MissingFile, match=r"no file at no/net.pth nor at") as caught:
        _encoder("no/net.pth", page="https://example.org").check_source()
    assert str(weights / "net.pth") in str(caught.value)
    assert "get it from https://example.org" in str(caught.value)


def test_wrong_digest(weights, state):
    torch.save(state, weights / "net.pth")
    _encoder("net.pth", sha256=file_sha256(weights / "net.pth")[:8]).build()
    with pytest.raises(gf.BadInput, match=r"has sha256 .*, not 12345678"):
        _encoder("net.pth", sha256="12345678").build()


def test_the_digest_follows_the_file(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one")
    first = file_sha256(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert file_sha256(path) != first


def test_renaming_in_order_and_dropping(weights, state):
    renamed = {f"net.{k}".replace("layer", "stage"): v for k, v in state.items()}
    torch.save({**renamed, "projector.0.weight": torch.rand(2), "net.extra": torch.rand(1)}, weights / "net.pth")
    rules = {r"^net\.": "", r"stage(\d)": r"layer\1", "^projector": None, "^extra$": ""}
    _check(_encoder("net.pth", rename=rules).build(), state)
    assert _encoder("n", rename=rules).key != _encoder("n", rename=dict(reversed(rules.items()))).key
    with pytest.raises(gf.BadInput, match="two keys turn into"):
        _encoder("net.pth", rename={".*": "same"}).build()
    with pytest.raises(gf.BadInput, match=r"'\(' is not a regular expression"):
        _encoder("net.pth", rename={"(": ""}).build()


def test_matching_by_order(weights, state):
    shuffled = {f"t{i}": v for i, v in enumerate(state.values())}
    torch.save(shuffled, weights / "net.pth")
    _check(_encoder("net.pth", match="order").build(), state)
    torch.save(dict(reversed(shuffled.items())), weights / "net.pth")
    with pytest.raises(gf.BadInput, match="of another shape"):
        _encoder("net.pth", match="order").build()
    del shuffled["t0"]
    torch.save(shuffled, weights / "net.pth")
    with pytest.raises(gf.BadInput, match=r"holds \d+ tensors, the architecture \d+"):
        _encoder("net.pth", match="order").build()


@pytest.mark.parametrize("match", ["keys", "order"])
def test_old_files_without_batch_counters(weights, state, match):
    old = {k: v for k, v in state.items() if not k.endswith("num_batches_tracked")}
    torch.save(old, weights / "net.pth")
    _check(_encoder("net.pth", match=match).build(), state)


def test_half_precision_weights_are_loaded_in_float32(weights, state):
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in state.items()}, weights / "net.pth")
    network = _encoder("net.pth").build()
    assert network.features.conv1.weight.dtype == torch.float32
    assert torch.equal(network.features.conv1.weight, state["conv1.weight"].half().float())


def test_a_file_without_the_classifier_gives_no_head(weights, state):
    del state["linear.weight"], state["linear.bias"]
    torch.save(state, weights / "net.pth")
    network = _encoder("net.pth").build()
    assert network.head is None
    assert network.layer == "linear"
    assert network.features(torch.rand(1, 3, 32, 32)).shape == (1, 64)


def test_keys_that_do_not_fit_are_named(weights, state):
    state["layer9.weight"] = state.pop("layer1.0.conv1.weight")
    state["bn1.bias"] = torch.rand(3)
    torch.save(state, weights / "net.pth")
    with pytest.raises(gf.BadInput, match="rename=") as caught:
        _encoder("net.pth").build()
    message = str(caught.value)
    for part in (
        "1 missing (layer1.0.conv1.weight)",
        "1 not expected (layer9.weight)",
        "bn1.bias (3,) for (16,)",
        str(weights / "net.pth"),
    ):
        assert part in message
    del state["linear.bias"]  # half a classifier is an error, not a file without one
    torch.save(state, weights / "net.pth")
    with pytest.raises(gf.BadInput, match="2 missing"):
        _encoder("net.pth").build()


def test_frame_coords_names():
    encoder = _encoder("a/net.pth", mean=0.3, training="noise", epsilon=0.5, extra_coords={"step": 10})
    assert encoder.label == "resnet20"
    assert encoder.coords == {
        "architecture": "resnet20",
        "weights": "net.pth",
        "training": "noise",
        "epsilon": 0.5,
        "step": 10,
    }
    random = encoder.randomised()
    assert random.label == "resnet20"
    assert random.coords["training"] == "random"
    assert random.key == NET.evolve(mean=0.3).key
    assert random.build().mean == 0.3


def test_it_can_say_what_it_was_trained_on(weights, state):
    torch.save(state, weights / "net.pth")
    images = gf.TensorSet(torch.rand(4, 3, 32, 32), labels=[0, 1, 0, 1], name="some")
    encoder = _encoder("net.pth", trained_on=images)
    assert encoder.training_set is images
    assert encoder.load().training_set is images
    assert _encoder("net.pth").load().training_set is None
    assert encoder.key != _encoder("net.pth").key
    assert "trained_on" not in _encoder("net.pth").identity()["fields"]
    with pytest.raises(gf.BadInput, match="trained_on"):
        _encoder("net.pth", trained_on="cifar10")


def test_keys():
    key = _encoder("net.pth").key
    assert _encoder("net.pth", name="n", training="t", epsilon=1.0, extra_coords={"a": 1}, page="p").key == key
    others = [
        {"mean": 0.5},
        {"sha256": "ab"},
        {"match": "order"},
        {"nested": "m"},
        {"url": "https://u/u"},
        {"head": None},
    ]
    assert len({key, *(_encoder("net.pth", **other).key for other in others)}) == len(others) + 1
    assert _encoder("a", sha256="ab").key == _encoder("b", sha256="ab", url="https://u/u").key


def test_bad_specs():
    with pytest.raises(gf.BadInput, match="needs file="):
        gf.CheckpointEncoder(NET)
    with pytest.raises(gf.BadInput, match="'keys' or 'order'"):
        _encoder("f", match="shape")
    with pytest.raises(gf.BadInput, match=r"architecture is .* not a str"):
        gf.CheckpointEncoder("resnet50", file="f")


def test_it_loads(weights, state):
    torch.save(state, weights / "net.pth")
    loaded = _encoder("net.pth").load()
    assert loaded.logits(torch.rand(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense.pth", "url='nonsense.pth' is no address: write https://…"),
        ("htp://example.org/net.pth", "is no address"),
        ("https://example.org", "ends in no file name: say file='…' too"),
    ],
)
def test_an_address_that_gives_no_file_is_refused(url, message):
    with pytest.raises(gf.BadInput, match=message):
        gf.CheckpointEncoder(NET, url=url)
