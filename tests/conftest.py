"""Before anything imports torch: share the cores with whatever else runs."""

from __future__ import annotations

from geoframe.process import share_cores

share_cores()
