"""Coverage of images from elsewhere beside that of a classifier's own data (Neural Expansion, I.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from geoframe.figures import select
from geoframe.figures.coverage import MARKER, Limits, Sample, points
from geoframe.figures.figure import Figure, safe_stem

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

ABOUT = 0.7  # half the height, in %, of the line that stands for "about 10 %"


@attrs.frozen(kw_only=True)
class OodCoverage(Figure):
    """Same-class coverage of each classifier on its own data's test images and on images of other data sets.

    All images of a set together; hollow where the weights are initial. Sets, or encoders, that don't name their data
    set are left out.
    """

    probe: str = "coverage"

    def default_name(self) -> str:
        """Return what errors call the figure."""
        return "ood_coverage"

    @property
    def caption(self) -> str:
        """What is drawn."""
        return (
            f"Same-class rays to test images; dots: test images; {MARKER}; hollow: initial weights. Blue: the "
            "classifier's own data set; other colours: from elsewhere, whatever the labels. Shaded: Neural Expansion, "
            "trained networks, own data 89–96 % (F.1), and CIFAR-10, grey and 28×28, on an MNIST MLP about 10 % (I.4)."
        )

    def draw(self, tree: xr.DataTree) -> dict[str, matplotlib.figure.Figure]:
        """Draw one figure; nothing where no encoder was measured on images from elsewhere."""
        from geoframe.figures.style import style
        from geoframe.summaries.ood import measured_sets, ray_coverage, texts_along

        coverage = ray_coverage(tree, self.probe)
        random = dict(zip(map(str, coverage["encoder"].values), select.is_random(coverage), strict=True))
        groups = {}
        for encoder, is_random in random.items():
            inside, outside = measured_sets(coverage, encoder)
            if outside:
                samples = _samples(coverage.sel(encoder=encoder), inside, outside, is_random)
                counts = " / ".join(str(np.isfinite(values).sum()) for _, values, _ in samples)
                groups[f"{encoder}\n{counts} images"] = samples
        if not groups:
            return {}
        notes = sorted({text for text in texts_along(coverage, "probeset", "stand_in") if text})
        with style():
            footnote = self.footnote(*(f"{text}." for text in notes))
            return {safe_stem(self.label): points(groups, "covered rays (%)", footnote, _published())}


def _samples(coverage: xr.DataArray, inside: list[str], outside: list[str], random: bool) -> list[Sample]:
    """Coverages in % of one encoder, its own data first."""
    from geoframe.figures.style import MARKERS, PALETTE, wrap

    samples: list[Sample] = []
    for place, name in [*((0, name) for name in inside), *enumerate(outside, 1)]:
        colour, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
        look = {"color": colour, "marker": marker, "markerfacecolor": "white" if random else colour}
        samples.append((wrap(name, 30), 100 * coverage.sel(probeset=name).values, look))
    return samples


def _published() -> list[tuple[str, str, Limits]]:
    from geoframe.figures.style import PALETTE
    from geoframe.summaries.ood import INSIDE, OUTSIDE

    own, about = (100 * INSIDE[0], 100 * INSIDE[1]), (100 * OUTSIDE - ABOUT, 100 * OUTSIDE + ABOUT)
    return [("published, own data", PALETTE[0], [own]), ("published, elsewhere", PALETTE[1], [about])]
