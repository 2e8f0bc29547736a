"""GIProbe against half-spaces, balls, and its own invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.geometry.directions import unit_directions
from tests.networks import SHAPE, SIZE, relu_net
from tests.rays import ball, half_space, points


def test_random_directions_meet_a_plane_where_trigonometry_says() -> None:
    """Along u the plane w·x + b = 0 at distance q/|w| is met at q / −(w·u), or never."""
    w, x = torch.linspace(-1, 1, SIZE), points(3)
    b = 0.2 - float((x.flatten(1) @ w).min())
    probe = gf.GIProbe(along="random", n_directions=20, step=0.001, cap=2.0, scale="unit", seed=4)
    found = gf.measure(probe, half_space(w, b), gf.TensorSet(x, name="toy"))
    for row, image_id in enumerate(["0", "1", "2"]):
        u = unit_directions(SHAPE, 4, image_id, 0, 20).flatten(1).double()
        rate, margin = (u @ w.double()).numpy(), float(x[row].flatten() @ w + b)
        for name, sign in (("gi", 1), ("gi_negative", -1)):
            with np.errstate(divide="ignore"):
                want = np.where(-sign * rate > 0, margin / (-sign * rate), np.inf)
            np.testing.assert_allclose(found[name][row], np.minimum(want, 2.0), atol=0.0011)
    assert found["singular_value"].isnull().all()


@pytest.mark.parametrize("search", ["grid", "exact"])
def test_diagonal_scale_only_changes_the_unit(search: str) -> None:
    w, x = torch.linspace(-1, 1, SIZE), points(2)
    plane = half_space(w, 0.5 - float((x.flatten(1) @ w).min()))
    images = gf.TensorSet(x, name="toy")
    kw = {"along": "random", "n_directions": 8, "search": search}
    unit = gf.measure(gf.GIProbe(scale="unit", step=0.006, cap=3.0, **kw), plane, images)
    whole = gf.measure(gf.GIProbe(scale="diagonal", step=0.001, cap=0.5, **kw), plane, images)
    np.testing.assert_allclose(whole["distance"], unit["distance"], atol=0.0061)
    np.testing.assert_allclose(whole["distance"], whole["gi"] * math.sqrt(SIZE))
    np.testing.assert_array_equal(whole["censored"], unit["censored"])


def test_singular_vectors_are_a_complete_basis_by_descending_value() -> None:
    net, x = relu_net(), points(2)
    encoder = gf.ModuleEncoder(net, head=torch.nn.Linear(8, 3), input_shape=SHAPE)
    found = gf.measure(gf.GIProbe(step=0.5), encoder, gf.TensorSet(x, name="toy"))
    assert found.sizes["direction"] == SIZE
    values = found["singular_value"].values
    assert (np.diff(values, axis=1) <= 1e-12).all()
    jacobian = torch.autograd.functional.jacobian(lambda t: net(t)[0], x[:1]).flatten(1)
    np.testing.assert_allclose(values[0, :8], torch.linalg.svdvals(jacobian.double()), rtol=1e-4)
    assert (values[:, 8:] == 0).all()
    some = gf.measure(gf.GIProbe(step=0.5, n_directions=3), encoder, gf.TensorSet(x, name="toy"))
    np.testing.assert_array_equal(some["singular_value"], values[:, [0, 18, 35]])


def test_along_the_radius_of_a_ball() -> None:
    """The features of a ball are the squared distance: v₁ points to the centre, the way out is radius − distance."""
    x = 0.5 + 0.02 * points(3)
    centre = torch.full((SIZE,), 0.5)
    radius = 0.4
    encoder = ball(centre, radius)
    found = gf.measure(
        gf.GIProbe(n_directions=1, step=0.0005, cap=2.0, scale="unit"), encoder, gf.TensorSet(x, name="t")
    )
    h = (x.flatten(1) - centre).norm(dim=1).numpy()
    ways = np.sort(np.stack([found["gi"].values[:, 0], found["gi_negative"].values[:, 0]]), axis=0)
    np.testing.assert_allclose(ways[0], radius - h, atol=0.0006)
    np.testing.assert_allclose(ways[1], radius + h, atol=0.0006)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"step": 0}, "positive"),
        ({"step": -0.1}, "positive"),
        ({"step": 4.0}, "above cap"),
        ({"cap": float("inf")}, "positive"),
        ({"along": "both"}, "along"),
        ({"search": "fast"}, "search"),
        ({"n_directions": 0}, "n_directions"),
    ],
)
def test_senseless_parameters_are_refused(changes: dict[str, object], cause: str) -> None:
    with pytest.raises(gf.BadInput, match=cause):
        gf.GIProbe().evolve(**changes)


def test_smoke_and_checks_for_authors() -> None:
    from geoframe.testing import check_probe

    check_probe(gf.GIProbe(along="random", n_directions=3, step=0.1))
    check_probe(gf.GIProbe().smoke())


def test_the_layer_before_the_activation_has_its_own_singular_vectors() -> None:
    torch.manual_seed(0)
    features = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.ReLU())
    encoder = gf.ModuleEncoder(features, head=torch.nn.Linear(8, 3), input_shape=(1, 4, 4))
    images = gf.TensorSet(torch.rand(1, 1, 4, 4), name="toy")
    ranks = {}
    for layer in ("post", "pre"):
        found = gf.measure(gf.GIProbe(layer=layer, step=0.5), encoder, images, device="cpu")["singular_value"]
        ranks[layer] = int((found > 1e-9).sum())
    assert ranks["pre"] == 8
    assert ranks["post"] < 8
