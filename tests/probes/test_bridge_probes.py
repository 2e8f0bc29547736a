"""ResponseProbe, IsotropicGIProbe, LocalGeometryProbe and BoundaryDistanceProbe against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.geometry.directions import unit_directions
from geoframe.geometry.joint import joint_responses
from geoframe.geometry.response import Displacements, pair_responses
from geoframe.probes.responses import OUTPUTS
from geoframe.testing import check_probe, tiny_encoder, tiny_images
from tests.networks import SHAPE, SIZE, relu_net
from tests.rays import ball, half_space, points


def linear_classifier(classes: int = 4, features: int = 5) -> tuple[gf.ModuleEncoder, torch.Tensor, torch.Tensor]:
    """Encoder, W (class, feature), and the features' matrix (feature, pixel)."""
    torch.manual_seed(3)
    layer, head = torch.nn.Linear(SIZE, features), torch.nn.Linear(features, classes)
    net = torch.nn.Sequential(torch.nn.Flatten(), layer)
    return gf.ModuleEncoder(net, head=head, input_shape=SHAPE), head.weight.detach(), layer.weight.detach()


def test_responses_of_a_linear_classifier_are_its_matrices_at_every_scale() -> None:
    encoder, head, layer = linear_classifier()
    probe = gf.ResponseProbe(scales=(1e-3, 1e-2, 0.1), directions=8, seed=2)
    found = gf.measure(probe, encoder, gf.TensorSet(points(1), name="toy")).isel(image=0)
    u = unit_directions(SHAPE, 2, "0", 0, 4).flatten(1)
    for name, matrix in (("features", layer), ("logits", head @ layer)):
        energies = (u @ matrix.T).square().sum(1)
        want = float(energies.mean())
        np.testing.assert_allclose(found["response"].sel(output=name), want, rtol=1e-3)
        halves = found["response_half"].sel(output=name).values
        np.testing.assert_allclose(halves[:, 1], [float(part.mean()) for part in energies.chunk(2)], rtol=1e-3)
        error = float(energies.std() / 2)
        np.testing.assert_allclose(found["response_se"].sel(output=name), error, rtol=1e-2)
    assert found["valid"].all()


def test_the_margin_responds_as_the_difference_of_two_logits_until_a_third_class_is_ahead() -> None:
    """Two classes: the margin of the held one is linear everywhere, also beyond the boundary."""
    w, x = torch.linspace(-1, 1, SIZE), points(2)
    plane = half_space(w, 0.2 - float((x.flatten(1) @ w).min()))
    found = gf.measure(gf.ResponseProbe(scales=(0.01, 1.0, 30.0), directions=16), plane, gf.TensorSet(x, name="toy"))
    for row in range(2):
        u = unit_directions(SHAPE, 0, str(row), 0, 8).flatten(1)
        want = float((u @ w).square().mean())
        np.testing.assert_allclose(found["response"].sel(output="margin")[row], want, rtol=2e-3)


def test_features_respond_as_in_ratio_probe() -> None:
    encoder, images = tiny_encoder(), tiny_images(2)
    scales = (0.1, 1.0, 5.0)
    mine = gf.measure(gf.ResponseProbe(scales=scales, directions=16, seed=5), encoder, images)
    other = gf.measure(gf.RatioProbe(scales=scales, directions=16, jvp_directions=8, seed=5), encoder, images)
    np.testing.assert_allclose(mine["response"].sel(output="features"), other["response"], rtol=1e-4)


