"""What probes that search along rays have in common. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from geoframe.encoder import Shape
from geoframe.probe import Output, Probe
from geoframe.probeset import ProbeSet

Search = Literal["grid", "exact"]
Scale = Literal["diagonal", "unit"]
Layer = Literal["post", "pre"]
EXACT_RAY = 300.0  # forward passes that an exact search takes: 90 to 660 were seen, in small MLPs and CNNs
DOUBLE = 2.0  # forward passes that one in float64 takes
JVP_PASSES = 3.0  # and one product with a Jacobian
FEATURES = 512  # planned where only the pixels are known
UNKNOWN_BASIS = 1000  # planned where not even they are
UNKNOWN_POOL = 1000  # images of one class in a set whose size isn't known
CLASSES = 10  # where their number isn't known
SCALED = "scaled direction"  # stands in `outputs` for the unit that `scale` makes of it
DIRECTION = Output(
    ("direction",), dtype="int64", shared=True, long_name="index of the direction in the complete basis, or as drawn"
)
SINGULAR_VALUE = Output(
    ("direction",),
    units="feature L2 / raw-pixel L2",
    long_name="singular value of the direction: 0 from index min(features, pixels) on; below the numerical rank, "
    "rounding",
)

REFERENCE_ID = Output(("reference_image",), dtype="str", shared=True, long_name="ids of the reference images")
REFERENCE = "reference image, as an index into reference_id (−1: none)"


def search_field() -> Any:
    """Field for how a ray is searched: A.4's steps, or the true crossing of a piecewise-linear classifier."""
    return attrs.field(default="grid", validator=attrs.validators.in_(("grid", "exact")))


def scale_field() -> Any:
    """Field for the length of a direction: the diagonal of the input box, or 1."""
    return attrs.field(default="diagonal", validator=attrs.validators.in_(("diagonal", "unit")))


def layer_field() -> Any:
    """Field for which features: as the last linear layer sees them, or before their activation."""
    return attrs.field(default="post", validator=attrs.validators.in_(("post", "pre")))


def length_of(scale: Scale, pixels: int) -> float:
    """Raw-pixel L2 length of a direction: √d for the diagonal of [0, 1]^d."""
    return math.sqrt(pixels) if scale == "diagonal" else 1.0


def in_units(outputs: Mapping[str, Output], scale: Scale) -> dict[str, Output]:
    """Return outputs with the unit that a direction's length makes of "scaled direction"."""
    one, many = ("diagonal of the input box", "diagonals of the input box")
    if scale == "unit":
        one = many = "raw-pixel L2"
    units = {name: output.units.replace(f"/ {SCALED}", f"/ {one}") for name, output in outputs.items()}
    return {name: attrs.evolve(outputs[name], units=unit.replace(SCALED, many)) for name, unit in units.items()}


def count_field(default: int | None, least: int = 1, optional: bool = False) -> Any:
    """Field for a number of things; None is allowed where it is the default, or said to be."""
    whole = attrs.validators.and_(attrs.validators.instance_of(int), attrs.validators.ge(least))
    validator: Any = attrs.validators.optional(whole) if optional or default is None else whole
    return attrs.field(default=default, validator=validator)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class SteppedProbe(Probe):
    """A probe that looks along rays in steps, up to a cap.

    Attributes
    ----------
    step, cap : float
        δ = 0.01 and ε = 3 of appendix A.4 of *Neural Expansion*.
    """

    step: float = attrs.field(default=0.01, converter=float)
    cap: float = attrs.field(default=3.0, converter=float)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not 0 < self.step < float("inf") or not 0 < self.cap < float("inf"):
            raise ValueError(f"step and cap must be positive numbers, not step={self.step:g}, cap={self.cap:g}")
        if self.step > self.cap:
            raise ValueError(f"step={self.step:g} is above cap={self.cap:g}: nothing would be searched")


def search_passes(search: Search, step: float, cap: float) -> float:
    """Forward passes to plan for one ray that never ends early; of an exact search, a rough guess."""
    return EXACT_RAY if search == "exact" else cap / step + 1


def basis_size(n: int | None, shape: Shape | None) -> int:
    """How many singular vectors are walked along: those asked for, or a complete basis."""
    pixels = math.prod(shape) if shape else UNKNOWN_BASIS
    return min(n or pixels, pixels)


def jacobian_passes(shape: Shape | None) -> float:
    """Forward passes that a Jacobian and its decomposition are planned as; the number of features isn't known."""
    return 2 * JVP_PASSES * min(math.prod(shape), FEATURES) if shape else JVP_PASSES * UNKNOWN_BASIS


def linearised_passes(n: int | None, step: float, cap: float, shape: Shape | None) -> float:
    """Forward passes, in float64, to plan for walking both ways along n singular vectors beside their pushforwards."""
    rays = basis_size(n, shape)
    along = JVP_PASSES * rays + 2 * rays * search_passes("grid", step, cap)
    return DOUBLE * (along + jacobian_passes(shape))


def pool_size(reference: ProbeSet | None, n: int | None) -> float:
    """How many reference images of one class to plan for: those asked for, or a whole pool."""
    count = None if reference is None else reference.count()
    if reference is None or count is None:
        return n or UNKNOWN_POOL
    pool = max(1.0, count / (reference.classes() or CLASSES))
    return pool if n is None else min(n, pool)
