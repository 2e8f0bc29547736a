"""Statistics of stored results: arrays below, labelled datasets above. No torch.

The functions load on first use, so that `gf.statistics.mann_whitney(…)` needs no import of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    "compare": "mann_whitney welch pearson variation mean_interval binomial_interval",
    "profile": "profile_shape BumpRule",
    "bootstrap": "median_profile",
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        from geoframe.errors import did_you_mean

        hint = "" if name.startswith("_") else did_you_mean(name, _MODULE_OF)
        raise AttributeError(f"module 'geoframe.statistics' has no attribute {name!r}{hint}")
    return getattr(import_module(f"geoframe.statistics.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
