"""Drawing a study's figures from its stored results."""

from __future__ import annotations

from pathlib import Path

import attrs

from geoframe.errors import FAILURES, GeoframeError
from geoframe.store import RunFolder
from geoframe.store import open as open_results
from geoframe.study import ResolvedStudy


@attrs.define
class Drawn:
    """Figures written, and one line for each that failed."""

    figures: list[Path] = attrs.field(factory=list)
    problems: list[str] = attrs.field(factory=list)


def draw(study: ResolvedStudy, folder: RunFolder) -> Drawn:
    """Draw every figure; one that fails costs nothing but itself."""
    from geoframe.figures.figure import save_all

    tree = open_results(folder.results)
    drawn = Drawn()
    for figure in study.figures:
        try:
            drawn.figures += save_all((figure,), tree, folder.figures)
        except FAILURES as error:
            cause = str(error) if isinstance(error, GeoframeError) else f"{type(error).__name__}: {error}"
            drawn.problems.append(" ".join(f"figure {figure.label}: {cause}".split()))
    return drawn
