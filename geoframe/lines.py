"""Rays through a loaded encoder: which way of computing logits along them is open, and the search itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs
import torch
from torch import nn

from geoframe.errors import EncoderRefused
from geoframe.geometry import rays as step_search
from geoframe.geometry.rays import Intervals, Line, LinearFirstLine, PlainLine
from geoframe.geometry.relu_line import Affine, Kink, first_crossings
from geoframe.probes.searching import Search

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


_SILENT = (nn.Flatten, nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d)  # in eval mode, on a vector
EXACT_BLOCK = 32  # rays that the exact search sweeps together: their window fits the cache


@attrs.frozen(eq=False)
class RayTable:
    """Rays x + t·v, n of them; a row that all share may be an expanded view, which takes no memory.

    Attributes
    ----------
    start, direction : torch.Tensor
        (n, channel, height, width), raw pixels.
    held : torch.Tensor
        (n,), int64: the class that counts as unchanged.
    """

    start: torch.Tensor
    direction: torch.Tensor
    held: torch.Tensor

    def __len__(self) -> int:
        return len(self.held)

    def blocks(self, size: int) -> Iterator[RayTable]:
        """Yield the rays in blocks."""
        for begin in range(0, len(self), size):
            part = slice(begin, begin + size)
            yield RayTable(self.start[part], self.direction[part], self.held[part])


def intervals(
    encoder: LoadedEncoder,
    rays: RayTable,
    search: Search,
    step: float,
    cap: float,
    through: float | None = None,
) -> Intervals:
    """Find the generalization intervals of rays, block by block.

    Parameters
    ----------
    encoder : LoadedEncoder
        A classifier.
    rays : RayTable
    search : {"grid", "exact"}
        Steps of size `step` (A.4), or the true crossing of a piecewise-linear classifier.
    step, cap : float
        In units of the direction's length; the cap is always tested.
    through : float, optional
        A distance that is tested too, whatever the step.
    """
    if not len(rays):
        return Intervals(torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.bool))
    if search == "exact":
        return _exact(encoder, rays, cap)
    steps = step_search.steps_to(cap, step, through)
    first = encoder.derived(_first_linear)
    batch = encoder.micro_batch
    parts = []
    for block in rays.blocks(batch):
        line = _line(encoder, block, first)
        try:
            parts.append(step_search.grid_search(line, block.held, steps, batch))
        except step_search.NotFinite as error:
            raise EncoderRefused(f"encoder {encoder.label!r}: {error}: check its weights and normalisation") from error
    return step_search.join(parts)


def predicted(encoder: LoadedEncoder, images: torch.Tensor) -> torch.Tensor:
    """Classes of images, (n,), int64; refuses NaN and a classifier of one class."""
    logits = torch.cat([encoder.logits(part) for part in torch.split(images, encoder.micro_batch)])
    if logits.shape[1] < 2:
        raise EncoderRefused(f"encoder {encoder.label!r} has a single class: no ray can change it")
    if logits.isnan().any():
        raise EncoderRefused(f"encoder {encoder.label!r} returns NaN logits: check its weights and normalisation")
    return logits.argmax(1)


def piecewise_layers(encoder: LoadedEncoder) -> list[Affine | Kink]:
    """Return the classifier as affine layers and kinks in turn, raw pixels to logits, float64.

    Raises
    ------
    EncoderRefused
        Where a layer isn't piecewise linear, or not one that the exact search knows; it is named.
    """
    layers: list[Affine | Kink] = [_normalisation(encoder)]
    assert encoder.head is not None
    for name, module in (*_chain(encoder.network, ""), *_chain(encoder.head, "head")):
        layer = _layer(module)
        if layer is None:
            raise EncoderRefused(
                f"search='exact' needs a chain of Linear, BatchNorm1d, ReLU, LeakyReLU, Dropout and Flatten, but layer "
                f"{name!r} of encoder {encoder.label!r} is a {type(module).__name__}: use search='grid'"
            )
        layers += layer
    return _alternating(layers)


def _exact(encoder: LoadedEncoder, rays: RayTable, cap: float) -> Intervals:
    layers = encoder.derived(piecewise_layers)
    found = []
    for block in rays.blocks(EXACT_BLOCK):
        start, direction = (t.flatten(1).double() for t in (block.start, block.direction))
        found.append(first_crossings(layers, start, direction, block.held, cap))
    crossing = torch.cat(found).cpu()
    return Intervals(gi=crossing.clamp(max=cap), censored=crossing.isinf())


def _line(encoder: LoadedEncoder, rays: RayTable, first: _FirstLinear | None) -> Line:
    plain = PlainLine(encoder.logits, rays.start, rays.direction)
    return plain if first is None else LinearFirstLine(plain, *first)


_FirstLinear = tuple[torch.Tensor, torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]


def _first_linear(encoder: LoadedEncoder) -> _FirstLinear | None:
    """Weight and bias of a leading linear layer on raw pixels, and what follows it; None where there is none."""
    chain = [module for _, module in _chain(encoder.network, "")]
    while chain and isinstance(chain[0], _SILENT):
        chain = chain[1:]
    if not chain or type(chain[0]) is not nn.Linear:
        return None
    folded = _compose(_normalisation(encoder), _affine(chain[0]))
    assert encoder.head is not None
    after = nn.Sequential(*chain[1:], encoder.head)

    def rest(hidden: torch.Tensor) -> torch.Tensor:
        encoder.count(len(hidden))
        return torch.as_tensor(after(hidden))

    return folded.weight.to(encoder.dtype), folded.bias.to(encoder.dtype), rest


def _chain(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """Modules of nested sequences in the order in which they run."""
    if type(module) is nn.Sequential:
        for child, inner in module.named_children():
            yield from _chain(inner, f"{name}.{child}" if name else child)
    else:
        yield name or type(module).__name__, module


def _layer(module: nn.Module) -> list[Affine | Kink] | None:
    if isinstance(module, _SILENT):
        return []
    if type(module) is nn.Linear:
        return [_affine(module)]
    if type(module) is nn.BatchNorm1d:
        return [_batch_norm(module)]
    if type(module) is nn.ReLU:
        return [Kink()]
    if type(module) is nn.LeakyReLU and 0 <= module.negative_slope <= 1:
        return [Kink(module.negative_slope)]
    return None


def _affine(linear: nn.Linear) -> Affine:
    weight, bias = linear.weight.detach().double(), dict(linear.named_parameters()).get("bias")
    return Affine(weight, weight.new_zeros(len(weight)) if bias is None else bias.detach().double())


def _batch_norm(norm: nn.BatchNorm1d) -> Affine:
    mean, variance = norm.running_mean, norm.running_var
    if not isinstance(mean, torch.Tensor) or not isinstance(variance, torch.Tensor):
        raise EncoderRefused("search='exact': a BatchNorm1d without running statistics mixes the images of a batch")
    scale = (variance.double() + norm.eps).rsqrt()
    shift = -mean.double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.double(), shift * norm.weight.double() + norm.bias.double()
    return Affine(torch.diag(scale), shift)


def _normalisation(encoder: LoadedEncoder) -> Affine:
    """Raw pixels to normalised pixels, as a diagonal."""
    like = torch.empty(encoder.input_shape, dtype=torch.float64, device=encoder.device)
    mean, std = (t[0].double().expand_as(like).flatten() for t in (encoder.mean, encoder.std))
    return Affine(torch.diag(1 / std), -mean / std)


def _compose(inner: Affine, outer: Affine) -> Affine:
    """Outer after inner."""
    diagonal = torch.equal(inner.weight, torch.diag(inner.weight.diagonal()))
    weight = outer.weight * inner.weight.diagonal() if diagonal else outer.weight @ inner.weight
    return Affine(weight, outer.weight @ inner.bias + outer.bias)


def _alternating(layers: list[Affine | Kink]) -> list[Affine | Kink]:
    """Merge neighbours, so that affine layers and kinks take turns, affine at both ends."""
    merged: list[Affine | Kink] = []
    for layer in layers:
        last = merged[-1] if merged else None
        if isinstance(layer, Affine) and isinstance(last, Affine):
            merged[-1] = _compose(last, layer)
        elif isinstance(layer, Kink) and isinstance(last, Kink):
            merged[-1] = Kink(last.slope * layer.slope)  # 0 ≤ slopes ≤ 1: signs are kept
        else:
            merged.append(layer)
    if isinstance(merged[-1], Kink):
        raise EncoderRefused("search='exact': a classifier whose logits are rectified has ties everywhere")
    return merged
