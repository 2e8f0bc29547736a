"""Adversarial attacks as specs: what a probe moves images by. foolbox runs them. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import attrs

from geoframe.spec import Spec
from geoframe.training.validators import COUNT, PIXELS, RATE, SHARE, decimal

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder

BACKWARD = 3.0  # forward passes that a gradient counts for in plans
INSTALL = "pip install 'geoframe[attacks]'"
WIDE = 10.0  # half-width of the box that stands for none where an attack needs one
Bounds = tuple[float, float] | None
"""Box that pixels stay in; None is none."""


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Attack(Spec):
    """How an image is moved so that its class changes. Subclasses implement `perturb` and `passes`.

    Everything is in raw [0, 1] pixel space, before the encoder's normalisation. *Neural Expansion* doesn't say in which
    space its ε are; this choice is ours.

    `packages` names modules outside geoframe's own requirements: a run without them is refused before it trains.
    """

    kind: ClassVar[str] = "attack"
    packages: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(vars(cls).get("packages"), str):
            raise TypeError(f"{cls.__name__}.packages is a tuple of names, not a string: write ({cls.packages!r},)")

    def perturb(self, encoder: LoadedEncoder, x: torch.Tensor, label: int, bounds: Bounds) -> torch.Tensor:
        """Return one moved image; whether its class has changed is found out by the caller.

        Parameters
        ----------
        encoder : LoadedEncoder
        x : torch.Tensor
            (1, channel, height, width), in the encoder's precision.
        label : int
            Class that the image should lose.
        bounds : tuple of float, or None
            Box that pixels stay in.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement perturb(encoder, x, label, bounds)")

    def passes(self) -> float:
        """Return the planned cost of one image, in forward passes."""
        return BACKWARD

    def smoke(self) -> Attack:
        """Return the version that preset `smoke` runs: the same, unless a subclass says otherwise."""
        return self


def not_installed(attacks: Iterable[Attack]) -> str:
    """Say which packages attacks need that aren't there, and what to do; "" where all are."""
    named = dict.fromkeys(name.partition(".")[0] for one in attacks for name in one.packages)
    absent = [name for name in named if find_spec(name) is None]
    install = INSTALL if absent == ["foolbox"] else f"pip install {' '.join(absent)}"
    return f"attacks need {', '.join(absent)}, not installed here: {install}" if absent else ""


@attrs.frozen(kw_only=True, slots=False, eq=False)
class _FoolboxAttack(Attack):
    """An attack that foolbox runs."""

    packages: ClassVar[tuple[str, ...]] = ("foolbox",)


@attrs.frozen(kw_only=True, slots=False, eq=False)
class CarliniWagner(_FoolboxAttack):
    """Carlini and Wagner's L2 attack (foolbox's `L2CarliniWagnerAttack`): minimises ‖Δ‖² + c · margin with Adam.

    The defaults are those of *Neural Expansion* (I.3): c = 1e-2, learning rate 1e-2, 1000 iterations, which in foolbox
    is one search step. Where no iterate has another class, the image stays as it is.

    Attributes
    ----------
    c, lr : float
    steps : int
        Iterations; foolbox stops early where a tenth of them brought no progress.
    searches : int
        Binary search steps for c; one keeps it.

    Notes
    -----
    The change of variables needs a box. Without bounds it is 0.5 ± 10, and the learning rate is divided by 20, so that
    a step is as long in pixels as in [0, 1]. Pixels at an end of the box hardly move, since the change of variables is
    flat there: on images of black and white only, in [0, 1], the attack finds little or nothing.
    """

    c: float = attrs.field(default=1e-2, converter=decimal, validator=RATE)
    lr: float = attrs.field(default=1e-2, converter=decimal, validator=RATE)
    steps: int = attrs.field(default=1000, validator=COUNT)
    searches: int = attrs.field(default=1, validator=COUNT)

    def default_name(self) -> str:
        """Return the paper's name: cw."""
        return "cw"

    def smoke(self) -> Attack:
        """Return the same with ten iterations."""
        return self.evolve(steps=min(self.steps, 10), name=self.label)

    def perturb(self, encoder: LoadedEncoder, x: torch.Tensor, label: int, bounds: Bounds) -> torch.Tensor:
        """Return the nearest iterate of another class, or the image."""
        from geoframe.attacking import foolbox, foolbox_model, run_foolbox

        box = bounds or (0.5 - WIDE, 0.5 + WIDE)
        attack = foolbox().attacks.L2CarliniWagnerAttack(
            binary_search_steps=self.searches,
            initial_const=self.c,
            stepsize=self.lr / (box[1] - box[0]),
            steps=self.steps,
        )
        moved = run_foolbox(attack, foolbox_model(encoder, box), x, label)
        return moved if moved.any() else x  # foolbox returns zeros where it finds nothing

    def passes(self) -> float:
        """Return the planned cost of one image, in forward passes."""
        return BACKWARD * self.steps * self.searches


