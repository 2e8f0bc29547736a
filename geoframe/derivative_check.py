"""Derivatives before an encoder is measured: Jacobian–vector products against central differences.

A map may be flat where it is probed, and still be sound: a saturated or piecewise-constant classifier has a zero
derivative there, rightly. It is then looked for where it isn't flat; only a derivative that misses a change is wrong.
"""

from __future__ import annotations

import math
from typing import NoReturn

import attrs
import torch

from geoframe.errors import EncoderRefused, GeoframeError
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.pushforward import central_difference
from geoframe.loaded import LoadedEncoder
from geoframe.network_outputs import first_line
from geoframe.preflight import first_features, jittered, noise_image

STEPS = {torch.float64: (1e-5, 1e-6, 1e-7), torch.float32: (1e-1, 1e-2, 1e-3)}  # raw-pixel L2; the best one counts
TOLERANCE = {torch.float64: 1e-3, torch.float32: 5e-2}  # of a derivative against a central difference
ROUNDING = 1e-2  # of float32's derivative, which is the one used, against float64's
UNITS = 10  # of rounding: what a difference of features is known to
TRIES = 6
COARSE = 0.1  # raw-pixel L2: a step that a quantised input or activation changes at, nearly wherever it is made
LOOK = 64  # images that are looked at for a change
GREYS = 33  # from black to white
NARROW = 16  # of a step: two points so near see a slope; a tenth of it tells slopes from jumps
WITHIN = (0.5, 0.2, 0.8)  # where a slope is probed, in case a point is a kink


@attrs.frozen
class _Gap:
    """Lengths of a derivative and of a central difference, their relative distance, and that beyond rounding."""

    length: float
    expected: float
    distance: float
    relative: float
    silent: bool
    agrees: bool = False


def check_derivative(encoder: LoadedEncoder, pixels: torch.Tensor) -> None:
    """Refuse wrong derivatives, and an encoder that has none anywhere.

    On a float64 copy where the encoder has one, with a small step and a strict tolerance, and float32's
    product, which is the one used, with float64's; where it hasn't, in float32, with coarser ones. Each
    try has an image, a jitter and a direction of its own, since any one point may lie beside a kink or be flat.

    Parameters
    ----------
    encoder : LoadedEncoder
    pixels : torch.Tensor
        (n, channel, height, width), raw pixels.
    """
    fine = encoder.double() or encoder
    wrong: list[_Gap] = []
    for index in range(TRIES):
        gap = _gap_at(encoder, fine, *_place(encoder, pixels, index))
        if gap.agrees:
            return
        if not gap.silent:
            wrong.append(gap)
    if wrong:
        _refuse_wrong(encoder, wrong)
    _check_flat(encoder, fine, pixels)


