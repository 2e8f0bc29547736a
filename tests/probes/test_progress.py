"""Progress: whatever rays do, each cell moves it by what it was planned as."""

from __future__ import annotations

import pytest
import torch

import geoframe as gf
from geoframe.encoder import Encoder
from geoframe.loaded import LoadedEncoder
from geoframe.measuring import blocks, measure_block
from geoframe.plan import Cell
from geoframe.settings import choose_settings
from tests.networks import SHAPE, loaded, relu_net

REFERENCE = gf.TensorSet(torch.rand(12, *SHAPE), labels=[0, 1, 2] * 4, name="train")
IMAGES = gf.TensorSet(torch.rand(3, *SHAPE), labels=[0, 1, 2], name="toy")
PROBES = [
    gf.RatioProbe(directions=8, jvp_directions=4),
    gf.JacobianProbe(),
    gf.JacobianProbe(top=2),
    gf.GIProbe(n_directions=5, step=0.5),
    gf.GIProbe(step=1.0, layer="pre"),
    gf.GIProbe(n_directions=5, search="exact"),
    gf.GIProbe(along="random", step=0.5),
    gf.LinearityProbe(n_directions=5, step=0.5),
    gf.LinearityProbe(n_directions=5, step=0.5, reading="logits"),
    gf.BoundsProbe(n_directions=5, step=0.5),
    gf.AlignmentProbe(),
    gf.AlignmentProbe(vectors="difference", reference=REFERENCE),
    gf.RayCoverageProbe(reference=REFERENCE, step=0.1, n_reference=None),
    gf.RayCoverageProbe(reference=REFERENCE, search="exact", classes="different"),
    gf.TrajectoryProbe(reference=REFERENCE, points=5),
    gf.TubeProbe(reference=REFERENCE, rays=4, points=2, directions=2, step=0.5),
    gf.TubeProbe(reference=REFERENCE, rays=4, points=2, directions=2, search="exact"),
]


def classifier() -> gf.ModuleEncoder:
    net = torch.nn.Sequential(*relu_net(), torch.nn.ReLU())
    return gf.ModuleEncoder(net, head=torch.nn.Linear(8, 3), input_shape=SHAPE, name="net")


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: f"{p.label}-{getattr(p, 'search', '')}")
def test_a_cell_counts_as_what_it_was_planned_as(probe: gf.Probe) -> None:
    encoder = classifier()
    network = encoder.load()
    images = IMAGES.load(SHAPE)
    settings = choose_settings(network)
    seen: list[float] = []
    network.on_pass = seen.append
    for start, stop in blocks(probe, len(images)):
        measure_block(probe, network, images, start, stop, settings)
    assert sum(seen) == pytest.approx(Cell(encoder, IMAGES, probe).passes())
    assert min(seen) > 0


def test_a_plan_of_whole_pools_looks_at_the_set() -> None:
    probe = gf.RayCoverageProbe(reference=REFERENCE, n_reference=None, step=0.1)
    assert probe.planned_passes(None, None) == 1 + 4 * (1 + 11)
    digits = gf.Digits(split="train")
    assert probe.evolve(reference=None).planned_passes(None, digits) == pytest.approx(1 + 119.7 * 12)
    assert probe.evolve(reference=None, n_reference=20).planned_passes(None, digits) == 1 + 20 * 12
    assert probe.evolve(reference=None).planned_passes(None, None) == 1 + 1000 * 12


def test_a_trained_encoder_says_its_shape_and_images_before_it_is_trained() -> None:
    mlp = gf.FactoryEncoder("geoframe.models.small:mlp", kwargs={"inputs": 64}, input_shape=(1, 8, 8))
    digits = gf.Digits(split="train")
    encoder = gf.TrainedEncoder(gf.Training(model=mlp, data=digits, epochs=1))
    assert (encoder.known_shape, encoder.training_set) == ((1, 8, 8), digits)
    whole = Cell(encoder, gf.Digits(n=2), gf.GIProbe()).passes()
    some = Cell(encoder, gf.Digits(n=2), gf.GIProbe(n_directions=64)).passes()
    assert whole == some


def test_a_set_is_planned_once() -> None:
    probe = gf.TubeProbe(reference=REFERENCE)
    costs = {n: Cell(classifier(), gf.Digits(n=n), probe).passes() for n in (1, 100)}
    assert costs[1] == costs[100] == probe.forward_passes()


def test_passes_in_float64_count() -> None:
    encoder = loaded(relu_net())
    seen: list[float] = []
    encoder.on_pass = seen.append
    twin = encoder.double()
    assert isinstance(twin, LoadedEncoder)
    assert not seen
    twin.features(torch.rand(4, *SHAPE, dtype=torch.float64))
    assert (sum(seen), encoder.passes) == (4, 4)


def test_what_is_counted_as_something_else() -> None:
    encoder = loaded(relu_net())
    seen: list[float] = []
    encoder.on_pass = seen.append
    with encoder.counted_as(10):
        encoder.count(3)
        with encoder.counted_as(2):
            encoder.count(100)
        assert sum(seen) == 5
        with encoder.counted_as(1):
            pass
    assert (sum(seen), encoder.passes) == (10, 103)
    with pytest.raises(RuntimeError), encoder.counted_as(10):
        raise RuntimeError
    encoder.count(1)
    assert sum(seen) == 11


def test_other_encoders_know_neither() -> None:
    assert (Encoder().known_shape, Encoder().training_set) == (None, None)
