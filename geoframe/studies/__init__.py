"""The studies that reproduce the papers' results, one file a result.

A wheel carries the files in this package; a checkout keeps them in its top-level `studies/`, for people
to read and copy, and this package looks there too.
"""

from __future__ import annotations

from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]
if (_CHECKOUT / "pyproject.toml").is_file() and (_CHECKOUT / "studies").is_dir():
    __path__.append(str(_CHECKOUT / "studies"))