def _place(encoder: LoadedEncoder, pixels: torch.Tensor, index: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an image and a direction for a try; images are spread over the set, from the first on."""
    at = index * max(1, len(pixels) // TRIES) % len(pixels)
    u = unit_directions(encoder.input_shape, 0, "preflight", index, index + 1).to(encoder.device)
    return jittered(encoder, pixels[at : at + 1], index), u


def _gap_at(encoder: LoadedEncoder, fine: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> _Gap:
    used = _tangent(encoder, x.to(encoder.dtype), u.to(encoder.dtype))
    x, u = x.to(fine.dtype), u.to(fine.dtype)
    exact = used if fine is encoder else _tangent(fine, x, u)
    gap = _smallest_gap(fine, x, u, exact)
    rounding = _finite(float((used - exact).norm()) / max(float(exact.norm()), torch.finfo(torch.float64).tiny))
    agrees = not gap.silent and gap.relative <= TOLERANCE[fine.dtype] and rounding <= ROUNDING
    return attrs.evolve(gap, relative=max(gap.relative, rounding), agrees=agrees)


def _smallest_gap(fine: LoadedEncoder, x: torch.Tensor, u: torch.Tensor, exact: torch.Tensor) -> _Gap:
    """Try the steps in turn until one agrees, or rounding hides the change; return the one that agrees best."""
    rounding = _resolution(first_features(fine, x))
    tried: list[_Gap] = []
    for step in STEPS[fine.dtype]:
        gap = _gap(exact, central_difference(fine.features, x, u, step), rounding / step)
        if gap.silent and tried:
            break
        tried.append(gap)
        if gap.silent or gap.distance <= TOLERANCE[fine.dtype]:
            break
    return min(tried, key=lambda gap: gap.distance)


def _gap(exact: torch.Tensor, difference: torch.Tensor, floor: float) -> _Gap:
    length, expected = float(exact.norm()), float(difference.norm())
    larger = max(_finite(length), _finite(expected))
    distance = _finite(float((exact - difference).norm()))
    if not 0 < larger < math.inf:
        return _Gap(length, expected, larger, larger, silent=larger == 0)
    return _Gap(length, expected, distance / larger, max(0.0, distance - floor) / larger, silent=larger <= floor)


def _finite(length: float) -> float:
    """Return a length, or ∞ for NaN, so that comparisons mean something."""
    return math.inf if math.isnan(length) else length


def _resolution(features: torch.Tensor) -> float:
    """Length of a difference of features that rounding alone may make."""
    return UNITS * torch.finfo(features.dtype).eps * float(features.norm())


def _tangent(encoder: LoadedEncoder, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    try:
        return encoder.pushforward(x, u)[1]
    except (GeoframeError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has no forward-mode derivative: {first_line(error)}"
        ) from error


def _check_flat(encoder: LoadedEncoder, fine: LoadedEncoder, pixels: torch.Tensor) -> None:
    """Judge an encoder that was flat at every try by a place where it isn't.

    A slope there has to have the right derivative. A jump has none: rays through a classifier see it, other probes
    see nothing. Jumps all over the place are rounding.
    """
    ends = _change(encoder, fine, pixels)
    if ends is None:
        _refuse_flat(encoder, "constant or saturated: all images tried have the same features")
    near = _slope(fine, *ends)
    if near is None:
        if encoder.head is None or _jumps_everywhere(encoder, fine, pixels):
            _refuse_flat(encoder, "quantised or piecewise constant")
        return
    gaps = [_gap_at(encoder, fine, near[0] + at * (near[1] - near[0]), _unit(near[1] - near[0])) for at in WITHIN]
    wrong = [gap for gap in gaps if not gap.silent]
    if wrong and not any(gap.agrees for gap in gaps):
        _refuse_wrong(encoder, wrong)


def _unit(v: torch.Tensor) -> torch.Tensor:
    length: torch.Tensor = v.norm()
    return v / length


def _change(
    encoder: LoadedEncoder, fine: LoadedEncoder, pixels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Find two images of different features among those of the set, noise and greys."""
    some = pixels[:: max(1, len(pixels) // LOOK)][:LOOK].to(fine.device, fine.dtype)
    greys = torch.linspace(0, 1, GREYS, device=fine.device, dtype=fine.dtype).view(-1, 1, 1, 1)
    others = torch.cat([some, noise_image(fine).to(fine.dtype), greys.expand(-1, *fine.input_shape)])
    first = some[:1]
    want = first_features(fine, first)
    for chunk in torch.split(others, max(1, encoder.micro_batch)):
        differs = (first_features(fine, chunk) - want).norm(dim=1) > _resolution(want)
        if differs.any():
            at = int(differs.nonzero()[0])
            return first, chunk[at : at + 1]
    return None


def _slope(fine: LoadedEncoder, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Narrow two images down to two near ones between them, on a slope; None on a jump.

    The half that changes more is kept. A slope's change shrinks with the distance, a jump's doesn't.
    """
    width = NARROW * STEPS[fine.dtype][1]
    near = _narrow(fine, a, b, width)
    nearer = _narrow(fine, *near, width / 10)
    before, after = (float((first_features(fine, p) - first_features(fine, q)).norm()) for p, q in (near, nearer))
    return None if after > before / 2 else nearer


def _narrow(fine: LoadedEncoder, a: torch.Tensor, b: torch.Tensor, width: float) -> tuple[torch.Tensor, torch.Tensor]:
    at_a, at_b = first_features(fine, a), first_features(fine, b)
    for _ in range(max(0, math.ceil(math.log2(float((b - a).norm()) / width)))):
        middle = (a + b) / 2
        between = first_features(fine, middle)
        if float((between - at_a).norm()) >= float((at_b - between).norm()):
            b, at_b = middle, between
        else:
            a, at_a = middle, between
    return a, b


def _jumps_everywhere(encoder: LoadedEncoder, fine: LoadedEncoder, pixels: torch.Tensor) -> bool:
    """Whether a coarse step changes the features at most of the tries."""
    count = 0
    for index in range(TRIES):
        x, u = (t.to(fine.dtype) for t in _place(encoder, pixels, index))
        here, there = first_features(fine, torch.cat([x, x + COARSE * u]))
        count += float((there - here).norm()) > _resolution(here)
    return count > TRIES / 2


def _refuse_flat(encoder: LoadedEncoder, why: str) -> NoReturn:
    raise EncoderRefused(
        f"encoder {encoder.label!r} doesn't react to small changes of its input (zero derivative): it is {why}"
    )


def _refuse_wrong(encoder: LoadedEncoder, wrong: list[_Gap]) -> NoReturn:
    best = min(wrong, key=lambda gap: gap.relative)
    if best.length == 0:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has a dead derivative: its features change with the input but their "
            "derivative is zero; remove .detach(), torch.no_grad() or torch.inference_mode() from its forward"
        )
    if not math.isfinite(best.relative):
        raise EncoderRefused(
            f"encoder {encoder.label!r} has a NaN or infinite derivative: look for the root, norm or logarithm of 0 "
            "in its forward and add a small number there"
        )
    raise EncoderRefused(
        f"encoder {encoder.label!r} has a wrong derivative: a Jacobian–vector product (length {best.length:.3g}) and a "
        f"central difference ({best.expected:.3g}) differ by {best.relative:.2g} of their length; look for detached "
        "parts or rounding in its forward"
    )
