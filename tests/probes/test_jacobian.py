"""JacobianProbe against matrices whose singular values are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.testing import check_probe
from tests.networks import SHAPE, SIZE, Linear, Square, relu_net
from tests.rays import points


def known(values: list[float]) -> gf.ModuleEncoder:
    """A linear map whose singular values are given."""
    generator = torch.Generator().manual_seed(3)
    left, right = (torch.linalg.qr(torch.randn(n, n, generator=generator)).Q for n in (len(values), SIZE))
    linear = nn.Linear(SIZE, len(values), bias=False)
    linear.weight.data = left @ torch.diag(torch.tensor(values)) @ right[: len(values)]
    return gf.ModuleEncoder(nn.Sequential(nn.Flatten(), linear), input_shape=SHAPE, std=0.5)


def rectified(hidden: int = 20, features: int = 12) -> tuple[nn.Module, gf.ModuleEncoder]:
    torch.manual_seed(2)
    before = nn.Sequential(nn.Flatten(), nn.Linear(SIZE, hidden), nn.Tanh(), nn.Linear(hidden, features))
    return before, gf.ModuleEncoder(nn.Sequential(before, nn.ReLU()), input_shape=SHAPE, name="rectified")


def test_values_rank_and_significance_of_a_linear_map() -> None:
    """Singular values are in raw pixels: twice the layer's, since its inputs are divided by std = 0.5."""
    images = gf.TensorSet(points(2), name="toy")
    found = gf.measure(gf.JacobianProbe(), known([4.0, 1.0, 0.41, 0.39, 0.01]), images)
    np.testing.assert_allclose(found["singular_value"], [[8.0, 2.0, 0.82, 0.78, 0.02]] * 2, rtol=1e-5)
    np.testing.assert_array_equal(found["rank"], 5)
    np.testing.assert_array_equal(found["n_significant"], 3)
    np.testing.assert_array_equal(
        gf.measure(gf.JacobianProbe(rank_threshold=0.8), known([4.0, 1.0, 0.41, 0.39]), images)["rank"], 3
    )
    np.testing.assert_array_equal(
        gf.measure(gf.JacobianProbe(significant=0.0975), known([4.0, 1.0, 0.41, 0.4]), images)["n_significant"], 4
    )


def test_rank_is_numpys() -> None:
    before, encoder = rectified()
    x = points(4)
    found = gf.measure(gf.JacobianProbe(), encoder, gf.TensorSet(x, name="toy"))
    for row in range(4):
        active = (before(x[row : row + 1])[0] > 0).numpy()
        matrix = torch.autograd.functional.jacobian(lambda t: before.double()(t)[0], x[row : row + 1].double())
        before.float()
        rectified_matrix = matrix.flatten(1).numpy() * active[:, None]
        assert int(found["rank"][row]) == np.linalg.matrix_rank(rectified_matrix) == active.sum() < 12
        np.testing.assert_allclose(
            found["singular_value"][row], np.linalg.svd(rectified_matrix, compute_uv=False), rtol=1e-6, atol=1e-9
        )


def test_before_the_activation_all_units_count() -> None:
    _, encoder = rectified()
    found = gf.measure(gf.JacobianProbe(layer="pre"), encoder, gf.TensorSet(points(3), name="toy"))
    np.testing.assert_array_equal(found["rank"], 12)


def test_a_map_that_is_flat_at_the_image_has_rank_0() -> None:
    encoder = gf.ModuleEncoder(Square(), input_shape=SHAPE)
    found = gf.measure(gf.JacobianProbe(), encoder, gf.TensorSet(torch.zeros(1, *SHAPE), name="black"))
    assert found["rank"] == 0
    assert found["n_significant"] == 0


@pytest.mark.parametrize("layer", ["pre", "post"])
def test_the_largest_values_without_the_matrix(layer: str) -> None:
    _, encoder = rectified()
    images = gf.TensorSet(points(2), name="toy")
    whole = gf.measure(gf.JacobianProbe(layer=layer), encoder, images)
    top = gf.measure(gf.JacobianProbe(layer=layer, top=3), encoder, images)
    np.testing.assert_allclose(top["singular_value"], whole["singular_value"][:, :3], rtol=1e-8)
    np.testing.assert_array_equal(top["rank"], 3)
    more = gf.measure(gf.JacobianProbe(layer=layer, top=50), encoder, images)
    np.testing.assert_allclose(more["singular_value"], whole["singular_value"], rtol=1e-8, atol=1e-12)


def test_encoders_of_other_widths_share_a_store(tmp_path: object) -> None:
    class Widths(gf.Study):
        """Two widths."""

        encoders = (
            gf.ModuleEncoder(Linear(out=5), input_shape=SHAPE, name="five"),
            gf.ModuleEncoder(Linear(out=7), input_shape=SHAPE, name="seven"),
        )
        probesets = (gf.TensorSet(points(2), name="toy"),)
        probes = (gf.JacobianProbe(),)

    values = gf.run(Widths, out=str(tmp_path))["jacobian"]["singular_value"]
    assert values.sizes["component"] == 7
    assert values.sel(encoder="five").isnull().sum("component").values.tolist() == [[2, 2]]
    assert values.sel(encoder="seven").notnull().all()


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"top": 0}, "top"),
        ({"top": 1.5}, "top"),
        ({"layer": "last"}, "layer"),
        ({"rank_threshold": -1.0}, "rank_threshold=-1.0 should be a number, 0 or more"),
        ({"rank_threshold": "x"}, "rank_threshold=.x. should be a number, 0 or more"),
        ({"significant": float("nan")}, "significant"),
    ],
)
def test_senseless_parameters_are_refused(changes: dict[str, object], cause: str) -> None:
    with pytest.raises(gf.BadInput, match=cause):
        gf.JacobianProbe().evolve(**changes)


def test_the_largest_values_where_every_unit_is_off_are_zero() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.ReLU())
    with torch.no_grad():
        net[1].weight.abs_().mul_(4)
        net[1].bias.fill_(-3)
    x = torch.stack([torch.ones(1, 4, 4), torch.zeros(1, 4, 4)])
    encoder = gf.ModuleEncoder(net, input_shape=(1, 4, 4))
    some, whole = (gf.measure(gf.JacobianProbe(top=top), encoder, gf.TensorSet(x)) for top in (3, None))
    np.testing.assert_allclose(some["singular_value"], whole["singular_value"][:, :3], rtol=1e-9)
    assert (some["singular_value"][1] == 0).all()
    assert (int(some["rank"][1]), int(some["n_significant"][1])) == (0, 0)


def test_no_layer_before() -> None:
    encoder = gf.ModuleEncoder(relu_net(), input_shape=SHAPE, name="bare")
    with pytest.raises(gf.EncoderRefused, match="'bare' has no activation module"):
        gf.measure(gf.JacobianProbe(layer="pre"), encoder, gf.TensorSet(points(1), name="toy"))


def test_checks_for_authors() -> None:
    check_probe(gf.JacobianProbe())
    check_probe(gf.JacobianProbe(layer="pre", top=3))
    check_probe(gf.JacobianProbe().smoke())


@pytest.mark.parametrize("share", [-0.1, 1.0, 2, float("nan")])
def test_a_share_that_no_value_is_above(share: float) -> None:
    with pytest.raises(ValueError, match=r"significant=.* should be a share of the largest value, from 0 to below 1"):
        gf.JacobianProbe(significant=share)
