"""Finding a study: by file, by file and class, or by registered name."""

from __future__ import annotations

import hashlib
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType

import attrs

from geoframe.errors import BadInput, GeoframeError, MissingFile, UnknownName, did_you_mean
from geoframe.neighbours import neighbours
from geoframe.provenance import git_commit
from geoframe.study import Study
from geoframe.study_checks import FILE_MODULE


@attrs.frozen
class FoundStudy:
    """A study class, and how to find it again.

    Attributes
    ----------
    study : type
        The subclass of `Study`.
    reference : str
        `/path/file.py::Name`, a registered name, or "" for a class that was passed as such.
    folder : Path or None
        Where its file is, for the git commit.
    """

    study: type[Study]
    reference: str = ""
    folder: Path | None = None

    @property
    def commit(self) -> str:
        """The git commit of its file's folder; of the current one, where it has no file."""
        return git_commit(self.folder or Path.cwd())


def find_study(study: str | Path | type) -> FoundStudy:
    """Load a study from `file.py`, `file.py::Name` or a registered name; a class is taken as it is.

    Raises
    ------
    BadInput
        One line that names the file and, where there is one, the line number.
    """
    if isinstance(study, type):
        if not issubclass(study, Study) or study is Study:
            raise BadInput(f"{study.__name__} is not a study: write class {study.__name__}(geoframe.Study)")
        return FoundStudy(study, folder=_folder_of(study))
    path, _, name = str(study).partition("::")
    if path.endswith(".py") or name or Path(path).is_file():
        return _from_file(Path(path), name)
    return _from_registry(path)


def _from_registry(name: str) -> FoundStudy:
    from geoframe.registry import default_registry

    try:
        study = default_registry().get("study", name)
    except UnknownName as error:
        if Path(f"{name}.py").is_file():
            raise UnknownName(f"no study {name!r}; did you mean {name}.py?") from error
        near = str(error).endswith("?")
        what = "" if near else "; a study is a file, a file.py::Name, or a name in `geoframe list`"
        raise UnknownName(f"{error}{what}") from error
    return FoundStudy(study, name, _folder_of(study))


def _from_file(path: Path, name: str) -> FoundStudy:
    if not path.is_file():
        raise MissingFile(f"no study file {path}: give the path of a .py file, or a name in `geoframe list`")
    module = _execute(path)
    studies = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Study) and value.__module__ == module.__name__
    }
    chosen = _choose(path, studies, name)
    return FoundStudy(chosen, f"{path.resolve()}::{chosen.__name__}", path.resolve().parent)


def _choose(path: Path, studies: dict[str, type[Study]], name: str) -> type[Study]:
    if name:
        if name not in studies:
            raise UnknownName(f"{path} has no study {name!r}{did_you_mean(name, studies)}")
        return studies[name]
    public = {key: study for key, study in studies.items() if not key.startswith("_")}
    if not public:
        raise BadInput(f"{path} holds no study: write class Name(geoframe.Study) with encoders, probesets and probes")
    if len(public) > 1:
        raise BadInput(
            f"{path} holds {len(public)} studies ({', '.join(public)}): choose one, {path}::{next(iter(public))}"
        )
    return next(iter(public.values()))


def _execute(path: Path) -> ModuleType:
    """Run a study file as a module of its own; a class's key doesn't depend on this module's name."""
    name = FILE_MODULE + hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()
    module = ModuleType(name)
    module.__file__ = str(path.resolve())
    code = _compile(path)
    sys.modules[name] = module
    try:
        with neighbours(path.resolve().parent):
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BadInput(f"{path}:{_line_in(error, module.__file__)}: {_cause(error)}") from error
    return module


def _compile(path: Path) -> CodeType:
    try:
        return compile(path.read_bytes(), str(path.resolve()), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno or 1}: syntax error: {error.msg}") from error
    except (ValueError, OSError) as error:
        raise BadInput(f"{path} can't be read as Python: {error}") from error


def _line_in(error: BaseException, file: str) -> int:
    """Return the last line of the study file that led to `error`."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return next((line for line in reversed(lines) if line), 1)


def _cause(error: BaseException) -> str:
    if isinstance(error, GeoframeError):
        return str(error)
    message = next((part for part in error.args if isinstance(part, str)), str(error))
    return f"{type(error).__name__}: {message}"


def _folder_of(study: type[Study]) -> Path | None:
    file = getattr(sys.modules.get(study.__module__), "__file__", None)
    return Path(file).resolve().parent if file else None