@pytest.mark.parametrize("block", [1, 3, 5])
def test_joint_responses_are_those_of_each_map_by_itself(block: int) -> None:
    net = relu_net().double()
    x = points(1).double()

    def draw(start: int, stop: int) -> torch.Tensor:
        return unit_directions(SHAPE, 0, "a", start, stop).double()

    def both(v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return net(v), net(v)[:, :2].square()

    found = joint_responses(both, x, draw, 5, (0.1, 2.0), block)
    for place in range(2):
        moves = Displacements(lambda v, k=place: both(v)[k], x)
        energy, level = pair_responses(moves, draw, 5, (0.1, 2.0), block)
        torch.testing.assert_close(found.energy[place], energy)
        torch.testing.assert_close(found.level[place], level)


def test_small_scales_drown_in_rounding_and_are_not_valid() -> None:
    probe = gf.ResponseProbe(scales=(1e-7, 1e-2, 1.0), directions=4)
    found = gf.measure(probe, tiny_encoder(), tiny_images(1))
    assert not found["valid"].sel(scale=1e-7).any()
    assert found["valid"].sel(scale=1.0).all()


def test_a_quarter_of_the_rays_has_left_a_half_space_by_one_and_a_half_b_root_d() -> None:
    """P(u·w/|w| > b/t) = ¼ at t = b√d / 0.6745 for many dimensions: 1.48·b·√d."""
    w = torch.ones(SIZE) / math.sqrt(SIZE)
    x = points(1)
    b = 0.3
    plane = half_space(w, b - float(x.flatten() @ w))
    found = gf.measure(gf.IsotropicGIProbe(n_directions=600, cap=1000.0), plane, gf.TensorSet(x, name="toy"))
    distance = found["distance"].values.ravel()
    assert np.quantile(distance, 0.25, method="inverted_cdf") == pytest.approx(1.48 * b * math.sqrt(SIZE), rel=0.1)
    opposite = found["censored"].values[0]
    assert (opposite.sum(1) >= 1).all(), "of u and −u, one at most meets a plane"
    assert opposite.mean() == pytest.approx(0.5, abs=0.02)


def test_distances_to_a_plane_ray_by_ray() -> None:
    w, x = torch.linspace(-1, 1, SIZE), points(2)
    b = 0.2 - float((x.flatten(1) @ w).min())
    probe = gf.IsotropicGIProbe(n_directions=10, cap=50.0, halvings=6, seed=4)
    found = gf.measure(probe, half_space(w, b), gf.TensorSet(x, name="toy"))
    for row in range(2):
        u = unit_directions(SHAPE, 4, str(row), 0, 10, "isotropic-gi").flatten(1).double()
        rate, margin = (u @ w.double()).numpy(), float(x[row].flatten() @ w + b)
        for column, sign in enumerate((1, -1)):
            with np.errstate(divide="ignore"):
                want = np.where(-sign * rate > 0, margin / (-sign * rate), np.inf)
            got = found["distance"].values[row, :, column]
            np.testing.assert_allclose(got, np.minimum(want, 50.0), rtol=0.004)
            assert (got <= np.minimum(want, 50.0) * (1 + 1e-6)).all(), "the class is still held there"
            np.testing.assert_array_equal(found["censored"].values[row, :, column], want > 50.0)


def test_the_nearest_boundary_is_halved_down_from_zero() -> None:
    x = points(1)
    small = ball(x.flatten(), 1e-3)
    probe = gf.IsotropicGIProbe(n_directions=2, nearest=1.0, cap=2.0, halvings=14)
    found = gf.measure(probe, small, gf.TensorSet(x, name="toy"))
    np.testing.assert_allclose(found["distance"], 1e-3, rtol=0.1)


def test_directions_of_intervals_are_not_those_of_responses() -> None:
    from geoframe.probes.isotropic import PURPOSE

    one, other = unit_directions(SHAPE, 0, "a", 0, 3), unit_directions(SHAPE, 0, "a", 0, 3, PURPOSE)
    assert ((one - other).flatten(1).norm(dim=1) > 0.5).all()


def test_local_geometry_of_a_linear_classifier_is_exact() -> None:
    encoder, head, layer = linear_classifier()
    x = points(3)
    found = gf.measure(gf.LocalGeometryProbe(), encoder, gf.TensorSet(x, name="toy"))
    logits = encoder.load("cpu").logits(x)
    for row in range(3):
        y = int(logits[row].argmax())
        others = [j for j in range(4) if j != y]
        margins = (logits[row, y] - logits[row, others]).numpy()
        gradients = ((head[y] - head[others]) @ layer).norm(dim=1).numpy()
        eta = margins * math.sqrt(SIZE) / gradients
        one = found.isel(image=row)
        assert float(one["eta_j"]) == pytest.approx(eta.min(), rel=1e-5)
        assert int(one["rival"]) == others[int(eta.argmin())]
        assert float(one["q0"]) == pytest.approx(margins.min(), rel=1e-4)
        assert float(one["trace"]) == pytest.approx(float(layer.square().sum()), rel=1e-5)
        assert float(one["norm"]) == pytest.approx(float(x[row].norm()), rel=1e-6)
        assert int(one["predicted"]) == y


def test_trace_is_the_jacobians_squared_norm() -> None:
    encoder, images = tiny_encoder(), tiny_images(2)
    found = gf.measure(gf.LocalGeometryProbe(), encoder, images)
    values = gf.measure(gf.JacobianProbe(), encoder, images)["singular_value"]
    exact = (values**2).sum("component")
    np.testing.assert_allclose(found["trace"], exact, rtol=1e-6)
    sampled = gf.measure(gf.LocalGeometryProbe(directions=400), encoder, images)
    np.testing.assert_allclose(sampled["trace"], exact, rtol=0.1)
    np.testing.assert_array_equal(sampled["eta_j"], found["eta_j"])


def test_distance_to_a_linear_boundary_is_exact() -> None:
    pytest.importorskip("foolbox", reason="attacks are foolbox's")
    encoder, _, _ = linear_classifier()
    x = points(2)
    images = gf.TensorSet(x, name="toy")
    found = gf.measure(gf.BoundaryDistanceProbe(), encoder, images)
    local = gf.measure(gf.LocalGeometryProbe(), encoder, images)
    exact = local["b_j"].values
    np.testing.assert_allclose(exact, local["eta_j"].values / math.sqrt(SIZE))
    np.testing.assert_allclose(found["distance"], exact, rtol=0.02)
    assert (found["distance"].values >= exact * (1 - 1e-4)).all(), "an upper bound"
    assert set(found["attack"].values) <= {a.label for a in gf.BoundaryDistanceProbe().attacks}


@pytest.mark.parametrize(
    ("probe", "changes", "cause"),
    [
        (gf.ResponseProbe(), {"directions": 3}, "even"),
        (gf.ResponseProbe(), {"directions": 2}, "even"),
        (gf.ResponseProbe(), {"scales": (1.0, 0.1)}, "rise"),
        (gf.ResponseProbe(), {"scales": ()}, "scales"),
        (gf.IsotropicGIProbe(), {"cap": 0.01}, "above nearest"),
        (gf.IsotropicGIProbe(), {"nearest": 0}, "nearest"),
        (gf.IsotropicGIProbe(), {"n_directions": 0}, "n_directions"),
        (gf.BoundaryDistanceProbe(), {"attacks": ()}, "attacks"),
        (gf.BoundaryDistanceProbe(), {"attacks": ("pgd",)}, "attacks"),
    ],
)
def test_senseless_parameters_are_refused(probe: gf.Probe, changes: dict[str, object], cause: str) -> None:
    with pytest.raises(gf.BadInput, match=cause):
        probe.evolve(**changes)


def test_checks_for_authors() -> None:
    check_probe(gf.ResponseProbe(scales=(0.1, 1.0, 10.0), directions=6))
    check_probe(gf.ResponseProbe().smoke())
    check_probe(gf.IsotropicGIProbe(n_directions=3))
    check_probe(gf.IsotropicGIProbe().smoke())
    check_probe(gf.LocalGeometryProbe())
    check_probe(gf.LocalGeometryProbe().smoke())
    assert gf.ResponseProbe().smoke().scales[-1] == gf.ResponseProbe().scales[-1]
    assert gf.ResponseProbe().coords()["output"] == OUTPUTS


def test_boundary_distance_does_what_runs_do() -> None:
    pytest.importorskip("foolbox", reason="attacks are foolbox's")
    from geoframe.attacks import DDN, DeepFool

    check_probe(gf.BoundaryDistanceProbe(attacks=(DeepFool(steps=10), DDN(steps=10))), rtol=2e-2)


def test_a_head_that_works_in_place_leaves_the_features_alone() -> None:
    torch.manual_seed(0)
    features = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(SIZE, 6))
    probe, images = gf.ResponseProbe(scales=(1.0,), directions=8), gf.TensorSet(points(1), name="toy")
    found = [
        gf.measure(probe, gf.ModuleEncoder(features, head=head, input_shape=SHAPE, name="net"), images)["response"]
        for head in (
            torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(6, 3)),
            torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(6, 3)),
        )
    ]
    np.testing.assert_array_equal(found[0].sel(output="features"), found[1].sel(output="features"))
