"""BoundsProbe against half-spaces, balls and a network whose bounds are computed the plain way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.testing import check_probe
from tests.networks import SHAPE, SIZE, conv_net, relu_net
from tests.rays import ball, half_space, points


def classifier(seed: int = 0) -> gf.ModuleEncoder:
    torch.manual_seed(seed)
    return gf.ModuleEncoder(relu_net(seed=seed), head=nn.Linear(8, 4), input_shape=SHAPE, mean=0.3, std=0.5, name="net")


def test_a_half_space_is_bounded_by_its_distance() -> None:
    """f = (w·x + b, 0): one singular value |w|, no residual; Theorem 1 along v₁ is the distance itself."""
    w, x = torch.linspace(-1, 1, SIZE), points(2)
    b = 0.5 - float((x.flatten(1) @ w).min())
    found = gf.measure(gf.BoundsProbe(step=0.001, cap=0.4), half_space(w, b), gf.TensorSet(x, name="toy"))
    margin = (x.flatten(1).double() @ w.double()).numpy() + b
    length = float(w.double().norm())
    np.testing.assert_allclose(found["q0"], margin, rtol=1e-6)
    np.testing.assert_allclose(found["operator_norm"], 1.0)
    np.testing.assert_allclose(found["singular_value"][:, 0], length, rtol=1e-6)
    np.testing.assert_allclose(found["slope"][:, 0], length * math.sqrt(SIZE), rtol=1e-6)
    np.testing.assert_allclose(found["slope"][:, 1:], 0, atol=1e-10)
    np.testing.assert_allclose(found["residual_cap"], 0, atol=1e-10)
    crossing = margin / length / math.sqrt(SIZE)
    for name, share in (("theorem1", 1), ("theorem1_l2", math.sqrt(0.5)), ("theorem2", math.sqrt(0.5))):
        np.testing.assert_allclose(found[name][:, 0, :].min("sign"), crossing * share, rtol=1e-5)
    np.testing.assert_allclose(found["theorem1_sharpest"][:, 0].min("sign"), crossing, rtol=1e-5)
    np.testing.assert_allclose(found["theorem1_sharpest"][:, 0].max("sign"), 0.4)  # on the way deeper into the class
    np.testing.assert_allclose(found["theorem2_sqrt_c"], found["theorem2"])  # two classes
    np.testing.assert_allclose(found["gi"][:, 0].min("sign"), crossing, atol=0.0011)
    np.testing.assert_allclose(found["perturbation"][:, 0].min("sign"), margin / length, atol=0.0061)
    np.testing.assert_allclose(
        found["eq7"], np.tile(margin[:, None, None] / length / math.sqrt(2), (1, 32, 2)), rtol=1e-5
    )
    assert (found["gi"][:, 1:] == 0.4).all()
    assert found["censored"][:, 1:].all()
    assert (found["violations"] == 0).all()


def test_the_gradient_of_a_half_space() -> None:
    """L = log(1 + e^−z), z = w·x + b: ‖∇L‖ = (1 − p)|w|, √2 below the bound (5)."""
    w, x = torch.linspace(-1, 1, SIZE), points(3)
    b = -float((x.flatten(1) @ w).mean())
    z = (x.flatten(1) @ w).numpy() + b
    for labels in (None, [1, 0, 1]):
        images = gf.TensorSet(x, labels=labels, name="toy")
        found = gf.measure(gf.BoundsProbe(n_directions=2, step=0.5), half_space(w, b), images)
        want = np.where(z > 0, 0, 1) if labels is None else np.array(labels)
        np.testing.assert_array_equal(found["loss_class"], want)
        p = 1 / (1 + np.exp(-np.where(want == 0, z, -z)))
        norm = float(w.norm())
        np.testing.assert_allclose(found["gradient_norm"], (1 - p) * norm, rtol=1e-4)
        np.testing.assert_allclose(found["gradient_bound"], math.sqrt(2) * (1 - p) * norm, rtol=1e-4)
        np.testing.assert_allclose(found["gradient_bound_loose"], math.sqrt(2) * norm, rtol=1e-4)


def test_a_ball_has_a_residual() -> None:
    """f = (r² − |x − c|², 0): along a unit d the residual is t², so δ(T) = T²."""
    x = 0.5 + 0.02 * points(1)
    found = gf.measure(
        gf.BoundsProbe(n_directions=None, step=0.01, cap=1.0, scale="unit"),
        ball(torch.full((SIZE,), 0.5), 0.4),
        gf.TensorSet(x, name="toy"),
    )
    h = float((x.flatten() - 0.5).double().norm())
    np.testing.assert_allclose(found["residual_cap"], 1.0, rtol=1e-9)
    np.testing.assert_allclose(found["slope"][0, 0], 2 * h, rtol=1e-6)
    np.testing.assert_allclose(found["residual"][0, 1:], 0.4**2 - h**2, atol=0.01)
    assert (found["theorem1"] == 0).all()  # δ up to the cap says nothing
    want = -h + math.sqrt(h * h + 0.16 - h * h)  # T·2h + T² = 0.16 − h²
    np.testing.assert_allclose(found["useful"][0, 0], want, atol=0.011)
    assert (found["useful"] <= found["gi"]).all()
    assert (found["violations"] == 0).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_network_the_plain_way(seed: int) -> None:
    encoder = classifier(seed)
    x = points(3, seed)
    probe = gf.BoundsProbe(n_directions=5, step=0.05, cap=1.5)
    found = gf.measure(probe, encoder, gf.TensorSet(x, name="toy"))
    net, head = relu_net(seed=seed).double(), encoder.head.double()

    def f(points: torch.Tensor) -> torch.Tensor:
        return head(net((points.double() - torch.tensor(0.3).double()) / 0.5)).detach()

    operator = float(torch.linalg.svdvals(head.weight.detach())[0])
    for row in range(3):
        at = x[row : row + 1].double()
        matrix = torch.autograd.functional.jacobian(lambda t: net((t - torch.tensor(0.3).double()) / 0.5)[0], at)
        values = torch.linalg.svdvals(matrix.flatten(1))
        assert float(found["singular_value"][row, 0]) == pytest.approx(float(values[0]))
        logits = f(at)[0]
        assert float(found["q0"][row]) == pytest.approx(
            float(logits.topk(2).values @ torch.tensor([1.0, -1.0]).double())
        )
        kept, delta = found["gi"][row].values, found["residual_cap"][row].values
        slope, q0 = found["slope"][row].values, float(found["q0"][row])
        with np.errstate(divide="ignore"):
            want = np.where(q0 > delta, np.minimum(1.5, (q0 - delta) / slope[:, None]), 0)
            weak = np.where(q0 > delta, (q0 - delta) / (2 * operator * values[0].item() * 6), 0)
        np.testing.assert_allclose(found["theorem1"][row], want, rtol=1e-6)
        np.testing.assert_allclose(found["theorem2_sqrt_c"][row, 0], weak[0], rtol=1e-6)
        for name in ("theorem1", "theorem1_l2", "theorem1_sharpest", "theorem2", "theorem2_sqrt_c"):
            assert (found[name][row] <= kept + 0.05 + 1e-9).all()
        assert (found["theorem2"][row] <= found["theorem1_l2"][row] + 1e-9).all()
        assert (found["useful"][row] <= kept).all()
        assert (found["eq7"][row] <= found["perturbation"][row].fillna(np.inf) + 1e-9).all()
        assert float(found["gradient_norm"][row]) <= float(found["gradient_bound"][row])
    head.float()
    assert (found["violations"] == 0).all()
    assert (found["residual"] > 0).any()


def test_a_wrong_norm_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    from geoframe import classifier as module

    true = module.head_weight
    w, x = torch.linspace(-1, 1, SIZE), points(2)
    plane, images = half_space(w, 0.5 - float((x.flatten(1) @ w).min())), gf.TensorSet(x, name="toy")
    probe = gf.BoundsProbe(n_directions=2, cap=1.0)
    assert (gf.measure(probe, plane, images)["violations"] == 0).all()
    monkeypatch.setattr(module, "head_weight", lambda *a: true(*a) * 0.5)
    assert (gf.measure(probe, plane, images)["violations"] == 2).all()  # the one ray that crosses, and the gradient


def test_convolutions_and_a_head_of_several_layers() -> None:
    torch.manual_seed(0)
    head = nn.Sequential(nn.Dropout(0.5), nn.Linear(32, 6), nn.Linear(6, 3))
    encoder = gf.ModuleEncoder(conv_net(), head=head, input_shape=(3, 6, 6))
    images = gf.TensorSet(torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(0)), name="toy")
    found = gf.measure(gf.BoundsProbe(n_directions=4, step=0.1), encoder, images)
    product = (head[2].weight @ head[1].weight).detach()
    np.testing.assert_allclose(found["operator_norm"], float(torch.linalg.matrix_norm(product, 2)), rtol=1e-5)
    assert (found["violations"] == 0).all()


class SinglePrecision(nn.Module):
    """Computes in float32 whatever comes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = relu_net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(
            self.net, {name: p.float() for name, p in self.net.named_parameters()}, (x.float(),)
        )


