"""What the numbers depend on besides the specs: versions, machine, git commit. No times and no paths."""

from __future__ import annotations

import platform
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from geoframe.spec import digest

LONG = 64  # items of a list from which on it is stored as a digest
PACKAGES = ("geoframe", "torch", "torchvision", "timm", "foolbox", "numpy", "pillow", "xarray", "zarr")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a number; absent ones are left out."""
    import geoframe

    found = {"python": platform.python_version(), "geoframe": geoframe.__version__}
    for name in PACKAGES:
        if name not in found:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
    return found


def readable(identity: Any) -> Any:
    """Return a spec's identity as results show it: decimals (which `float` reads back) and digests of long lists.

    Keys are made of the identity itself, where floats are hexadecimal and nothing is left out.
    """
    if isinstance(identity, dict):
        return {name: readable(value) for name, value in identity.items()}
    if isinstance(identity, list):
        if len(identity) > LONG:
            return {"items": len(identity), "digest": digest(identity)[:12]}
        return [readable(value) for value in identity]
    if isinstance(identity, str) and re.fullmatch(r"-?0x[01]\.[0-9a-f]+p[+-][0-9]+", identity):
        return float.fromhex(identity)
    return identity


@cache
def machine() -> dict[str, str]:
    """Operating system and processor architecture."""
    return {"system": platform.system(), "machine": platform.machine()}


@cache
def git_commit(folder: Path) -> str:
    """Commit of the repository that holds `folder`, "+changes" appended if files differ from it; "" outside of one."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return ""
    return commit + ("+changes" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")


def _git(folder: Path, *arguments: str) -> str:
    """Output of a git command; "" if git is absent, fails, or takes too long."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
