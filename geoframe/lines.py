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
from geoframe.mlp_layers import affine_of, on_raw_pixels, sweep_layers
from geoframe.piecewise import SILENT, chain, hooked, piecewise_network
from geoframe.probes.searching import Search

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder


EXACT_BLOCK = 32  # rays that the exact search sweeps together: their window fits the cache
READ = 3  # images on which layers that were read one by one are compared with the whole
ALIKE = 1e-3  # of the largest logit


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
    return _stepped(encoder, rays, lambda line, held: step_search.grid_search(line, held, steps, encoder.micro_batch))


def ladder_intervals(encoder: LoadedEncoder, rays: RayTable, steps: torch.Tensor, halvings: int) -> Intervals:
    """Find intervals on steps of any spacing, the one on which a class changes halved (ours): see `refined_search`."""
    batch = encoder.micro_batch
    return _stepped(encoder, rays, lambda line, held: step_search.refined_search(line, held, steps, halvings, batch))


def _stepped(encoder: LoadedEncoder, rays: RayTable, search: Callable[[Line, torch.Tensor], Intervals]) -> Intervals:
    """Search rays in steps, block by block."""
    first = encoder.derived(_first_linear)
    parts = []
    for block in rays.blocks(encoder.micro_batch):
        line = _line(encoder, block, first)
        try:
            parts.append(search(line, block.held))
        except step_search.NotFinite as error:
            raise EncoderRefused(f"encoder {encoder.label!r}: {error}: check its weights and normalisation") from error
    return step_search.join(parts)


def predicted(encoder: LoadedEncoder, images: torch.Tensor) -> torch.Tensor:
    """Classes of images, (n,), int64; refuses logits that aren't finite, and a classifier of one class."""
    logits = torch.cat([encoder.logits(part) for part in torch.split(images, encoder.micro_batch)])
    if logits.shape[1] < 2:
        raise EncoderRefused(f"encoder {encoder.label!r} has a single class: no ray can change it")
    if not logits.isfinite().all():
        raise EncoderRefused(
            f"encoder {encoder.label!r} returns NaN or infinite logits: check its weights and normalisation"
        )
    return logits.argmax(1)


def exact_form(encoder: LoadedEncoder) -> list[Affine | Kink] | PiecewiseLinear:
    """Return the classifier as the exact search takes it: layers to sweep for an MLP, or a piecewise-linear network.

    Raises
    ------
    EncoderRefused
        Where a layer isn't piecewise linear, or not one that the exact search knows; it is named.
    """
    layers = sweep_layers(encoder)
    if layers is None:
        network = piecewise_network(encoder)
        _check_reading(encoder, lambda x: piecewise_line.logits(network, x))
        return network
    _check_reading(encoder, lambda x: relu_line.logits(layers, x.flatten(1)))
    return layers


def _check_reading(encoder: LoadedEncoder, read: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Refuse an encoder whose layers, read one by one, give other logits than the encoder itself."""
    x = _some_images(encoder)
    if not _alike(encoder.logits(x), read(x.double())):
        raise EncoderRefused(
            f"search='exact': the layers of encoder {encoder.label!r}, one after the other, give other logits than the "
            "encoder itself: use search='grid'"
        )


def _some_images(encoder: LoadedEncoder) -> torch.Tensor:
    drawn = torch.rand(READ, *encoder.input_shape, generator=torch.Generator().manual_seed(0))
    return drawn.to(encoder.device, encoder.dtype)


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.shape == two.shape and bool((one - two).abs().max() <= ALIKE * one.abs().max())


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
    while modules and type(modules[0]) in (*SILENT, nn.Flatten) and not hooked(modules[0]):
        modules = modules[1:]
    if not modules or type(modules[0]) is not nn.Linear or hooked(modules[0]):
        return None
    if modules[0].in_features != math.prod(encoder.input_shape):  # it runs over rows of pixels
        return None
    folded = on_raw_pixels(encoder, affine_of(modules[0]))
    assert encoder.head is not None
    after = nn.Sequential(*modules[1:], encoder.head)

    def rest(hidden: torch.Tensor) -> torch.Tensor:
        encoder.count(len(hidden))
        return torch.as_tensor(after(hidden))

    weight, bias = folded.weight.to(encoder.dtype), folded.bias.to(encoder.dtype)
    x = _some_images(encoder)
    alike = _alike(encoder.logits(x), rest(nn.functional.linear(x.flatten(1), weight, bias)))
    return (weight, bias, rest) if alike else None
