"""LinearityProbe against maps whose distance from their linearisation is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.testing import check_probe
from tests.networks import SHAPE, SIZE, Linear, Sine, relu_net
from tests.rays import points


def images(x: torch.Tensor) -> gf.TensorSet:
    return gf.TensorSet(x, name="toy")


def test_a_linear_encoder_is_linear_up_to_the_cap() -> None:
    found = gf.measure(
        gf.LinearityProbe(cap=2.0, step=0.1), gf.ModuleEncoder(Linear(), input_shape=SHAPE), images(points(2))
    )
    for name in ("alpha", "alpha_negative"):
        np.testing.assert_array_equal(found[name], 2.0)
    assert found["censored"].all()
    assert found["censored_negative"].all()
    assert found.sizes["direction"] == SIZE
    np.testing.assert_allclose(found["distance"], 2.0 * math.sqrt(SIZE))


@pytest.mark.parametrize("scale", ["unit", "diagonal"])
def test_a_circle(scale: str) -> None:
    """(sin, cos)(ωx₁): along x₁ the angle to the tangent line is ωα − arctan ωα, whatever the offset."""
    encoder = gf.ModuleEncoder(Sine(omega=4.0), input_shape=SHAPE)
    found = gf.measure(gf.LinearityProbe(step=0.001, cap=1.0, scale=scale), encoder, images(points(3)))
    angle = np.linspace(0, 2, 200_001)
    length = math.sqrt(SIZE) if scale == "diagonal" else 1.0
    want = angle[np.cos(angle - np.arctan(angle)) < 0.95][0] / 4.0 / length
    np.testing.assert_allclose(found["singular_value"][:, 0], 4.0, rtol=1e-6)
    for name in ("alpha", "alpha_negative"):
        np.testing.assert_allclose(found[name][:, 0], want, atol=0.0011)
        np.testing.assert_array_equal(found[name][:, 1:], 1.0)  # null directions
    np.testing.assert_allclose(found["distance"][:, 0], want * length, atol=0.0011 * length)
    assert not found["censored"][:, 0].any()


def test_features_and_logits_may_disagree() -> None:
    """The head sees the sine only: 1 − cos is curved, sine logits with a large bias look linear for long."""
    head = nn.Linear(2, 2)
    head.weight.data, head.bias.data = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([0.0, 50.0])
    encoder = gf.ModuleEncoder(Sine(omega=4.0), head=head, input_shape=SHAPE)
    kw = {"n_directions": 1, "step": 0.01, "cap": 1.0, "scale": "unit"}
    features = gf.measure(gf.LinearityProbe(**kw), encoder, images(points(1)))
    logits = gf.measure(gf.LinearityProbe(reading="logits", **kw), encoder, images(points(1)))
    assert float(features["alpha"].squeeze()) < 0.5
    assert float(logits["alpha"].squeeze()) == 1.0


def test_logits_are_linearised_by_w_sigma_u() -> None:
    torch.manual_seed(0)
    net, head, x = relu_net(), nn.Linear(8, 3), points(2)
    probe = gf.LinearityProbe(reading="logits", n_directions=4, step=0.02, cap=1.0)
    found = gf.measure(probe, gf.ModuleEncoder(net, head=head, input_shape=SHAPE), images(x))
    net, head = net.double(), head.double()
    for row in range(2):
        at = x[row : row + 1].double()
        jacobian = torch.autograd.functional.jacobian(lambda t: net(t)[0], at).flatten(1)
        left, values, right = torch.linalg.svd(jacobian, full_matrices=True)
        logits, best = head(net(at))[0].detach(), {}
        for sign in (1, -1):
            fails = []
            for k in range(51):
                alpha = sign * 0.02 * k * math.sqrt(SIZE)
                line = logits + alpha * values[0] * (head.weight @ left[:, 0]).detach()
                true = head(net(at + alpha * right[0].view_as(at)))[0].detach()
                fails.append(float(nn.functional.cosine_similarity(true, line, dim=0)) < 0.95)
            best[sign] = 0.02 * (fails.index(True) - 1) if True in fails else 1.0
        got = sorted([float(found["alpha"][row, 0]), float(found["alpha_negative"][row, 0])])
        np.testing.assert_allclose(got, sorted(best.values()), atol=1e-9)


class Hole(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.flatten(1)[:, :2]
        return torch.where(y.abs() > 2, float("nan"), y)


def test_refused() -> None:
    bare = gf.ModuleEncoder(relu_net(), input_shape=SHAPE, name="bare")
    with pytest.raises(gf.BadInput, match="LinearityProbe: logits are to be read, but encoder 'bare' has no head"):
        gf.measure(gf.LinearityProbe(reading="logits"), bare, images(points(1)))
    with pytest.raises(gf.EncoderRefused, match="'hole': its output isn't finite along a ray"):
        gf.measure(gf.LinearityProbe(), gf.ModuleEncoder(Hole(), input_shape=SHAPE, name="hole"), images(points(1)))


@pytest.mark.parametrize(
    "changes", [{"step": 0}, {"step": 9.0}, {"threshold": 1.0}, {"threshold": 0.0}, {"reading": "x"}, {"scale": "x"}]
)
def test_senseless_parameters_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(gf.BadInput):
        gf.LinearityProbe().evolve(**changes)


def test_checks_for_authors() -> None:
    check_probe(gf.LinearityProbe(n_directions=5, step=0.05))
    check_probe(gf.LinearityProbe(reading="logits").smoke())


def test_before_its_relu_a_linear_layer_is_linear() -> None:
    torch.manual_seed(0)
    features = nn.Sequential(nn.Flatten(), nn.Linear(SIZE, 3), nn.ReLU())
    encoder = gf.ModuleEncoder(features, input_shape=SHAPE)
    probes = {layer: gf.LinearityProbe(layer=layer, cap=5.0, step=0.1) for layer in ("pre", "post")}
    found = {layer: gf.measure(probe, encoder, images(points(1))) for layer, probe in probes.items()}
    assert found["pre"]["censored"].all()
    assert not found["post"]["censored"].all()
