"""Counts against closed forms, hooks that go away, and registration by entry point."""

from __future__ import annotations

import geoframe as gf
import numpy as np
import pytest
import torch
from geoframe.geometry.directions import stream_key
from geoframe.testing import check_probe
from torch import nn

from geoframe_local_complexity.polytope import orthonormal_frame, vertices
from geoframe_local_complexity.probe import LocalComplexityProbe

SHAPE = (1, 3, 4)
DIM = 12
MEAN, STD = 0.3, 0.5


def loaded(*layers, micro_batch=64):
    network = gf.Network(features=nn.Sequential(nn.Flatten(), *layers), input_shape=SHAPE, mean=MEAN, std=STD)
    encoder = gf.LoadedEncoder.from_network(network, "toy")
    encoder.micro_batch = micro_batch
    return encoder


def batch_of(images, ids=None):
    ids = ids or tuple(str(i) for i in range(len(images)))
    rng = tuple(torch.Generator().manual_seed(hash_of(image_id)) for image_id in ids)
    return gf.Batch(images=images, labels=torch.full((len(images),), -1), ids=ids, rng=rng)


def hash_of(image_id):
    return sum(map(ord, image_id))


def images(n, seed=0):
    return torch.rand(n, *SHAPE, generator=torch.Generator().manual_seed(seed))


def linear(n, seed=1):
    torch.manual_seed(seed)
    return nn.Linear(DIM, n)


def expected(layer, x, radius, n_directions, image_id, kinks=(0.0,)):
    """Neurons whose hyperplane the polytope crosses: max_p |r w·v_p| > |w·x + b − kink|, in numpy."""
    frame = orthonormal_frame(DIM, n_directions, torch.Generator().manual_seed(hash_of(image_id))).numpy()
    w = layer.weight.detach().double().numpy() / STD
    values = w @ (x.double().numpy().ravel() - MEAN) + layer.bias.detach().double().numpy()
    reach = radius * np.abs(w @ frame.T).max(axis=1)
    return sum(int((reach > np.abs(values - kink)).sum()) for kink in kinks)


def test_the_frame_is_orthonormal_and_keyed_by_its_generator():
    frame = orthonormal_frame(40, 7, torch.Generator().manual_seed(3))
    torch.testing.assert_close(frame @ frame.T, torch.eye(7, dtype=torch.float64))
    assert torch.equal(frame, orthonormal_frame(40, 7, torch.Generator().manual_seed(3)))
    assert not torch.allclose(frame, orthonormal_frame(40, 7, torch.Generator().manual_seed(4)))


def test_the_frame_has_no_preferred_sign():
    firsts = [orthonormal_frame(2, 1, torch.Generator().manual_seed(i))[0, 0].item() for i in range(400)]
    assert abs(np.mean(np.sign(firsts))) < 0.15  # 3 standard errors


def test_the_vertices_are_at_the_radius():
    x = images(1)[0]
    points = vertices(x, orthonormal_frame(DIM, 5, torch.Generator().manual_seed(0)), 0.25)
    assert points.shape == (10, *SHAPE)
    torch.testing.assert_close((points - x).flatten(1).norm(dim=1), torch.full((10,), 0.25))
    torch.testing.assert_close(points.mean(dim=0), x)


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.5, 2.0])
@pytest.mark.parametrize(
    ("activation", "kinks"), [(nn.ReLU(), (0.0,)), (nn.LeakyReLU(0.1), (0.0,)), (nn.ReLU6(), (0.0, 6.0))]
)
def test_one_layer_agrees_with_the_closed_form(radius, activation, kinks):
    layer = linear(200)
    layer.weight.data *= 4  # so that some values lie near 6
    x = images(3)
    probe = LocalComplexityProbe(radius=radius, n_directions=6)
    found = probe.measure(loaded(layer, activation), batch_of(x))
    want = [expected(layer, x[i], radius, 6, str(i), kinks) for i in range(3)]
    assert found["complexity"][:, 0].tolist() == want
    assert found["total"].tolist() == want
    assert max(want) > 0


def test_hyperplanes_at_known_distances():
    layer = linear(5)
    axis = torch.eye(DIM)[0]
    distances = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
    x = images(1)
    layer.weight.data = axis.repeat(5, 1) * STD
    layer.bias.data = distances - (x.flatten()[0] - MEAN)  # neuron k's plane lies at distance d_k along one axis
    complete = LocalComplexityProbe(radius=1.0, n_directions=DIM)
    frame = orthonormal_frame(DIM, DIM, torch.Generator().manual_seed(hash_of("0")))
    reach = float((frame @ axis.double()).abs().max())
    for radius in (0.05, 0.25, 0.35, 0.9, 5.0):
        found = complete.evolve(radius=radius / reach).measure(loaded(layer, nn.ReLU()), batch_of(x))
        assert found["total"].item() == int((distances < radius).sum())


def test_far_hyperplanes_count_zero_and_a_huge_radius_counts_all():
    layer = linear(50)
    layer.bias.data += 100 * torch.sign(layer.bias.data)
    encoder = loaded(layer, nn.ReLU())
    near = LocalComplexityProbe(radius=0.01, n_directions=4).measure(encoder, batch_of(images(2)))
    assert near["complexity"].tolist() == [[0], [0]]
    far = LocalComplexityProbe(radius=1e6, n_directions=DIM).measure(encoder, batch_of(images(2)))
    assert far["complexity"].tolist() == [[50], [50]]


def linear_to(n, m):
    torch.manual_seed(7)
    layer = nn.Linear(n, m)
    layer.weight.data = torch.randn(m, n)
    return layer


