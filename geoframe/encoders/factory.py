"""`FactoryEncoder`: what an importable function builds."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from geoframe.encoder import Coord, Encoder
from geoframe.encoders.building import clean_build
from geoframe.encoders.model import Model, ModelEncoder, as_dict
from geoframe.encoders.weights import file_sha256
from geoframe.errors import FAILURES, BadInput, MissingFile, UnknownName, did_you_mean
from geoframe.spec import unkeyed


def _check_target(_spec: object, _field: object, value: str) -> None:
    if not all(part.strip() for part in str(value).rpartition(":")):
        raise BadInput(f"factory is 'package.module:function' or 'path/to/file.py:function', not {value!r}")


@attrs.frozen(slots=False, eq=False)
class FactoryEncoder(ModelEncoder):
    """A module built by a function of yours, so that runs can be resumed and repeated in other processes.

    Attributes
    ----------
    factory : str
        "package.module:function" or "path/to/file.py:function"; the function returns a `torch.nn.Module` that maps
        normalised images (n, channel, height, width) to logits (n, class), or to features with `head=None`.
    kwargs : mapping
        Its arguments.
    seed : int
        Seed of Python's, numpy's and torch's generators while it runs.
    training : str or None
        What the network was trained for or by, a label beside the results; "random" where it wasn't.
    """

    factory: str = attrs.field(validator=_check_target)
    kwargs: Mapping[str, Any] = attrs.field(factory=dict, converter=as_dict, kw_only=True)
    seed: int = attrs.field(default=0, kw_only=True)
    training: str | None = unkeyed(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.input_shape is None:
            raise BadInput(f"FactoryEncoder({self.factory!r}) needs input_shape=(channel, height, width)")

    @property
    def architecture(self) -> str:
        """The function's name."""
        return self.factory.rpartition(":")[2]

    def default_name(self) -> str:
        """Return the function's name, `-random` appended where `training` says so."""
        return f"{self.architecture}-random" if self.training == "random" else self.architecture

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture (the function's name), training where it is said, and seed."""
        training = {} if self.training is None else {"training": self.training}
        return {"architecture": self.architecture, **training, "seed": self.seed}

    def for_timing(self) -> Encoder:
        """Return itself: what a function of the user's builds costs is known by calling it only."""
        return self

    def source_digest(self) -> str | None:
        """sha256 of the file that holds the function, where it was given by path."""
        path = self._path()
        return file_sha256(path) if path and path.is_file() else None

    def check_source(self) -> None:
        """Refuse a function that can't be imported."""
        self._function()

    def build_model(self) -> Model:
        """Call the function."""
        import torch

        function = self._function()
        try:
            with clean_build(self.seed):
                module = function(**self.kwargs)
        except FAILURES as error:  # the user's code can raise anything
            raise BadInput(f"{self.factory} failed: {type(error).__name__}: {error}") from error
        if not isinstance(module, torch.nn.Module):
            raise BadInput(f"{self.factory} returned a {type(module).__name__}, not a torch.nn.Module")
        assert self.input_shape is not None
        return self.framed(module, self.input_shape, 0.0, 1.0, f"{self.factory}, seed {self.seed}")

    def _path(self) -> Path | None:
        place = self.factory.rpartition(":")[0]
        return Path(place).expanduser() if place.endswith(".py") else None

    def _function(self) -> Callable[..., Any]:
        place, _, name = self.factory.rpartition(":")
        path = self._path()
        if path and not path.is_file():
            raise MissingFile(f"no file {path} with the factory {name!r}: correct the path in {self.factory!r}")
        try:
            module = _import_file(path) if path else importlib.import_module(place)
        except FAILURES as error:  # the user's code can raise anything
            raise BadInput(f"can't import {place} for {self.factory!r}: {type(error).__name__}: {error}") from error
        function: Callable[..., Any] | None = getattr(module, name, None)
        if not callable(function):
            known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
            raise UnknownName(f"{place} has no function {name!r}{did_you_mean(name, known)}")
        return function


def _import_file(path: Path) -> ModuleType:
    """Import a file under a name of its own; the same contents are imported once."""
    digest = hashlib.blake2b(f"{path.resolve()} {file_sha256(path)}".encode(), digest_size=8).hexdigest()
    name = f"geoframe_file_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