@attrs.frozen(kw_only=True, slots=False, eq=False)
class IFGSM(_FoolboxAttack):
    """Iterative fast gradient sign method (foolbox's `LinfBasicIterativeAttack`), from the image itself.

    The defaults are those of *Neural Expansion* (I.3): ε = 0.03, steps of 0.005, 10 iterations.

    Attributes
    ----------
    epsilon : float
        Largest change of a pixel, raw-pixel L∞.
    step : float
        Change of a pixel in one iteration.
    steps : int
    """

    epsilon: float = attrs.field(default=0.03, converter=decimal, validator=PIXELS)
    step: float = attrs.field(default=0.005, converter=decimal, validator=RATE)
    steps: int = attrs.field(default=10, validator=COUNT)
    random_start: ClassVar[bool] = False

    def perturb(self, encoder: LoadedEncoder, x: torch.Tensor, label: int, bounds: Bounds) -> torch.Tensor:
        """Return the last iterate, whatever its class."""
        from geoframe.attacking import foolbox, foolbox_model, run_foolbox

        attack = foolbox().attacks.LinfBasicIterativeAttack(
            abs_stepsize=self.step, steps=self.steps, random_start=self.random_start
        )
        return run_foolbox(attack, foolbox_model(encoder, bounds), x, label, self.epsilon)

    def passes(self) -> float:
        """Return the planned cost of one image, in forward passes."""
        return BACKWARD * self.steps


@attrs.frozen(kw_only=True, slots=False, eq=False)
class PGD(IFGSM):
    """Projected gradient descent in L∞ (foolbox's `LinfPGD`): `IFGSM` from a random start, 30 iterations (I.3).

    The start is drawn uniformly from the ε-box around the image, seeded by the image's id and the probe's seed.
    """

    steps: int = attrs.field(default=30, validator=COUNT)
    random_start: ClassVar[bool] = True


@attrs.frozen(kw_only=True, slots=False, eq=False)
class DeepFool(_FoolboxAttack):
    """DeepFool in L2 (foolbox's `L2DeepFoolAttack`): steps to the nearest boundary of a linearised classifier.

    Attributes
    ----------
    steps : int
    candidates : int
        Likeliest classes that are looked at, the image's own included.
    overshoot : float
        How far beyond the boundary, as a share of the way to it.
    """

    steps: int = attrs.field(default=50, validator=COUNT)
    candidates: int = attrs.field(default=10, validator=COUNT)
    overshoot: float = attrs.field(default=0.02, converter=decimal, validator=SHARE)

    def default_name(self) -> str:
        """Return deepfool."""
        return "deepfool"

    def perturb(self, encoder: LoadedEncoder, x: torch.Tensor, label: int, bounds: Bounds) -> torch.Tensor:
        """Return the last iterate."""
        from geoframe.attacking import foolbox, foolbox_model, run_foolbox

        attack = foolbox().attacks.L2DeepFoolAttack(
            steps=self.steps, candidates=max(2, self.candidates), overshoot=self.overshoot
        )
        return run_foolbox(attack, foolbox_model(encoder, bounds or (-math.inf, math.inf)), x, label)

    def passes(self) -> float:
        """Return the planned cost of one image, in forward passes."""
        return BACKWARD * self.steps * self.candidates


@attrs.frozen(kw_only=True, slots=False, eq=False)
class DDN(_FoolboxAttack):
    """Decoupled direction and norm, L2 (foolbox's `DDNAttack`).

    Attributes
    ----------
    epsilon : float
        Length of the first step, raw-pixel L2.
    steps : int
    gamma : float
        Share by which the length shrinks or grows in a step.
    """

    epsilon: float = attrs.field(default=1.0, converter=decimal, validator=RATE)
    steps: int = attrs.field(default=100, validator=COUNT)
    gamma: float = attrs.field(default=0.05, converter=decimal, validator=RATE)

    def perturb(self, encoder: LoadedEncoder, x: torch.Tensor, label: int, bounds: Bounds) -> torch.Tensor:
        """Return the nearest iterate of another class, or the image."""
        from geoframe.attacking import foolbox, foolbox_model, run_foolbox

        attack = foolbox().attacks.DDNAttack(init_epsilon=self.epsilon, steps=self.steps, gamma=self.gamma)
        return run_foolbox(attack, foolbox_model(encoder, bounds or (-math.inf, math.inf)), x, label)

    def passes(self) -> float:
        """Return the planned cost of one image, in forward passes."""
        return BACKWARD * self.steps


PUBLISHED = (CarliniWagner(), IFGSM(), PGD())
"""The three attacks of *Neural Expansion*, I.3."""
MINIMAL = (DeepFool(), DDN(), CarliniWagner(searches=6, steps=200))
"""L2 attacks that look for the nearest image of another class (ours)."""
