"""`LoadedEncoder`: Φ on its device, with the normalisation folded in, ready to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import torch

from geoframe.encoder import Encoder, Network, PerChannel, Shape
from geoframe.errors import EncoderRefused
from geoframe.geometry.pushforward import pushforward, shared_pushforward
from geoframe.network_outputs import checked_features, checked_logits
from geoframe.numerics import exact_numerics, plain_torch, threads
from geoframe.process import keep_freed_memory
from geoframe.training.place import training_on

if TYPE_CHECKING:
    from geoframe.probeset import ProbeSet
    from geoframe.tuning import Derivative

Derived = TypeVar("Derived")

JVP_COST = 3.0  # forward passes that one Jacobian–vector product counts for in plans and progress


def _per_channel(value: PerChannel, channels: int, label: str) -> torch.Tensor:
    tensor = torch.as_tensor(value, dtype=torch.float32).reshape(-1)
    if tensor.numel() not in (1, channels):
        have = "1 channel" if channels == 1 else f"{channels} channels"
        raise EncoderRefused(
            f"encoder {label!r}: mean and std hold {tensor.numel()} values, but its images have {have}: give a value "
            "for each channel, or one for all"
        )
    return tensor.expand(channels).reshape(1, channels, 1, 1).clone()


def _settle(module: torch.nn.Module, device: torch.device, label: str) -> None:
    """Put a module in eval mode on a device and freeze its weights (a scripted module can't as a whole)."""
    tensors = [*module.parameters(), *module.buffers()]
    if any(torch.nn.parameter.is_lazy(t) for t in tensors):
        raise EncoderRefused(
            f"encoder {label!r} has a lazy layer whose weights don't exist yet: run it once on a batch of images first"
        )
    module.eval().to(device)
    for parameter in module.parameters():
        if parameter.is_leaf:  # copies of a scripted module's aren't
            parameter.requires_grad_(False)


def state_digest(module: torch.nn.Module) -> str:
    """Digest of a module's parameters and buffers, by name, dtype, shape and bytes."""
    from geoframe.spec import array_digest, digest

    return digest({name: array_digest(tensor) for name, tensor in module.state_dict().items()})


@attrs.define(eq=False)
class LoadedEncoder:
    """An encoder that is built, in eval mode, on a device.

    Attributes
    ----------
    label : str
        The encoder's name, for messages.
    network : torch.nn.Module
        Normalised images to features.
    head : torch.nn.Module or None
        Features to logits.
    input_shape : tuple of int
        (channel, height, width).
    mean, std : torch.Tensor
        (1, channel, 1, 1): normalisation of raw pixels, folded into Φ.
    dtype : torch.dtype
        float32, or float64 for the copy that `double` makes.
    layout : torch.memory_format
        Channels last, or contiguous where the network can't run that way (a `view` of a feature map, weights
        of five dimensions).
    micro_batch : int
        Images that one forward pass should hold; fixed when a cell starts.
    memory : int
        Cap in bytes on activations that `micro_batch` was chosen from; fixed when a cell starts.
    derivative : {"batch", "shared"}
        How Jacobian–vector products at one image are computed (see `geoframe.tuning`); fixed when a cell starts.
    bfloat16 : bool
        Whether bfloat16 is worth trying; fixed when a cell starts.
    passes : float
        Forward passes done so far; a Jacobian–vector product counts `JVP_COST`.
    on_pass : callable or None
        Called with the number of forward passes just done (progress).
    training_set : ProbeSet or None
        The images it was trained on, where that is known.
    """

    label: str
    network: torch.nn.Module
    head: torch.nn.Module | None
    input_shape: Shape
    mean: torch.Tensor
    std: torch.Tensor
    device: torch.device
    source: str = ""
    layer: str = ""
    dtype: torch.dtype = torch.float32
    layout: torch.memory_format = torch.channels_last
    micro_batch: int = 1
    memory: int = 512 * 2**20
    derivative: Derivative = "batch"
    bfloat16: bool = False
    passes: float = 0.0
    on_pass: Callable[[float], None] | None = None
    training_set: ProbeSet | None = None
    _checked: bool = False
    _planned: list[float] = attrs.field(factory=list, init=False)  # left of each `counted_as`, the outermost first
    _double: list[LoadedEncoder | None] = attrs.field(factory=list)
    _derived: dict[Callable[..., Any], Any] = attrs.field(factory=dict, init=False)  # a copy starts without

    @classmethod
    def of(cls, spec: Encoder, device: str = "cpu") -> LoadedEncoder:
        """Build a spec's network and put it on `device`, in eval mode, weights frozen, channels last."""
        with plain_torch(), threads(torch.get_num_threads()), training_on(str(device)):  # a factory may set its own
            return cls.from_network(spec.build(), spec.label, device)

    @classmethod
    def from_network(cls, built: Network, label: str, device: str = "cpu") -> LoadedEncoder:
        """Make a network that nobody else holds ready to measure."""
        keep_freed_memory()
        place = torch.device(device)
        channels = built.input_shape[0]
        for module in (built.features, built.head):
            if module is not None:
                _settle(module, place, label)
        encoder = cls(
            label=label,
            network=built.features,
            head=built.head,
            input_shape=built.input_shape,
            mean=_per_channel(built.mean, channels, label).to(place),
            std=_per_channel(built.std, channels, label).to(place),
            device=place,
            source=built.source,
            layer=built.layer,
            training_set=built.training_set,
        )
        encoder._choose_layout()
        return encoder

    @cached_property
    def digest(self) -> str:
        """Digest of the weights that were really loaded, head included."""
        both = torch.nn.ModuleDict({"features": self.network, **({"head": self.head} if self.head else {})})
        return state_digest(both)

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Φ: raw [0, 1] pixels (n, channel, height, width) to features (n, d)."""
        features = self._forward(images)
        self.count(len(images))
        return features

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Classifier: raw [0, 1] pixels (n, channel, height, width) to logits (n, class)."""
        if self.head is None:
            raise EncoderRefused(f"encoder {self.label!r} has no head, so it has no logits: give it one")
        return self.classify(self.features(images))

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        """Head: features (n, d) to logits (n, class)."""
        assert self.head is not None
        return checked_logits(self.label, self.head(features), len(features))

    def pushforward(self, images: torch.Tensor, tangents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Φ(x) and J_Φ(x) v, row by row (see `geoframe.geometry.pushforward`)."""
        result = pushforward(self._forward, images, tangents)
        self.count(len(images) * JVP_COST)
        return result

    def push_at(self, x: torch.Tensor, tangents: torch.Tensor) -> torch.Tensor:
        """J_Φ(x) v at one image x (1, channel, height, width) for tangents (n, channel, height, width): (n, d)."""
        self.count(len(tangents) * JVP_COST)
        if self.derivative == "shared":
            size = max(1, self.micro_batch // 2)
            return torch.cat([shared_pushforward(self._forward, x, part) for part in torch.split(tangents, size)])
        size = max(1, self.micro_batch // 4)
        parts = [part.contiguous(memory_format=self.layout) for part in torch.split(tangents, size)]
        repeated = x.expand_as(parts[0]).contiguous(memory_format=self.layout)
        return torch.cat([pushforward(self._forward, repeated[: len(part)], part)[1] for part in parts])

    def double(self) -> LoadedEncoder | None:
        """Return a float64 copy, made once, or None where the encoder can't run in float64.

        Its passes count for this encoder too.
        """
        if not self._double:
            from geoframe.double import double_copy

            self._double.append(double_copy(self))
        return self._double[0]

    def twin(self, network: torch.nn.Module, **changes: Any) -> LoadedEncoder:
        """Return the encoder with another network in its place, without head, whose passes count for this one."""
        fresh: dict[str, Any] = {"head": None, "passes": 0.0, "on_pass": self.count, "double": []}
        return attrs.evolve(self, network=network, **{**fresh, **changes})

    def derived(self, make: Callable[[LoadedEncoder], Derived]) -> Derived:
        """Return what a function makes of this encoder (folded weights, say), made once and kept as long as it is."""
        if make not in self._derived:
            self._derived[make] = make(self)
        made: Derived = self._derived[make]
        return made

    def preflight(self, pixels: torch.Tensor) -> None:
        """Refuse an encoder that would give silently wrong numbers (see `geoframe.preflight`)."""
        from geoframe import derivative_check, preflight

        with exact_numerics():
            preflight.check_finite(self, pixels)
            if len(pixels) and not self._checked:
                preflight.check_behaviour(self, pixels[:1])
                derivative_check.check_derivative(self, pixels)
                self._checked = True

    @cached_property
    def sample_bytes(self) -> int:
        """Estimated peak memory of one image in a forward pass (see `geoframe.memory`)."""
        from geoframe.memory import sample_bytes

        with exact_numerics():
            return sample_bytes(self)

    def _forward(self, images: torch.Tensor) -> torch.Tensor:
        if tuple(images.shape[1:]) != self.input_shape:
            raise EncoderRefused(
                f"encoder {self.label!r} takes images of shape {self.input_shape}, not {tuple(images.shape[1:])}"
            )
        if self.layout is torch.contiguous_format:
            images = images.contiguous()
        features = self.network((images - self.mean) / self.std)
        return checked_features(self.label, features, len(images))

    def count(self, passes: float) -> None:
        """Tell the progress of passes that were made around `features`."""
        self.passes += passes
        self._tell(passes)

    @contextmanager
    def counted_as(self, planned: float) -> Iterator[None]:
        """Tell the progress of `planned` passes, whatever is really done inside.

        Rays that end early make fewer than were planned, an exact search makes none, and a float64 copy may make more.
        Passes are told as they are made, up to `planned`, and the rest at the end. `passes` counts what is made.
        """
        self._planned.append(planned)
        try:
            yield
        except BaseException:
            self._planned.pop()
            raise
        left = self._planned.pop()
        if left > 0:
            self._tell(left)

    def _tell(self, passes: float) -> None:
        if self._planned:
            passes = min([passes, *self._planned])
            self._planned = [left - passes for left in self._planned]
        if passes > 0 and self.on_pass is not None:
            self.on_pass(passes)

    def _choose_layout(self) -> None:
        """Channels last is the faster layout of convolutions; where the network fails in it, contiguous."""
        images = torch.full((2, *self.input_shape), 0.5, device=self.device)
        modules = [m for m in (self.network, self.head) if m is not None]
        for self.layout in (torch.channels_last, torch.contiguous_format):
            try:
                for module in modules:
                    module.to(memory_format=self.layout)
                with exact_numerics():
                    self._forward(images.contiguous(memory_format=self.layout))
                return
            except Exception:  # of any kind: if it fails in both, the preflight says why
                continue
