"""Rays through a loaded encoder: which way of computing logits along them is open, and the search itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs
import torch
from torch import nn

from geoframe.errors import EncoderRefused
from geoframe.geometry import piecewise_line, relu_line
from geoframe.geometry import rays as step_search
from geoframe.geometry.piecewise_line import PiecewiseLinear
from geoframe.geometry.rays import Intervals, Line, LinearFirstLine, PlainLine
from geoframe.geometry.relu_line import Affine, Kink
from geoframe.piecewise import chain, piecewise_network, scale_and_shift
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


def exact_form(encoder: LoadedEncoder) -> list[Affine | Kink] | PiecewiseLinear:
    """Return the classifier as the exact search takes it: layers to sweep for an MLP, or a piecewise-linear network.

    Raises
    ------
    EncoderRefused
        Where a layer isn't piecewise linear, or not one that the exact search knows; it is named.
    """
    return _sweep_layers(encoder) or piecewise_network(encoder)


def _sweep_layers(encoder: LoadedEncoder) -> list[Affine | Kink] | None:
    """Affine layers and kinks in turn, raw pixels to logits, float64; None where it isn't an MLP on flat images."""
    assert encoder.head is not None
    modules = [module for _, module in (*chain(encoder.network, ""), *chain(encoder.head, "head"))]
    if type(modules[0]) is not nn.Flatten or modules[0].start_dim != 1:
        return None
    layers: list[Affine | Kink] = [_normalisation(encoder)]
    for module in modules:
        layer = _layer(module)
        if layer is None:
            return None
        layers += layer
    return _alternating(layers)


def _exact(encoder: LoadedEncoder, rays: RayTable, cap: float) -> Intervals:
    form = encoder.derived(exact_form)
    found = []
    for block in rays.blocks(EXACT_BLOCK):
        start, direction = block.start.double(), block.direction.double()
        if isinstance(form, PiecewiseLinear):
            found.append(piecewise_line.first_crossings(form, start, direction, block.held, cap))
        else:
            found.append(relu_line.first_crossings(form, start.flatten(1), direction.flatten(1), block.held, cap))
    crossing = torch.cat(found).cpu()
    return Intervals(gi=crossing.clamp(max=cap), censored=crossing.isinf())


def _line(encoder: LoadedEncoder, rays: RayTable, first: _FirstLinear | None) -> Line:
    plain = PlainLine(encoder.logits, rays.start, rays.direction)
    return plain if first is None else LinearFirstLine(plain, *first)


_FirstLinear = tuple[torch.Tensor, torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]


def _first_linear(encoder: LoadedEncoder) -> _FirstLinear | None:
    """Weight and bias of a leading linear layer on raw pixels, and what follows it; None where there is none."""
    modules = [module for _, module in chain(encoder.network, "")]
    while modules and isinstance(modules[0], _SILENT):
        modules = modules[1:]
    if not modules or type(modules[0]) is not nn.Linear:
        return None
    if modules[0].in_features != math.prod(encoder.input_shape):  # it runs over rows of pixels
        return None
    folded = _compose(_normalisation(encoder), _affine(modules[0]))
    assert encoder.head is not None
    after = nn.Sequential(*modules[1:], encoder.head)

    def rest(hidden: torch.Tensor) -> torch.Tensor:
        encoder.count(len(hidden))
        return torch.as_tensor(after(hidden))

    return folded.weight.to(encoder.dtype), folded.bias.to(encoder.dtype), rest


def _layer(module: nn.Module) -> list[Affine | Kink] | None:
    if isinstance(module, _SILENT):
        return []
    if type(module) is nn.Linear:
        return [_affine(module)]
    if type(module) is nn.BatchNorm1d:
        scale, shift = scale_and_shift(module)
        return [Affine(torch.diag(scale), shift)]
    if type(module) is nn.ReLU:
        return [Kink()]
    if type(module) is nn.LeakyReLU and 0 <= module.negative_slope <= 1:
        return [Kink(module.negative_slope)]
    return None


def _affine(linear: nn.Linear) -> Affine:
    weight, bias = linear.weight.detach().double(), dict(linear.named_parameters()).get("bias")
    return Affine(weight, weight.new_zeros(len(weight)) if bias is None else bias.detach().double())


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
