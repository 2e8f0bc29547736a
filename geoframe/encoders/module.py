"""`ModuleEncoder`: a live `torch.nn.Module`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from geoframe.encoder import Coord, Encoder, Network, PerChannel
from geoframe.errors import BadInput
from geoframe.spec import KEY_VERSION, canonical, digest, type_name

if TYPE_CHECKING:
    import torch


def _check_module(_spec: object, field: Any, value: Any) -> None:
    import torch

    if not isinstance(value, torch.nn.Module) and not (value is None and field.name == "head"):
        raise BadInput(f"ModuleEncoder: {field.name} is a {type(value).__name__}, not a torch.nn.Module")


@attrs.frozen(slots=False, eq=False)
class ModuleEncoder(Encoder):
    """A module that lives in this process; measured in it only, and never changed.

    It is keyed by what it computes: its class, its weights at the moment, and its features of a fixed batch. To
    resume a run in a later process, use `FactoryEncoder` or `CheckpointEncoder`.

    Attributes
    ----------
    features : torch.nn.Module
        Normalised images (n, channel, height, width) to features (n, d); or a whole classifier, with its last
        layer as `head`: it is cut there.
    head : torch.nn.Module or None
        Features (n, d) to logits (n, class).
    mean, std : float or tuple of float
        Normalisation of raw [0, 1] pixels, per channel.
    """

    in_process_only: ClassVar[bool] = True

    features: torch.nn.Module = attrs.field(eq=False, validator=_check_module)
    head: torch.nn.Module | None = attrs.field(default=None, eq=False, validator=_check_module)
    mean: PerChannel = attrs.field(default=0.0, kw_only=True)
    std: PerChannel = attrs.field(default=1.0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.input_shape is None:
            raise BadInput("ModuleEncoder needs input_shape=(channel, height, width)")

    def default_name(self) -> str:
        """Return the class of the module, in lower case."""
        return type(self.features).__name__.lower()

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture: the class of the module."""
        return {"architecture": type(self.features).__name__}

    def identity(self) -> dict[str, Any]:
        """What the module computes, at the moment, as JSON."""
        features, head = self._copies()
        fields = {
            "features": _module_identity(self.features),
            "head": None if self.head is None else _module_identity(self.head),
            "response": _response_digest(features, head, self.input_shape),
            **{name: canonical(getattr(self, name)) for name in ("input_shape", "mean", "std")},
        }
        return {"type": type_name(type(self)), "version": self.version, "fields": fields}

    @property
    def key(self) -> str:  # not cached: a module may be trained on between two measurements
        """Digest of `identity`: equal keys mean equal numbers."""
        stamp = self._stamp()
        known: tuple[Any, str] | None = self.__dict__.get("_known_key")
        if known is None or known[0] != stamp:
            known = self.__dict__["_known_key"] = (stamp, digest({"key_version": KEY_VERSION, **self.identity()}))
        return known[1]

    def build(self) -> Network:
        """Return copies of the modules, on the CPU, in float32."""
        features, head = self._copies()
        assert self.input_shape is not None
        return Network(
            features=features,
            head=head,
            input_shape=self.input_shape,
            mean=self.mean,
            std=self.std,
            source=f"live module {type_name(type(self.features))}",
            layer="output",
        )

    def _copies(self) -> tuple[torch.nn.Module, torch.nn.Module | None]:
        """Copy both parts at once, so that weights they share stay shared."""
        import torch

        try:
            with torch.no_grad():  # or a scripted module's copies hang on a graph
                features, head = copy.deepcopy((self.features, self.head))
        except Exception as error:  # a module can refuse in any way
            raise BadInput(
                f"encoder {self.label!r}: the module can't be copied ({type(error).__name__}: {error}): keep open "
                "files, locks and computed tensors out of it, or give a function that builds it to FactoryEncoder"
            ) from error
        features = _cut(features.cpu().float().eval(), head)
        return features, None if head is None else head.cpu().float().eval()

    def _stamp(self) -> tuple[Any, ...]:
        """What changes whenever an optimiser, `load_state_dict` or an in-place operation changes a weight."""
        modules = [m for m in (self.features, self.head) if m is not None]
        tensors = [t for m in modules for t in (*m.parameters(), *m.buffers())]
        return tuple((id(t), 0 if t.is_inference() else t._version) for t in tensors)


def _cut(features: torch.nn.Module, head: torch.nn.Module | None) -> torch.nn.Module:
    """Cut a model in front of its head, where the head is one of its own layers: `ModuleEncoder(net, head=net.fc)`."""
    import torch

    name = next((name for name, module in features.named_modules() if module is head), "")
    if name:
        features.set_submodule(name, torch.nn.Identity())
    return features


def _module_identity(module: torch.nn.Module) -> dict[str, Any]:
    return {"type": type_name(type(module)), "state": {k: _value_digest(v) for k, v in module.state_dict().items()}}


def _value_digest(value: Any) -> str:
    """Digest of an entry of a state dict, of any dtype; an extra state that can't be keyed counts by its type."""
    import torch

    from geoframe.spec import array_digest

    if not isinstance(value, torch.Tensor):
        return type_name(type(value))
    if value.dtype.is_floating_point or value.dtype.is_complex:
        kind = str(value.dtype)
        wide = torch.complex128 if value.dtype.is_complex else torch.float64  # exact, and numpy has no bfloat16
        return f"{kind} {array_digest(value.to(wide))}"
    return array_digest(value)


def _response_digest(features: Any, head: Any, input_shape: Any) -> str:
    """Digest of the output for a fixed batch, or the error's type where there is none: `load` then explains."""
    import torch

    from geoframe.encoders.building import clean_build

    batch = torch.rand((2, *input_shape), generator=torch.Generator().manual_seed(0))
    try:
        with clean_build(0), torch.no_grad():
            output = features(batch)
            logits = None if head is None else head(output)
    except Exception as error:  # any: the key must not be what fails
        return type(error).__name__
    return " ".join(_value_digest(value) for value in (output, logits))
