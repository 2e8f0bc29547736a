"""Reading weights without running code: safetensors, and torch files in `weights_only` mode."""

from __future__ import annotations

import argparse
import codecs
import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geoframe.errors import BadInput, did_you_mean

Weights = dict[str, torch.Tensor]
NESTS = ("state_dict", "model_state_dict", "model", "network", "net", "backbone", "encoder", "teacher")
_CONVERT = (
    'python -c "import pickle, torch; c = {read}; '
    "torch.save(c.state_dict() if hasattr(c, 'state_dict') else c.get('state_dict', c.get('model', c)), {to!r})\""
)


def _plain_globals() -> list[Any]:
    """What training scripts store beside weights and runs no code: numpy scalars and a Namespace of options."""
    multiarray = getattr(np, "_core").multiarray  # noqa: B009 - private, but what such files name
    kinds = [type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i4", "i8", "?")]
    scalars = [(multiarray.scalar, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")]
    return [*scalars, np.dtype, *kinds, (codecs.encode, "_codecs.encode"), argparse.Namespace]


def read_file(path: Path) -> Any:
    """Read a file of weights into plain containers and CPU tensors, never running code from it.

    Raises
    ------
    BadInput
        The file is damaged, is no file of weights, or needs code execution (the message has a command that
        converts it once, where it is trusted).
    """
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    try:
        _check_sums(path)
        with torch.serialization.safe_globals(_plain_globals()), warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", ".*looks like a TorchScript archive|Detected pickle protocol"
            )  # see below
            return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise _refusal(path, str(error)) from error
    except Exception as error:  # a damaged pickle can raise anything
        raise _damaged(path, error) from error


def _check_sums(path: Path) -> None:
    """Compare the checksums that torch's files carry, which its loader doesn't: a flipped bit is a wrong weight."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        if not any(entry.CRC for entry in archive.infolist()):  # torch.serialization.set_crc32_options(False)
            return
        bad = archive.testzip()
    if bad:
        raise zipfile.BadZipFile(f"wrong checksum of {bad}")


def _read_safetensors(path: Path) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path, device="cpu")
    except (SafetensorError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: object) -> BadInput:
    reason = str(error).partition("\n")[0][:120] or type(error).__name__
    return BadInput(
        f"{path} can't be read as weights ({reason}): it is damaged, incomplete or of another kind; get it again"
    )


def _refusal(path: Path, text: str) -> BadInput:
    """Tell a file that would run code from a damaged one, by what torch's safe loader said."""
    wants = re.search(r"(?:global: GLOBAL|unsupported GLOBAL|Unsupported class) (\S+)", text)
    with path.open("rb") as file:
        pickled = file.read(2) in (b"\x80\x03", b"\x80\x04", b"\x80\x05")  # torch writes protocol 2
    if wants:
        what = wants.group(1)
    elif "TorchScript" in text:
        what = "TorchScript code"
    elif pickled or "Can only" in text:
        what = "pickled objects"
    else:
        reason = re.search(r"WeightsUnpickler error:\s*([^\n]+)", text)
        return _damaged(path, reason.group(1) if reason else text)
    name = str(path)
    read = f"pickle.load(open({name!r}, 'rb'))" if pickled else f"torch.load({name!r}, 'cpu', weights_only=False)"
    command = _CONVERT.format(read=read, to=str(path.with_suffix(".weights.pth")))
    return BadInput(
        f"{path} holds more than weights ({what}), and loading it would run code: refused. "
        f"If you trust it, convert it once, in a place where that may happen: {command}"
    )


def _is_weights(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(v, torch.Tensor) for v in value.values())


def weights_in(content: Any, nested: str | None, where: str) -> Weights:
    """Return the state dict in what a file holds: itself, or what lies under the key `nested`.

    Parameters
    ----------
    content : object
        What `read_file` returned.
    nested : str or None
        Key of the state dict; "auto" looks under the usual keys; None takes the content itself.
    where : str
        The file, for messages.
    """
    found = content
    if nested == "auto" and not _is_weights(content) and isinstance(content, Mapping):
        found = next((content[key] for key in NESTS if _is_weights(content.get(key))), None)
    elif nested not in ("auto", None):
        if not isinstance(content, Mapping) or nested not in content:
            keys = map(str, content) if isinstance(content, Mapping) else ()
            raise BadInput(f"{where} has no key {nested!r}{did_you_mean(str(nested), keys)}")
        found = content[nested]
    if not _is_weights(found):
        holds = ", ".join(map(str, list(content)[:8])) if isinstance(content, Mapping) else type(content).__name__
        raise BadInput(f"{where} holds no state dict that geoframe finds (it holds: {holds}): say nested='KEY'")
    return {str(key): value for key, value in found.items() if isinstance(value, torch.Tensor)}
