"""Files loaded by path may import their neighbours, as a script does, and never those of another folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from geoframe.encoders.weights import file_sha256

Modules = dict[str, ModuleType]
_OF: dict[Path, Modules] = {}  # by folder: its modules, while those of another folder have their names
_CONTENTS: dict[str, str] = {}  # by path: digest of a neighbour's file when it was imported
_NEVER = {"geoframe", "__main__", "__init__"}


@contextmanager
def neighbours(folder: Path) -> Iterator[None]:
    """Let what is loaded from `folder` import modules beside it; they come first, as they do for a script.

    Modules of the same names that were imported from elsewhere are put aside in the meantime (not those of Python
    itself and of installed packages). Neighbours whose files have changed are imported anew. `sys.path` is restored.
    """
    folder = folder.resolve()
    names = _top_level(folder)
    aside = {name: module for name, module in _loaded(names).items() if not _inside(module, folder)}
    for name in aside:
        del sys.modules[name]
    sys.modules.update(_OF.pop(folder, {}))
    _forget_changed(names, folder)
    importlib.invalidate_caches()
    path, bytecode = str(folder), sys.dont_write_bytecode
    sys.path.insert(0, path)
    sys.dont_write_bytecode = True  # by its time in whole seconds, an edited neighbour would pass for the former one
    try:
        yield
    finally:
        sys.dont_write_bytecode = bytecode
        if path in sys.path:
            sys.path.remove(path)
        _put_back(aside, names, folder)


def _put_back(aside: Modules, names: set[str], folder: Path) -> None:
    """Note what was imported; where names clash, keep it for the next time, and give the names back."""
    mine = {name: module for name, module in _loaded(names).items() if _inside(module, folder)}
    for module in mine.values():
        file = getattr(module, "__file__", None)
        if file:
            _CONTENTS.setdefault(file, _digest(file))
    taken = {name.partition(".")[0] for name in aside}
    clashing = {name: module for name, module in mine.items() if name.partition(".")[0] in taken}
    for name in clashing:
        del sys.modules[name]
    if clashing:
        _OF[folder] = clashing
    sys.modules.update(aside)


def _forget_changed(names: set[str], folder: Path) -> None:
    """Where one neighbour has changed, all are imported anew: any may hold what it took from another."""
    mine = {name: module for name, module in _loaded(names).items() if _inside(module, folder)}
    files = {name: file for name, module in mine.items() if (file := getattr(module, "__file__", None))}
    if any(file in _CONTENTS and _CONTENTS[file] != _digest(file) for file in files.values()):
        for name in mine:
            del sys.modules[name]
        for file in files.values():
            _CONTENTS.pop(file, None)


def _top_level(folder: Path) -> set[str]:
    """Names that `import` finds in a folder, but for those of Python and of geoframe, which nothing may replace."""
    modules = {path.stem for path in folder.glob("*.py")}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return (modules | packages) - sys.stdlib_module_names - _NEVER


def _loaded(names: set[str]) -> Modules:
    """Return loaded modules with these top-level names, installed ones left out."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in names and not _installed(module)
    }


def _digest(file: str) -> str:
    try:
        return file_sha256(Path(file))
    except OSError:  # it is gone
        return ""


def _installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is None or bool({"site-packages", "dist-packages"} & {*Path(file).parts})


def _inside(module: ModuleType, folder: Path) -> bool:
    return Path(str(module.__file__)).resolve().is_relative_to(folder)
