"""Files that a Python file imports from its own folder, found without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def local_files(path: Path) -> list[Path]:
    """Return a file, and the modules beside it that it imports, directly or through one another.

    Imports inside functions count; what a string names (`importlib.import_module("x")`) doesn't.
    """
    first = path.resolve()
    root, found, waiting = first.parent, {first: None}, [first]
    while waiting:
        for file in _imported(waiting.pop(), root):
            if file not in found:
                found[file] = None
                waiting.append(file)
    return [first, *sorted(file for file in found if file != first)]


def _imported(file: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError):  # importing it will say what is wrong
        return
    yield from imported_files(tree, file, root)


def imported_files(tree: ast.Module, file: Path, root: Path) -> Iterator[Path]:
    """Yield the files that statements of `file` import from the folder `root`, or relative to the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else root
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _files(base, [*parts, alias.name])


def _files(base: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files that importing a dotted name under `base` runs; its last part may be no module."""
    for part in parts:
        module, package = base / f"{part}.py", base / part
        if (package / "__init__.py").is_file():
            yield package / "__init__.py"
        elif module.is_file():
            yield module
            return
        if not package.is_dir():
            return
        base = package