def test_an_encoder_without_float64() -> None:
    encoder = gf.ModuleEncoder(SinglePrecision(), head=nn.Linear(8, 4), input_shape=SHAPE)
    assert encoder.load("cpu").double() is None
    found = gf.measure(gf.BoundsProbe(n_directions=6, step=0.05), encoder, gf.TensorSet(points(2), name="toy"))
    assert (found["violations"] == 0).all()
    np.testing.assert_array_equal(found["gi"], np.round(found["gi"] / 0.05) * 0.05)
    assert (found["useful"] <= found["gi"]).all()


def test_a_run_joins_encoders(tmp_path: object) -> None:
    class Both(gf.Study):
        """Two networks."""

        encoders = (classifier(0), classifier(1).evolve(name="other"))
        probesets = (gf.TensorSet(points(2), name="toy"),)
        probes = (gf.BoundsProbe(n_directions=3, step=0.5),)

    tree = gf.run(Both, out=str(tmp_path))
    assert tree["bounds"]["gi"].dims == ("encoder", "probeset", "image", "direction", "sign")
    assert tree["bounds"]["sign"].values.tolist() == [1, -1]
    assert (tree["bounds"]["violations"] == 0).all()


class NotANumberFarAway(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.flatten(1)[:, :2]
        return torch.where(y.abs() > 3, float("nan"), y)


@pytest.mark.parametrize(
    ("encoder", "cause"),
    [
        (gf.ModuleEncoder(relu_net(), input_shape=SHAPE, name="bare"), "BoundsProbe needs logits.*'bare'"),
        (gf.ModuleEncoder(relu_net(), head=nn.Linear(8, 1), input_shape=SHAPE, name="one"), "'one' has a single class"),
        (
            gf.ModuleEncoder(
                relu_net(), head=nn.Sequential(nn.Linear(8, 4), nn.ReLU()), input_shape=SHAPE, name="bent"
            ),
            "'bent': its head is not a linear layer",
        ),
        (
            gf.ModuleEncoder(NotANumberFarAway(), head=nn.Linear(2, 2), input_shape=SHAPE, name="gap"),
            "'gap': the logits aren't finite",
        ),
    ],
)
def test_what_cannot_be_bounded_is_refused(encoder: gf.ModuleEncoder, cause: str) -> None:
    with pytest.raises(gf.GeoframeError, match=cause) as error:
        gf.measure(gf.BoundsProbe(n_directions=2), encoder, gf.TensorSet(points(1), name="toy"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("changes", [{"step": 0}, {"step": 4.0}, {"cap": -1.0}, {"scale": "x"}, {"n_directions": 0}])
def test_senseless_parameters_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(gf.BadInput):
        gf.BoundsProbe().evolve(**changes)


def test_checks_for_authors() -> None:
    found = check_probe(gf.BoundsProbe(n_directions=4, step=0.1))
    assert (found["violations"] == 0).all()
    assert found["sign"].values.tolist() == [1, -1]
    check_probe(gf.BoundsProbe().smoke())
