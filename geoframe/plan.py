"""The cells of a study: every encoder × probe set × probe, each with a key. Needs no data and no download."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs

from geoframe.encoder import Encoder
from geoframe.errors import BadInput
from geoframe.probe import Probe
from geoframe.probeset import ProbeSet
from geoframe.spec import KEY_VERSION, Spec, digest
from geoframe.study import ResolvedStudy


@attrs.frozen(eq=False, slots=False)
class Cell:
    """One encoder × probe set × probe: the unit that is computed, stored and resumed."""

    encoder: Encoder
    probeset: ProbeSet
    probe: Probe

    @cached_property
    def key(self) -> str:
        """Digest of everything that determines the numbers; names, device and batch are left out."""
        return digest([KEY_VERSION, self.encoder.key, self.probeset.key, self.probe.key])

    @property
    def parts(self) -> dict[str, Spec]:
        """The three specs."""
        return {"encoder": self.encoder, "probeset": self.probeset, "probe": self.probe}

    @property
    def names(self) -> dict[str, str]:
        """Labels of the three."""
        return {"encoder": self.encoder.label, "probeset": self.probeset.label, "probe": self.probe.label}

    @property
    def label(self) -> str:
        """The three labels, for people."""
        return " × ".join(self.names.values())

    def identity(self) -> dict[str, Any]:
        """What the key stands for, as JSON."""
        return {
            "encoder": self.encoder.identity(),
            "probeset": self.probeset.identity(),
            "probe": self.probe.identity(),
        }

    def passes(self, n_images: int | None = None) -> float | None:
        """Planned forward passes, or None where the number of images isn't known before the data are read."""
        count = self.probeset.count() if n_images is None else n_images
        if count is None:
            return None
        planned = self.probe.planned_passes(self.encoder.known_shape, self.encoder.training_set)
        return planned * (min(count, 1) if self.probe.per == "set" else count)


def belong_together(encoder: Encoder, probeset: ProbeSet, match: str) -> bool:
    """Whether two specs agree in a coordinate; they do where one of them doesn't have it."""
    values = [spec.coords.get(match) for spec in (encoder, probeset)]
    return not match or None in values or values[0] == values[1]


@attrs.frozen(eq=False)
class Plan:
    """The cells of a resolved study, encoder by encoder."""

    study: ResolvedStudy
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, study: ResolvedStudy) -> Plan:
        """List every combination whose encoder and probe set belong together.

        Raises
        ------
        BadInput
            Where none do.
        """
        pairs = [(e, s) for e in study.encoders for s in study.probesets if belong_together(e, s, study.match)]
        if not pairs:
            raise BadInput(
                f"study {study.name!r} measures encoders and probe sets of the same {study.match}, "
                "and none agree in it: choose others"
            )
        return cls(study, tuple(Cell(e, s, p) for e, s in pairs for p in study.probes))

    def unique(self) -> dict[str, Cell]:
        """Cells by key: those that differ in names only are computed once."""
        found: dict[str, Cell] = {}
        for cell in self.cells:
            found.setdefault(cell.key, cell)
        return found

    def to_json(self) -> list[dict[str, Any]]:
        """Return the plan as it stands in run.json."""
        return [{"key": cell.key, **cell.names, "images": cell.probeset.count()} for cell in self.cells]
