from __future__ import annotations

import argparse
import os
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from geoframe.encoders.reading import read_file, weights_in
from geoframe.errors import BadInput

STATE = {"fc.weight": torch.rand(2, 3), "fc.bias": torch.rand(2)}


class _Runs:
    """Unpickling this would run a command."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


class _Net(torch.nn.Module):
    def forward(self, x):
        return x


@pytest.mark.parametrize("legacy", [False, True])
def test_plain_extras_are_read(tmp_path, legacy):
    extras = {
        "epoch": 3,
        "best": np.float64(91.7),
        "steps": np.int64(5),
        "args": argparse.Namespace(lr=0.1),
        "optimizer": torch.optim.SGD([torch.nn.Parameter(torch.rand(2))], 0.1, momentum=0.9).state_dict(),
    }
    path = tmp_path / "c.pth"
    torch.save({"state_dict": STATE, **extras}, path, _use_new_zipfile_serialization=not legacy)
    content = read_file(path)
    assert content["best"] == 91.7
    assert torch.equal(weights_in(content, "auto", "c")["fc.bias"], STATE["fc.bias"])


def test_safetensors(tmp_path):
    save_file(STATE, tmp_path / "c.safetensors")
    assert torch.equal(read_file(tmp_path / "c.safetensors")["fc.weight"], STATE["fc.weight"])


def _whole_model(path):
    torch.save(_Net(), path)


def _script(path):
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.parametrize(("save", "what"), [(_whole_model, "_Net"), (_script, "TorchScript")])
def test_code_is_refused_with_a_command_that_converts(tmp_path, save, what):
    path = tmp_path / "model.pt"
    save(path)
    with pytest.raises(BadInput, match="loading it would run code") as caught:
        read_file(path)
    message = str(caught.value)
    assert what in message
    assert 'python -c "import pickle, torch' in message
    assert "\n" not in message


@pytest.mark.parametrize("legacy", [False, True])
def test_a_hostile_file_runs_nothing(tmp_path, legacy):
    path, mark = tmp_path / "bad.pth", tmp_path / "it_ran"
    torch.save({"state_dict": STATE, "x": _Runs(mark)}, path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(BadInput, match="loading it would run code"):
        read_file(path)
    path.write_bytes(pickle.dumps(_Runs(mark)))
    with pytest.raises(BadInput, match=r"loading it would run code.*pickle\.load"):
        read_file(path)
    assert not mark.exists()


def test_the_command_in_the_message_works(tmp_path):
    path = tmp_path / "bad.pth"
    torch.save({"state_dict": STATE, "x": _Runs(tmp_path / "it_ran")}, path)
    with pytest.raises(BadInput) as caught:
        read_file(path)
    code = str(caught.value).partition('python -c "')[2].rpartition('"')[0]
    exec(code, {})
    assert torch.equal(read_file(tmp_path / "bad.weights.pth")["fc.bias"], STATE["fc.bias"])


@pytest.mark.parametrize("name", ["c.pth", "c.safetensors"])
@pytest.mark.parametrize("damage", ["half", "text", "empty", "middle"])
def test_damaged_files(tmp_path, name, damage):
    path = tmp_path / name
    state = {"w": torch.rand(400, 40)}
    save_file(state, path) if name.endswith("safetensors") else torch.save(state, path)
    data = path.read_bytes()
    damaged = {"half": data[: len(data) // 2], "text": b"<html>not found</html>", "empty": b""}
    if damage == "middle" and name == "c.safetensors":
        damaged["middle"] = b"\xff" * 64 + data[64:]
    path.write_bytes(damaged.get(damage, data[:60] + b"\xff" * 200 + data[260:]))
    with pytest.raises(BadInput) as caught:
        weights_in(read_file(path), "auto", str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_the_state_dict_lies():
    for key in ("state_dict", "model", "teacher"):
        assert weights_in({"epoch": 1, key: STATE}, "auto", "f").keys() == STATE.keys()
    assert weights_in(STATE, "auto", "f").keys() == STATE.keys()
    assert weights_in({"ema_weights": STATE}, "ema_weights", "f").keys() == STATE.keys()
    with pytest.raises(BadInput, match="no key 'ema_weight'; did you mean 'ema_weights'"):
        weights_in({"ema_weights": STATE, "model": STATE}, "ema_weight", "f")
    with pytest.raises(BadInput, match=r"holds: odd\).*nested='KEY'"):
        weights_in({"odd": STATE}, "auto", "f")
    with pytest.raises(BadInput, match="holds: Tensor"):
        weights_in(torch.rand(2), "auto", "f")


@pytest.mark.parametrize("summed", [True, False])
def test_a_flipped_bit_is_noticed_where_the_file_has_checksums(tmp_path, summed):
    path = tmp_path / "c.pth"
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(summed)
    try:
        torch.save(STATE, path)
    finally:
        torch.serialization.set_crc32_options(before)
    assert torch.equal(read_file(path)["fc.weight"], STATE["fc.weight"])
    data = path.read_bytes()
    place = data.index(STATE["fc.weight"].numpy().tobytes())
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    if summed:
        with pytest.raises(BadInput, match=r"wrong checksum of c/data/0.*: it is damaged"):
            read_file(path)
    else:
        assert not torch.equal(read_file(path)["fc.weight"], STATE["fc.weight"])
