"""Before anything imports torch: share the cores with whatever else runs, and let no slow moment fail a test."""

from __future__ import annotations

import os

from hypothesis import settings

from geoframe.process import share_cores

share_cores()
if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0)):
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
settings.register_profile("geoframe", deadline=None)  # machines are noisy: time is measured in benchmarks
settings.load_profile("geoframe")
