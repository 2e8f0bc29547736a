"""TrajectoryProbe against a half-space, whose logits are linear along any path."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.testing import check_probe, tiny_images
from tests.networks import SHAPE, SIZE, relu_net
from tests.rays import ball, half_space, points


def test_logits_are_linear_along_the_paths_of_a_half_space() -> None:
    w, x, others = torch.linspace(-1, 1, SIZE), points(3), points(6, seed=4)
    b = -float((others.flatten(1) @ w).median())
    labels = [0, 0, 1, 0, 1, 1]
    probe = gf.TrajectoryProbe(reference=gf.TensorSet(others, labels=labels, name="train"), n_reference=2, points=11)
    found = gf.measure(probe, half_space(w, b), gf.TensorSet(x, labels=[0, 0, 0], name="toy"))
    np.testing.assert_allclose(found["point"], np.linspace(0, 1, 11))
    ends = (x.flatten(1) @ w + b).numpy()
    starts = (others.flatten(1) @ w + b).numpy()
    for row in range(3):
        held = int(ends[row] <= 0)
        assert int(found["predicted"][row]) == held
        assert bool(found["correct"][row]) == (held == 0)
        for ray, index in enumerate(found["reference"][row].values):
            assert labels[index] == held
            line = np.linspace(starts[index], ends[row], 11)
            np.testing.assert_allclose(found["path_logits"][row, ray, :, 0], line, atol=1e-5)
            np.testing.assert_array_equal(found["path_logits"][row, ray, :, 1], 0)
            np.testing.assert_array_equal(found["path_class"][row, ray], line <= 0)
            assert int(found["changes"][row, ray]) == int((starts[index] > 0) != (ends[row] > 0))
            np.testing.assert_allclose(found["hop"][row, ray], (others[index] - x[row]).norm(), rtol=1e-5)


def test_a_path_through_a_ball_changes_class_twice() -> None:
    centre = torch.full((SIZE,), 0.5)
    step = torch.zeros(SIZE)
    step[0] = 0.4
    ends = torch.stack([centre - step, centre + step]).view(2, *SHAPE)
    reference = gf.TensorSet(ends[:1], labels=[1], name="train")
    probe = gf.TrajectoryProbe(reference=reference, points=9)
    found = gf.measure(probe, ball(centre, 0.25), gf.TensorSet(ends[1:], name="toy"))
    np.testing.assert_array_equal(found["path_class"][0, 0], [1, 1, 0, 0, 0, 0, 0, 1, 1])
    assert found["changes"].values.tolist() == [[2, -1, -1, -1, -1]]
    assert found["rays"].values.tolist() == [1]
    assert (found["path_class"][0, 1:] == -1).all()
    assert found["path_logits"][0, 1:].isnull().all()
    none = probe.evolve(reference=gf.TensorSet(ends[:1], labels=[0], name="train"))
    empty = gf.measure(none, ball(centre, 0.25), gf.TensorSet(ends[1:], name="toy"))
    assert empty["rays"].values.tolist() == [0]
    assert empty["path_logits"].shape == (1, 5, 9, 2)
    assert empty["path_logits"].isnull().all()


def test_refused() -> None:
    x = points(1)
    images, train = gf.TensorSet(x, name="toy"), gf.TensorSet(points(2, seed=2), labels=[0, 0], name="train")
    bare = gf.ModuleEncoder(relu_net(), input_shape=SHAPE, name="bare")
    one = gf.ModuleEncoder(relu_net(), head=nn.Linear(8, 1), input_shape=SHAPE, name="one")
    plane = half_space(torch.ones(SIZE), 0.0)
    with pytest.raises(gf.BadInput, match=r"TrajectoryProbe needs logits.*'bare'"):
        gf.measure(gf.TrajectoryProbe(reference=train), bare, images)
    with pytest.raises(gf.EncoderRefused, match="'one' has a single class"):
        gf.measure(gf.TrajectoryProbe(reference=train), one, images)
    with pytest.raises(gf.BadInput, match="doesn't say what it was trained on"):
        gf.measure(gf.TrajectoryProbe(), plane, images)
    with pytest.raises(gf.BadInput, match="are the same"):
        gf.measure(gf.TrajectoryProbe(reference=gf.TensorSet(x, labels=[0], name="train")), plane, images)
    other = gf.TensorSet(torch.rand(2, 1, 5, 5), labels=[0, 1], name="other")
    with pytest.raises(gf.GeoframeError, match="5"):
        gf.measure(gf.TrajectoryProbe(reference=other), plane, images)


@pytest.mark.parametrize("changes", [{"points": 1}, {"n_reference": 0}, {"reference": 3}])
def test_senseless_parameters_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(gf.BadInput):
        gf.TrajectoryProbe().evolve(**changes)


def test_checks_for_authors() -> None:
    check_probe(gf.TrajectoryProbe(reference=tiny_images(8, seed=3), n_reference=2, points=5))
