"""Before anything imports torch: share the cores with whatever else runs, and let no slow moment fail a test."""

from __future__ import annotations

from hypothesis import settings

from geoframe.process import share_cores

share_cores()
settings.register_profile("geoframe", deadline=None)  # machines are noisy: time is measured in benchmarks
settings.load_profile("geoframe")
