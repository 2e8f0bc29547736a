"""Local complexity of ReLU networks: a probe for geoframe."""

from __future__ import annotations

from collections.abc import Iterator

import geoframe as gf


@gf.hookimpl
def geoframe_probes() -> Iterator[gf.Entry]:
    """Offer the probe; its module, and torch with it, loads on first use."""
    yield gf.Entry(
        "local-complexity",
        "geoframe_local_complexity.probe:LocalComplexityProbe",
        "activation boundaries that cross a small neighbourhood",
    )
