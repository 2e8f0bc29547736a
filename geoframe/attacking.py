"""Adversarial attacks on a loaded encoder, run by foolbox. Torch and foolbox are imported inside functions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from geoframe.attacks import BACKWARD, INSTALL, MINIMAL, Attack, Bounds
from geoframe.errors import EncoderRefused, MissingFile

if TYPE_CHECKING:
    import torch

    from geoframe.loaded import LoadedEncoder

BOX = (0.0, 1.0)
HALVINGS = 24  # of a segment: as fine as float32


class Attacked(NamedTuple):
    """One attacked image.

    Attributes
    ----------
    image : torch.Tensor
        (1, channel, height, width); where the attack found nothing, the image as it was.
    label : int
        Class that it should lose: its label, or the predicted class where there is no label of the encoder.
    before, after : int
        Classes predicted for the image as it was, and as it is.
    l2, linf : float
        Distances to the image as it was, raw pixels.
    """

    image: torch.Tensor
    label: int
    before: int
    after: int
    l2: float
    linf: float


class Minimal(NamedTuple):
    """The shortest class-changing perturbation found.

    Attributes
    ----------
    distance : float
        Raw-pixel L2; NaN where no attack succeeded, 0 where the image has another class already.
    attack : str
        Name of the attack that found it; "" where none did.
    image : torch.Tensor or None
        (1, channel, height, width): it has another class.
    """

    distance: float
    attack: str
    image: torch.Tensor | None


def foolbox() -> Any:
    """Import foolbox.

    Raises
    ------
    MissingFile
        Where it isn't installed.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # it imports GitPython, which else fails where git is absent
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it imports scipy by names of old
            import foolbox as module
    except ImportError as error:
        raise MissingFile(f"attacks need foolbox ({error}): {INSTALL}") from error
    return module


def foolbox_model(encoder: LoadedEncoder, bounds: Bounds = BOX) -> Any:
    """Return the encoder as foolbox takes models: raw pixels to logits, in eval mode, in the encoder's precision.

    Parameters
    ----------
    encoder : LoadedEncoder
        A classifier; its passes are counted as ever, those that a gradient is taken of as `BACKWARD`.
    bounds : tuple of float, or None
        Box that attacks keep pixels in. None is unbounded, which attacks with a change of variables can't take.
    """
    import math

    from torch import nn

    class Logits(nn.Module):
        """What has logits; holds no weights, so that nothing is moved or changed."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logits = encoder.logits(x)
            if x.requires_grad:
                _check_gradient(encoder, logits)
                encoder.count((BACKWARD - 1) * len(x))
            return logits

    model = Logits().eval()
    return foolbox().models.PyTorchModel(model, bounds=bounds or (-math.inf, math.inf), device=encoder.device)


def _check_gradient(encoder: LoadedEncoder, logits: torch.Tensor) -> None:
    """Refuse what has no gradient: an attack on it would stay where it is, and call that robust."""
    if not logits.requires_grad:
        raise EncoderRefused(
            f"encoder {encoder.label!r} has no reverse-mode derivative, which attacks go by: remove .detach() and "
            "torch.no_grad() from its forward"
        )


def run_foolbox(attack: Any, model: Any, x: torch.Tensor, label: int, epsilon: float | None = None) -> torch.Tensor:
    """Run a foolbox attack on one image, away from `label`; return what it arrives at, clipped to ε where given."""
    import torch

    criterion = foolbox().criteria.Misclassification(torch.tensor([label], device=x.device))
    _, clipped, _ = attack(model, x, criterion, epsilons=epsilon)
    moved: torch.Tensor = clipped.detach()
    return moved


def attack_image(
    encoder: LoadedEncoder, x: torch.Tensor, label: int, attack: Attack, *, seed: int = 0, bounds: Bounds = BOX
) -> Attacked:
    """Attack one image.

    Parameters
    ----------
    encoder : LoadedEncoder
        A classifier.
    x : torch.Tensor
        (1, channel, height, width), raw [0, 1] pixels.
    label : int
        Its class; the predicted one is attacked where this is no class of the encoder (−1, say).
    attack : Attack
    seed : int
        Of all that the attack draws. torch's own generators are left as they were.
    bounds : tuple of float, or None
        Box that pixels stay in.
    """
    from geoframe.class_checks import class_count

    with _as_measured():
        x = x.detach().to(encoder.device, encoder.dtype)
        before = _predicted(encoder, x)
        lost = label if 0 <= label < class_count(encoder) else before
        moved = _perturbed(encoder, x, lost, attack, seed, bounds)
        change = (moved - x).double()
        return Attacked(
            moved, lost, before, _predicted(encoder, moved), float(change.norm()), float(change.abs().max())
        )


def minimal_perturbation(
    encoder: LoadedEncoder,
    x: torch.Tensor,
    label: int,
    attacks: Sequence[Attack] = MINIMAL,
    *,
    bounds: Bounds = None,
    seed: int = 0,
) -> Minimal:
    """Find a short L2 perturbation that changes the class of one image: an upper bound of the robustness radius.

    Each attack's image is drawn back to the boundary on its segment from x (ours, by bisection; what is returned has
    another class in any case), and the nearest is taken.

    Parameters
    ----------
    encoder : LoadedEncoder
        A classifier.
    x : torch.Tensor
        (1, channel, height, width), raw [0, 1] pixels.
    label : int
        Class that it should lose; the predicted one where this is no class of the encoder (−1, say).
    attacks : sequence of Attack
    bounds : tuple of float, or None
        Box that pixels stay in; None lets them leave [0, 1], as eq. 6 and 7 of *Neural Expansion* have it.
    seed : int
    """
    from geoframe.class_checks import class_count

    best = Minimal(float("nan"), "", None)
    with _as_measured():
        x = x.detach().to(encoder.device, encoder.dtype)
        before = _predicted(encoder, x)
        lost = label if 0 <= label < class_count(encoder) else before
        if before != lost:
            return Minimal(0.0, "", x)
        for attack in attacks:
            moved = _perturbed(encoder, x, lost, attack, seed, bounds)
            if _predicted(encoder, moved) != lost:
                moved = _drawn_back(lambda at: _predicted(encoder, at) != lost, x, moved)
                distance = float((moved - x).double().norm())
                if not distance >= best.distance:
                    best = Minimal(distance, attack.label, moved)
    return best


def _perturbed(
    encoder: LoadedEncoder, x: torch.Tensor, label: int, attack: Attack, seed: int, bounds: Bounds
) -> torch.Tensor:
    """Run one attack with its own randomness; where it leaves the numbers, or the encoder's, the image stays."""
    import torch

    with _seeded(seed, encoder.device), torch.enable_grad():
        moved = attack.perturb(encoder, x, label, bounds).detach()
    return moved if moved.isfinite().all() and encoder.logits(moved).isfinite().all() else x


def _drawn_back(changed: Callable[[torch.Tensor], bool], x: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """Halve the segment from x to a moved image of another class; return the nearest point that has another class."""
    low, high, best = 0.0, 1.0, moved
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        point = x + middle * (moved - x)
        if changed(point):
            high, best = middle, point
        else:
            low = middle
    return best


def _predicted(encoder: LoadedEncoder, x: torch.Tensor) -> int:
    from geoframe.lines import predicted

    return int(predicted(encoder, x))


@contextmanager
def _as_measured() -> Iterator[None]:
    """Numerics of a measurement, whoever calls."""
    from geoframe.numerics import exact_numerics

    with exact_numerics():
        yield


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators that foolbox draws from, torch's own, and set them back."""
    import torch

    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
