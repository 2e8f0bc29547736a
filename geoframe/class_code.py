"""The code behind a class of a user's: digests of what it consists of tell whether it has changed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from geoframe.encoders.weights import file_sha256
from geoframe.local_imports import imported_files, local_files
from geoframe.prompt_code import prompt_code


def code_of(cls: type) -> dict[str, str]:
    """Return digests of a class's code by name, {"mine.py: Smooth": …, "helpers.py": …}; nothing of geoframe's own.

    Of its own file that is the class and the definitions at top level that it refers to, directly or through one
    another: a study file may change elsewhere. Of modules beside that file which these import, it is the whole file.
    Installed packages don't count. Of a class that stands in no file it is {"__main__: Smooth": …}, see `prompt_code`.
    """
    file = _file(cls)
    if cls.__module__.partition(".")[0] == "geoframe" or (file and "site-packages" in file.parts):
        return {}
    source = file.read_text(encoding="utf-8") if file else ""
    used = _used(ast.parse(source), cls.__qualname__.partition(".")[0])
    if not file or not used:  # after `python -i file.py`, its module has a file, but the class isn't there
        return {f"{cls.__module__}: {cls.__qualname__}": prompt_code(cls)}
    lines = source.splitlines()
    text = "\n".join("\n".join(lines[_first_line(part) - 1 : part.end_lineno]) for part in used)
    module = ast.Module(list(used), type_ignores=[])
    beside = {path for near in imported_files(module, file, file.parent) for path in local_files(near)} - {file}
    return {
        f"{file.name}: {cls.__qualname__}": sha256(text.encode()).hexdigest(),
        **{path.name: file_sha256(path) for path in sorted(beside)},
    }


def _file(cls: type) -> Path | None:
    try:
        found = inspect.getsourcefile(cls)
    except (TypeError, OSError):  # typed at a prompt
        return None
    path = Path(found).resolve() if found else None
    return path if path and path.is_file() else None


def _used(tree: ast.Module, name: str) -> list[ast.stmt]:
    """Statements at top level that define a name, or what these refer to, in their order in the file."""
    defined: dict[str, list[ast.stmt]] = {}
    for part in tree.body:
        for each in _defines(part):
            defined.setdefault(each, []).append(part)
    seen, waiting, parts = {name}, [name], set[ast.stmt]()
    while waiting:
        for part in defined.get(waiting.pop(), ()):
            parts.add(part)
            names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
            waiting += names - seen
            seen |= names
    return sorted(parts, key=lambda part: part.lineno)


def _defines(part: ast.stmt) -> Iterator[str]:
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield part.name
    elif isinstance(part, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in part.names)
    else:  # an assignment, or a block with some
        yield from (
            node.id for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )


def _first_line(part: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(part, "decorator_list", [])
    return min([part.lineno, *(decorator.lineno for decorator in decorators)])
