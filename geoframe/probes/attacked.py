"""What probes that attack their images have in common. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from geoframe.attacks import Attack, not_installed
from geoframe.errors import BadInput, MissingFile
from geoframe.probe import Batch, Output
from geoframe.spec import later

if TYPE_CHECKING:
    from geoframe.attacking import Attacked
    from geoframe.loaded import LoadedEncoder

OUTPUTS: Mapping[str, Output] = {
    "distance": Output(units="raw-pixel L2", long_name="distance that the attack moved the image"),
    "distance_inf": Output(units="raw-pixel L∞", long_name="largest change of a pixel by the attack"),
    "misclassified": Output(
        dtype="bool", long_name="the class predicted for the attacked image isn't the one attacked: success"
    ),
    "predicted_before": Output(dtype="int64", long_name="class predicted for the image before the attack"),
}


def attack_field() -> Any:
    """Field for an attack; None is none."""
    return later(default=None, validator=attrs.validators.optional(_is_attack))


def _is_attack(spec: object, field: Any, value: object) -> None:
    if not isinstance(value, Attack):
        raise BadInput(f"{type(spec).__name__}: {field.name}={value!r:.80} should be an attack, such as gf.PGD()")


def check_attack(attack: Attack | None) -> None:
    """Refuse to start where a package that the attack needs is missing."""
    lack = not_installed([attack]) if attack is not None else ""
    if lack:
        raise MissingFile(lack)


def attacked(encoder: LoadedEncoder, batch: Batch, attack: Attack) -> Attacked:
    """Attack the one image of a batch; what is random comes from the image's own stream, which isn't moved."""
    from geoframe.attacking import attack_image

    return attack_image(encoder, batch.images, int(batch.labels[0]), attack, seed=batch.rng[0].initial_seed())


def described(found: Attacked) -> dict[str, Any]:
    """Return the outputs of one attacked image."""
    return {
        "distance": [found.l2],
        "distance_inf": [found.linf],
        "misclassified": [found.after != found.label],
        "predicted_before": [found.before],
    }
