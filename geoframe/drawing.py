"""Drawing a study's figures from its stored results."""

from __future__ import annotations

from pathlib import Path

import attrs

from geoframe.cells import Failure
from geoframe.errors import FAILURES
from geoframe.problems import problem
from geoframe.store import RunFolder
from geoframe.store import open as open_results
from geoframe.study import ResolvedStudy


@attrs.define
class Drawn:
    """Figures written, and why others failed."""

    figures: list[Path] = attrs.field(factory=list)
    problems: list[Failure] = attrs.field(factory=list)


def draw(study: ResolvedStudy, folder: RunFolder) -> Drawn:
    """Draw every figure; one that fails costs nothing but itself."""
    from geoframe.figures.figure import save_all

    tree = open_results(folder.results)
    drawn = Drawn()
    for figure in study.figures:
        try:
            drawn.figures += save_all((figure,), tree, folder.figures)
        except FAILURES as error:
            drawn.problems.append(problem(f"figure {figure.label}", error, tree.children))
    return drawn
