"""Tiny specs that stand in for real encoders, image sets and probes: fast, and counted where it matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from geoframe.encoder import Encoder, Network
from geoframe.probe import Batch, Output, Probe
from geoframe.probeset import ProbeSet, Record

SHAPE = (1, 4, 4)


@attrs.frozen(kw_only=True)
class TinyEncoder(Encoder):
    """Sixteen pixels to `width` features."""

    width: int = attrs.field(default=3, validator=attrs.validators.instance_of(int))
    seed: int = 0
    training: str = "none"

    @property
    def coords(self) -> dict[str, Any]:
        return {"training": self.training, "seed": self.seed}

    def build(self) -> Network:
        import torch

        torch.manual_seed(self.seed)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, self.width), torch.nn.Tanh())
        return Network(features=net, input_shape=SHAPE, layer="tanh")

    def randomised(self) -> TinyEncoder:
        return self.evolve(training="none")


@attrs.frozen(kw_only=True)
class BrokenEncoder(TinyEncoder):
    """Its weights can't be read."""

    def build(self) -> Network:
        raise RuntimeError("weights went missing")


@attrs.frozen(kw_only=True)
class Dots(ProbeSet):
    """`n` random images."""

    n: int = 3
    seed: int = 0

    @property
    def coords(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def count(self) -> int:
        return self.n

    def records(self) -> Iterator[Record]:
        import torch

        generator = torch.Generator().manual_seed(self.seed)
        for i in range(self.n):
            yield Record(f"dot-{self.seed}-{i}", i, torch.rand(SHAPE, generator=generator))

    def smoke(self) -> Dots:
        return self.evolve(n=1, name=self.label)


@attrs.frozen(kw_only=True)
class Faded(ProbeSet):
    """Another set, made darker: a wrapper."""

    of: ProbeSet
    by: float = 0.5

    def count(self) -> int | None:
        return self.of.count()

    def records(self) -> Iterator[Record]:
        for record in self.of.records():
            yield Record(record.id, record.label, record.image * self.by)


@attrs.frozen(kw_only=True)
class Norm(Probe):
    """Length of the feature vector, times each of `scales`."""

    version = "1"
    images_per_block = 2
    outputs = {
        "norm": Output(("scale",), units="feature L2"),
        "positive": Output(dtype="bool"),
        "digit": Output(dtype="int64"),
        "word": Output(dtype="str"),
    }
    scales: tuple[float, ...] = attrs.field(default=(1.0, 2.0), converter=tuple)
    repeats: int = attrs.field(default=1, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)])

    def coords(self) -> Mapping[str, Any]:
        return {"scale": self.scales}

    def smoke(self) -> Norm:
        return self.evolve(scales=self.scales[:1])

    def forward_passes(self) -> float:
        return float(self.repeats)

    def measure(self, encoder: Any, batch: Batch) -> Mapping[str, Any]:
        for _ in range(self.repeats):
            norm = encoder.features(batch.images).norm(dim=1)
        return {
            "norm": norm[:, None] * norm.new_tensor(self.scales),
            "positive": norm > 0,
            "digit": (norm * 10).long(),
            "word": [f"norm {float(value):.1f}" for value in norm],
        }


@attrs.frozen(kw_only=True)
class Mean:
    """Not a spec: for tests of what a study refuses."""
