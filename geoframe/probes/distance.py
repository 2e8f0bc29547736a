"""`BoundaryDistanceProbe`: how far the nearest class change is, as far as attacks can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.attacks import MINIMAL, Attack
from geoframe.probe import Batch, Output, Probe

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


def _check_attacks(_probe: Any, _field: Any, value: tuple[Attack, ...]) -> None:
    if not value or not all(isinstance(attack, Attack) for attack in value):
        raise ValueError(f"attacks must be attacks, such as (DeepFool(), DDN()), not {value!r:.80}")


@attrs.frozen(kw_only=True)
class BoundaryDistanceProbe(Probe):
    """The shortest perturbation that several minimum-norm attacks find: an upper bound of the distance b.

    The class predicted at the image is attacked, whatever its label; pixels may leave [0, 1], as perturbations along
    rays do. See `geoframe.attacking.minimal_perturbation`. Needs foolbox (`pip install 'geoframe[attacks]'`).

    Attributes
    ----------
    attacks : tuple of Attack
        The best of them counts. By default DeepFool, DDN, and Carlini and Wagner's with a search for its constant.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"logits"})
    images_per_call: ClassVar[int | None] = 1
    images_per_block: ClassVar[int] = 8
    outputs: ClassVar[Mapping[str, Output]] = {
        "distance": Output(units="raw-pixel L2", long_name="least distance at which an attack changed the class"),
        "attack": Output(dtype="str", long_name="the attack that found it (empty: none did)"),
        "predicted": Output(dtype="int64", long_name="class predicted at the image"),
    }

    attacks: tuple[Attack, ...] = attrs.field(default=MINIMAL, converter=tuple, validator=_check_attacks)

    def default_name(self) -> str:
        """Return "boundary-distance"."""
        return "boundary-distance"

    def forward_passes(self) -> float:
        """Planned cost of one image."""
        return sum(attack.passes() for attack in self.attacks)

    def smoke(self) -> BoundaryDistanceProbe:
        """Return the same with one short attack."""
        from geoframe.attacks import DDN

        return self.evolve(attacks=(DDN(steps=5),))

    def measure(self, encoder: LoadedEncoder, batch: Batch) -> Mapping[str, Any]:
        """Measure one image; see `Probe.measure`."""
        from geoframe.attacking import minimal_perturbation
        from geoframe.geometry.directions import stream_key
        from geoframe.lines import predicted

        held = predicted(encoder, batch.images)
        seed = stream_key("boundary-distance", self.seed, batch.ids[0]) & (2**63 - 1)
        found = minimal_perturbation(encoder, batch.images, int(held), self.attacks, seed=seed)
        return {"distance": [found.distance], "attack": [found.attack], "predicted": held}
