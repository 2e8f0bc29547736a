"""TubeProbe against Pythagoras, and what it finds rays for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.geometry.directions import orthogonal_directions
from tests.networks import SHAPE, SIZE, relu_net
from tests.rays import ball, half_space, points


def test_directions_are_orthogonal_to_rounding_and_of_unit_length() -> None:
    axis = torch.rand(500, dtype=torch.float64) * 1e3
    found = orthogonal_directions(axis, 50, torch.Generator().manual_seed(0))
    assert float((found @ axis / axis.norm()).abs().max()) < 1e-15
    torch.testing.assert_close(found.norm(dim=1), torch.ones(50, dtype=torch.float64))
    cosines = found @ found.T
    assert float(cosines.fill_diagonal_(0).abs().max()) < 5 / 500**0.5


def test_the_way_out_of_a_ball() -> None:
    """From a point at distance s from the middle of a chord through the centre: √(radius² − s²)."""
    centre, e = torch.full((SIZE,), 0.5), torch.zeros(SIZE)
    e[0] = 0.25
    reference = gf.TensorSet((centre - e).view(1, *SHAPE), labels=[0], name="train")
    probe = gf.TubeProbe(reference=reference, rays=1, points=3, directions=9, step=0.001)
    found = gf.measure(probe, ball(centre, 1.0), gf.TensorSet((centre + e).view(1, *SHAPE), labels=[0], name="test"))
    want = np.sqrt(1 - np.array([-0.25, 0, 0.25]) ** 2) / 0.5
    np.testing.assert_allclose(found["radius"].values[0], np.repeat(want[:, None], 9, 1), atol=0.0011)
    assert found["point"].values.tolist() == [0.0, 0.5, 1.0]
    assert found["hop"].item() == pytest.approx(0.5)
    np.testing.assert_allclose(found["minimum"], found["radius"].min(["point", "direction"]))
    assert not found["censored"].any()


def test_rays_are_covered_and_of_the_predicted_class() -> None:
    encoder = gf.ModuleEncoder(relu_net(), head=torch.nn.Linear(8, 3), input_shape=SHAPE)
    labels = [i % 3 for i in range(30)]
    reference = gf.TensorSet(points(30, 1), labels=labels, name="train")
    images = gf.TensorSet(points(6, 2), labels=labels[:6], name="test")
    found = gf.measure(gf.TubeProbe(reference=reference, rays=5, points=2, directions=3, step=0.05), encoder, images)
    tests, references = found["test_image"].values, found["reference"].values
    valid = tests >= 0
    assert valid.any()
    assert len(set(zip(tests[valid], references[valid], strict=True))) == valid.sum()
    coverage = gf.measure(gf.RayCoverageProbe(reference=reference, n_reference=None, step=0.05), encoder, images)
    for test, ref in zip(tests[valid], references[valid], strict=True):
        place = coverage["reference"].values[test].tolist().index(ref)
        assert coverage["gi"].values[test, place] >= 1
    assert found["radius"].isnull().any(["point", "direction"]).values.tolist() == (~valid).tolist()


def test_no_covered_ray_is_one_line() -> None:
    encoder = half_space(torch.ones(SIZE), 1.0)
    reference = gf.TensorSet(points(3), labels=[1, 1, 1], name="train")
    with pytest.raises(gf.BadInput, match="no covered ray from 'train'"):
        gf.measure(gf.TubeProbe(reference=reference, rays=2), encoder, gf.TensorSet(points(1, 5), name="test"))


def test_of_networks_that_know_nothing_no_covered_ray_is_a_result() -> None:
    encoder = half_space(torch.ones(SIZE), 1.0)
    reference = gf.TensorSet(points(3), labels=[1, 1, 1], name="train")
    probe = gf.TubeProbe(reference=reference, rays=2, allow_none=True)
    found = gf.measure(probe, encoder, gf.TensorSet(points(1, 5), name="test"))
    assert found["radius"].isnull().all()
    assert found["test_image"].values.tolist() == [-1, -1]
    assert probe.key == probe.evolve(allow_none=False).key
    assert gf.TubeProbe().smoke().allow_none


def test_a_single_pixel_has_no_tube() -> None:
    encoder = gf.ModuleEncoder(torch.nn.Flatten(), head=torch.nn.Linear(1, 3), input_shape=(1, 1, 1))
    reference = gf.TensorSet(torch.rand(9, 1, 1, 1), labels=[0, 1, 2] * 3, name="r")
    with pytest.raises(BadInput, match="single pixel"):
        gf.measure(gf.TubeProbe(reference=reference), encoder, gf.TensorSet(torch.rand(3, 1, 1, 1), name="t"))
