"""`FactoryEncoder`: what an importable function builds."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from geoframe.encoder import Coord, Encoder
from geoframe.encoders.building import clean_build
from geoframe.encoders.model import Model, ModelEncoder, as_dict
from geoframe.encoders.weights import file_sha256, first_file
from geoframe.errors import FAILURES, BadInput, MissingFile, UnknownName, did_you_mean
from geoframe.local_imports import local_files
from geoframe.neighbours import neighbours
from geoframe.spec import digest, unkeyed


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
        Its arguments. One that names a file (seen from here, or from the function's file) counts as a source:
        cells are measured again when the file changes.
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
        """Digest of `source_files`; of a function's file alone, its sha256."""
        files = self.source_files()
        return next(iter(files.values())) if len(files) == 1 else digest(files) if files else None

    def source_files(self) -> dict[str, str]:
        """sha256 by name: the function's file if given by path, what it imports beside it, files named in `kwargs`."""
        path = self._path()
        if path and not path.is_file():
            return {}
        files = local_files(path) if path else []
        code = {file.relative_to(files[0].parent).as_posix(): file_sha256(file) for file in files}
        return {**code, **_named_files(self.kwargs, files[0].parent if files else None)}

    def check_source(self) -> None:
        """Refuse a function that can't be imported."""
        self._function()

    def build_model(self) -> Model:
        """Call the function."""
        import torch

        function = self._function()
        try:
            with self._neighbours(), clean_build(self.seed):
                module = function(**self.kwargs)
        except FAILURES as error:  # the user's code can raise anything
            raise BadInput(f"{self.factory} failed: {type(error).__name__}: {error}") from error
        if not isinstance(module, torch.nn.Module):
            raise BadInput(f"{self.factory} returned a {type(module).__name__}, not a torch.nn.Module")
        assert self.input_shape is not None
        return self.framed(module, self.input_shape, 0.0, 1.0, f"{self.factory}, seed {self.seed}")

    def _neighbours(self) -> AbstractContextManager[None]:
        path = self._path()
        return neighbours(path.parent) if path else nullcontext()

    def _path(self) -> Path | None:
        place = self.factory.rpartition(":")[0]
        return Path(place).expanduser() if place.endswith(".py") else None

    def _function(self) -> Callable[..., Any]:
        place, _, name = self.factory.rpartition(":")
        path = self._path()
        if path and not path.is_file():
            raise MissingFile(f"no file {path} with the factory {name!r}: correct the path in {self.factory!r}")
        try:
            with self._neighbours():
                module = _import_file(path) if path else importlib.import_module(place)
        except FAILURES as error:  # the user's code can raise anything
            raise BadInput(f"can't import {place} for {self.factory!r}: {type(error).__name__}: {error}") from error
        function: Callable[..., Any] | None = getattr(module, name, None)
        if not callable(function):
            known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
            raise UnknownName(f"{place} has no function {name!r}{did_you_mean(name, known)}")
        return function


def _import_file(path: Path) -> ModuleType:
    """Import a file under a name of its own; it and its neighbours with the same contents are imported once."""
    contents = digest({str(file): file_sha256(file) for file in local_files(path)})
    name = f"geoframe_file_{contents}"
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


def _named_files(value: Any, folder: Path | None) -> dict[str, str]:
    """sha256 of the files that texts and paths in arguments name, by what names them."""
    places = [Path(), *([folder] if folder else [])]
    found = {text: _file(text, places) for text in _texts(value)}
    return {text: file_sha256(file) for text, file in found.items() if file}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str):
            yield text


def _file(text: str, places: list[Path]) -> Path | None:
    try:
        return first_file(place / text for place in places)
    except (OSError, ValueError):  # too long for a name, say
        return None