def test_a_neuron_at_zero_everywhere_is_not_crossed():
    layer = linear(9)
    layer.weight.data.zero_()
    layer.bias.data.zero_()
    found = (
        LocalComplexityProbe(radius=1.0).evolve(n_directions=3).measure(loaded(layer, nn.ReLU()), batch_of(images(1)))
    )
    assert found["total"].item() == 0


@pytest.mark.parametrize("micro_batch", [1, 3, 7, 12, 500])
def test_counts_do_not_depend_on_batch_or_chunk(micro_batch):
    layers = (linear(64), nn.ReLU(), linear_to(64, 32), nn.ReLU())
    probe = LocalComplexityProbe(radius=0.3, n_directions=6)
    x = images(4)
    together = probe.measure(loaded(*layers, micro_batch=64), batch_of(x))["complexity"]
    assert together.unique(dim=0).shape[0] > 1
    encoder = loaded(*layers, micro_batch=micro_batch)
    sizes = []
    encoder.on_pass = sizes.append
    for i in range(4):
        alone = probe.measure(encoder, batch_of(x[i : i + 1], (str(i),)))["complexity"]
        assert alone[0].tolist() == together[i].tolist()
    assert set(sizes) == {min(micro_batch, 12)}


def test_a_module_called_twice_counts_per_call():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.relu = linear(30), linear_to(30, 10), nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.second(self.relu(self.first(x))))

    probe = LocalComplexityProbe(radius=0.5, n_directions=5)
    shared = Twice()
    found = probe.measure(loaded(shared), batch_of(images(2)))["complexity"]
    plain = loaded(shared.first, nn.ReLU(), shared.second, nn.ReLU())
    assert found.shape == (2, 2)
    assert found.tolist() == probe.measure(plain, batch_of(images(2)))["complexity"].tolist()


def hooks_on(network):
    return sum(len(module._forward_pre_hooks) + len(module._forward_hooks) for module in network.modules())


def test_hooks_are_removed_after_success_and_after_an_error():
    class Breaks(nn.Module):
        def forward(self, x):
            raise RuntimeError("broken forward")

    probe = LocalComplexityProbe(n_directions=2)
    good = loaded(linear(4), nn.ReLU())
    probe.measure(good, batch_of(images(1)))
    bad = loaded(linear(4), nn.ReLU(), Breaks())
    with pytest.raises(RuntimeError, match="broken forward"):
        probe.measure(bad, batch_of(images(1)))
    assert hooks_on(good.network) == hooks_on(bad.network) == 0


def test_an_encoder_without_countable_modules_is_refused():
    encoder = loaded(linear(4), nn.GELU())
    with pytest.raises(gf.EncoderRefused, match=r"encoder 'toy' calls no nn\.ReLU"):
        LocalComplexityProbe(n_directions=2).measure(encoder, batch_of(images(1)))


def test_bad_parameters():
    with pytest.raises(gf.BadInput, match="13 orthogonal directions don't fit into 12 dimensions"):
        LocalComplexityProbe(n_directions=13).measure(loaded(linear(4), nn.ReLU()), batch_of(images(1)))
    for wrong in ({"radius": 0.0}, {"n_directions": 0}):
        with pytest.raises(gf.BadInput):
            LocalComplexityProbe().evolve(**wrong)


def test_it_is_registered_by_its_entry_point_alone():
    found = gf.Registry.discover(only=["geoframe-local-complexity"]).find("probe", "local-complexity")
    assert found.plugin.dist == "geoframe-local-complexity"
    assert found.load() is LocalComplexityProbe


def test_measured_through_geoframe():
    layer = linear(40)
    encoder = gf.ModuleEncoder(nn.Sequential(nn.Flatten(), layer, nn.ReLU()), input_shape=SHAPE, mean=MEAN, std=STD)
    x = images(3)
    probe = LocalComplexityProbe(radius=0.3, n_directions=6, seed=5)
    ds = gf.measure(probe, encoder, gf.TensorSet(x, name="toy"), device="cpu")
    assert ds["complexity"].dims == ("image", "layer")
    assert ds["complexity"].dtype == ds["total"].dtype == np.int64
    assert ds["complexity"].attrs["units"] == "boundaries"
    assert ds["layer"].values.tolist() == [0]
    frames = [stream_key("probe", 5, image_id) & (2**63 - 1) for image_id in ds["image_id"].values]
    for i, seed in enumerate(frames):
        frame = orthonormal_frame(DIM, 6, torch.Generator().manual_seed(seed)).numpy()
        w = layer.weight.detach().double().numpy() / STD
        values = w @ (x[i].double().numpy().ravel() - MEAN) + layer.bias.detach().double().numpy()
        assert ds["total"].values[i] == (0.3 * np.abs(w @ frame.T).max(axis=1) > np.abs(values)).sum()


def test_it_keeps_the_promises_of_a_probe():
    ds = check_probe(LocalComplexityProbe(radius=0.5, n_directions=4))
    assert ds["complexity"].sizes["layer"] == 2


def test_a_resnet_counts_every_call_of_its_shared_relu():
    from torchvision.models import resnet18

    torch.manual_seed(0)
    network = gf.Network(features=resnet18(), input_shape=(3, 32, 32), mean=0.45, std=0.25)
    encoder = gf.LoadedEncoder.from_network(network, "resnet18")
    encoder.micro_batch = 4
    found = LocalComplexityProbe(n_directions=2, radius=0.5).measure(encoder, batch_of(torch.rand(1, 3, 32, 32)))
    assert found["complexity"].shape == (1, 17)  # the stem's, and two a block in eight blocks
    assert found["complexity"][0, 0] > 0
