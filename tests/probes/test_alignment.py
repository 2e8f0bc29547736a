"""AlignmentProbe: loss gradients lie in the row space, differences need not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import geoframe as gf
from geoframe.testing import check_probe, tiny_images
from tests.networks import SHAPE, SIZE, relu_net
from tests.rays import half_space, points


def classifier() -> gf.ModuleEncoder:
    torch.manual_seed(0)
    return gf.ModuleEncoder(
        nn.Sequential(relu_net(), nn.ReLU()), head=nn.Linear(8, 3), input_shape=SHAPE, mean=0.4, name="net"
    )


def plane(x: torch.Tensor) -> tuple[torch.Tensor, gf.ModuleEncoder]:
    w = torch.linspace(-1, 1, SIZE)
    return w, half_space(w, 0.5 - float((x.flatten(1) @ w).min()))


def test_one_singular_vector_holds_all_of_the_gradient() -> None:
    x = points(2)
    w, encoder = plane(x)
    found = gf.measure(gf.AlignmentProbe(), encoder, gf.TensorSet(x, labels=[0, 1], name="toy"))
    np.testing.assert_allclose(found["energy"], 1, rtol=1e-9)
    np.testing.assert_allclose(found["cosine"], 1, rtol=1e-9)
    np.testing.assert_array_equal(found["baseline"], 1)
    np.testing.assert_array_equal(found["loss_class"], [0, 1])
    z = (x.flatten(1) @ w).numpy() + float(encoder.head.bias[0].detach())
    p = 1 / (1 + np.exp(-z * [1, -1]))
    np.testing.assert_allclose(found["length"][:, 0], (1 - p) * float(w.norm()), rtol=1e-5)


def test_gradients_the_plain_way() -> None:
    encoder, x, labels = classifier(), points(4), [2, 1, -1, 0]
    found = gf.measure(gf.AlignmentProbe(), encoder, gf.TensorSet(x, labels=labels, name="toy"))
    net, head = encoder.features.double(), encoder.head.double()
    for row, label in enumerate(labels):
        at = (x[row : row + 1].double() - torch.tensor(0.4).double()).requires_grad_(True)
        logits = head(net(at))
        target = logits.argmax(1) if label < 0 else torch.tensor([label])
        assert int(found["loss_class"][row]) == int(target)
        gradient = torch.autograd.grad(nn.functional.cross_entropy(logits, target), at)[0].flatten().numpy()
        jacobian = torch.autograd.functional.jacobian(lambda t: net(t)[0], at.detach()).flatten(1).numpy()
        _, values, right = np.linalg.svd(jacobian, full_matrices=False)
        rank = np.linalg.matrix_rank(jacobian)
        energy = np.cumsum((right @ gradient) ** 2) / (gradient @ gradient)
        np.testing.assert_allclose(found["energy"][row, 0, :rank], energy[:rank], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found["energy"][row, 0, rank - 1 :], 1, rtol=1e-6)  # the row space
        np.testing.assert_allclose(found["cosine"][row, 0] ** 2, found["energy"][row, 0, 0])
        assert int(found["rank"][row]) == rank < 8
        np.testing.assert_allclose(found["baseline"][row, :rank], np.arange(1, rank + 1) / rank)
        share = np.cumsum(values**2) / (values**2).sum()
        np.testing.assert_allclose(found["baseline_pullback"][row], share, atol=0.15)
    net.float()
    head.float()


def test_differences_to_images_of_the_predicted_class() -> None:
    x = points(2, seed=5)
    w, encoder = plane(x)  # both images are of class 0
    others = points(4, seed=6)
    reference = gf.TensorSet(others, labels=[0, 1, 0, 1], name="train")
    probe = gf.AlignmentProbe(vectors="difference", reference=reference, n_reference=3)
    found = gf.measure(probe, encoder, gf.TensorSet(x, name="toy"))
    assert "loss_class" not in found
    assert found.coords["reference_id"].values.tolist() == ["0", "1", "2", "3"]
    assert found["length"].attrs["units"] == "raw-pixel L2"
    unit = (w / w.norm()).double()
    for row in range(2):
        assert sorted(found["reference"][row].values) == [-1, 0, 2]
        for k, index in enumerate(found["reference"][row].values):
            if index < 0:
                assert found["energy"][row, k].isnull().all()
                assert found["cosine"][row, k].isnull()
                continue
            v = (others[index] - x[row]).flatten().double()
            np.testing.assert_allclose(found["length"][row, k], v.norm(), rtol=1e-6)
            np.testing.assert_allclose(found["energy"][row, k], ((v @ unit) / v.norm()) ** 2, rtol=1e-4)
    assert probe.label == "alignment-difference"


def test_a_class_without_reference_images() -> None:
    x = points(1)
    reference = gf.TensorSet(points(2, seed=3), labels=[1, 1], name="train")
    probe = gf.AlignmentProbe(vectors="difference", reference=reference, n_reference=2)
    found = gf.measure(probe, plane(x)[1], gf.TensorSet(x, name="toy"))
    assert found["energy"].isnull().all()
    assert (found["reference"] == -1).all()


def test_refused() -> None:
    x = points(1)
    images, encoder = gf.TensorSet(x, name="toy"), plane(x)[1]
    bare = gf.ModuleEncoder(relu_net(), input_shape=SHAPE, name="bare")
    with pytest.raises(gf.BadInput, match=r"AlignmentProbe needs logits.*'bare'"):
        gf.measure(gf.AlignmentProbe(), bare, images)
    with pytest.raises(gf.BadInput, match="doesn't say what it was trained on"):
        gf.measure(gf.AlignmentProbe(vectors="difference"), encoder, images)
    same = gf.AlignmentProbe(vectors="difference", reference=gf.TensorSet(x, labels=[0], name="train"))
    with pytest.raises(gf.BadInput, match="are the same"):
        gf.measure(same, encoder, images)
    one = gf.ModuleEncoder(relu_net(), head=nn.Linear(8, 1), input_shape=SHAPE, name="one")
    with pytest.raises(gf.EncoderRefused, match="'one' has a single class"):
        gf.measure(gf.AlignmentProbe(), one, images)


@pytest.mark.parametrize("changes", [{"vectors": "attack"}, {"n_reference": 0}, {"reference": "mnist"}])
def test_senseless_parameters_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(gf.BadInput):
        gf.AlignmentProbe().evolve(**changes)


def test_checks_for_authors() -> None:
    check_probe(gf.AlignmentProbe())
    check_probe(gf.AlignmentProbe(vectors="difference", reference=tiny_images(8, seed=3), n_reference=2))
