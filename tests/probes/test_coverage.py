"""RayCoverageProbe against geometry, and under what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.loaded import LoadedEncoder
from geoframe.references import references_for
from tests.networks import SHAPE, SIZE, relu_net
from tests.rays import ball, half_space, points


def outside(n: int, radius: float = 0.8) -> torch.Tensor:
    """Points outside a ball around the centre of the box."""
    x = points(400, seed=2)
    return x[(x.flatten(1) - 0.5).norm(dim=1) > radius + 0.02][:n] if n else x


def classifier() -> gf.ModuleEncoder:
    return gf.ModuleEncoder(relu_net(), head=torch.nn.Linear(8, 4), input_shape=SHAPE)


def labelled(n: int, seed: int, classes: int = 4, name: str = "train") -> gf.TensorSet:
    return gf.TensorSet(points(n, seed), labels=[i % classes for i in range(n)], name=name)


def test_rays_around_a_ball_are_covered_where_the_segment_misses_it() -> None:
    radius = 1.5
    x = points(60, seed=3)
    far = (x.flatten(1) - 0.5).norm(dim=1) > radius + 0.05
    assert int(far.sum()) > 20
    start, end = x[far][:12], x[far][12:20]
    encoder, ones = ball(torch.full((SIZE,), 0.5), radius), [1] * 12
    reference = gf.TensorSet(start, labels=ones, name="train")
    found = gf.measure(
        gf.RayCoverageProbe(reference=reference, n_reference=None, step=0.001),
        encoder,
        gf.TensorSet(end, labels=[1] * 8, name="test"),
    )
    v = (end[:, None] - start[None]).flatten(2)
    offset = start.flatten(1) - 0.5
    t = (-(offset[None] * v).sum(2) / v.square().sum(2)).clamp(0, 1)
    miss = (offset[None] + t[..., None] * v).norm(dim=2) > radius
    order = found["reference"].values
    assert order.shape == (8, 12)
    covered = found["gi"].values >= 1
    np.testing.assert_array_equal(covered, np.take_along_axis(miss.numpy(), order, axis=1))
    np.testing.assert_allclose(found["reentry"], 1 - found["coverage"])
    assert (found["elsewhere"] == 0).all()
    p = found["coverage"].values
    np.testing.assert_allclose(found["coverage_se"], np.sqrt(p * (1 - p) / 12))


@pytest.mark.parametrize("search", ["grid", "exact"])
def test_orientation_does_not_matter_when_the_class_is_held(search: str) -> None:
    """Rays from reference to test image and back cover the same segments (A.4's grid is symmetric about ½)."""
    from geoframe.lines import RayTable, intervals, predicted

    encoder = classifier().load() if search == "grid" else half_space(torch.linspace(-1, 1, SIZE), 0.1).load()
    encoder.micro_batch = 64
    a, b = points(50, 1), points(50, 2)
    with torch.no_grad():
        held = predicted(encoder, b)
        there = intervals(encoder, RayTable(a, b - a, held), search, 0.01, 1.0).gi >= 1  # type: ignore[arg-type]
        back = intervals(encoder, RayTable(b, a - b, held), search, 0.01, 1.0).gi >= 1  # type: ignore[arg-type]
    assert torch.equal(there, back)


def test_pools_follow_the_predicted_class() -> None:
    reference, test = labelled(40, 1), labelled(6, 2, name="test")
    same = gf.measure(gf.RayCoverageProbe(reference=reference, n_reference=5, step=0.1), classifier(), test)
    labels = np.array(reference.labels)
    for row in range(6):
        assert set(labels[same["reference"].values[row]]) == {int(same["predicted"][row])}
        assert len(set(same["reference"].values[row])) == 5
    probe = gf.RayCoverageProbe(reference=reference, n_reference=2, classes="different", step=0.1)
    different = gf.measure(probe, classifier(), test)
    for row in range(6):
        pools = labels[different["reference"].values[row]]
        assert len(set(pools)) == 3
        assert int(different["predicted"][row]) not in pools
    assert same["reference_id"].values.tolist() == list(reference.load(SHAPE).ids)
    np.testing.assert_array_equal(same["correct"], same["predicted"].values == same["label"].values)


def test_a_class_without_reference_images_is_reported_not_divided_by() -> None:
    encoder = half_space(torch.ones(SIZE), 1.0)  # class 0 everywhere
    reference = gf.TensorSet(points(5, 1), labels=[1] * 5, name="train")
    found = gf.measure(
        gf.RayCoverageProbe(reference=reference, n_reference=4), encoder, gf.TensorSet(points(2), name="test")
    )
    assert (found["rays"] == 0).all()
    assert found["coverage"].isnull().all()
    assert found["gi"].isnull().all()
    assert (found["reference"] == -1).all()


def test_a_smaller_pool_is_padded() -> None:
    encoder = half_space(torch.ones(SIZE), 1.0)
    reference = gf.TensorSet(points(3, 1), labels=[0, 0, 1], name="train")
    found = gf.measure(
        gf.RayCoverageProbe(reference=reference, n_reference=4), encoder, gf.TensorSet(points(1), name="test")
    )
    assert found["gi"].notnull().sum() == found["rays"][0] == 2
    assert found["coverage"].item() == 1.0


def test_a_ray_without_direction_is_refused_by_name() -> None:
    reference = labelled(8, 1)
    with pytest.raises(gf.BadInput, match="image '0' and reference image '0' are the same"):
        gf.measure(
            gf.RayCoverageProbe(reference=reference, n_reference=None), half_space(torch.ones(SIZE), 1.0), reference
        )


@pytest.mark.parametrize(
    ("reference", "cause"),
    [
        (gf.TensorSet(points(3), name="bare"), "no labels"),
        (gf.TensorSet(torch.rand(3, 1, 5, 5), labels=[0, 1, 2], name="small"), "5"),
    ],
)
def test_useless_references_are_refused_in_one_line(reference: gf.TensorSet, cause: str) -> None:
    with pytest.raises(gf.BadInput, match=cause) as caught:
        gf.measure(gf.RayCoverageProbe(reference=reference), classifier(), labelled(2, 5, name="test"))
    assert "\n" not in str(caught.value)


def test_a_cap_before_the_end_of_the_ray_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1"):
        gf.RayCoverageProbe(reference=labelled(4, 1), cap=0.5)


def test_checks_for_authors() -> None:
    from geoframe.testing import SHAPE as TINY
    from geoframe.testing import check_probe

    pixels = torch.rand(12, *TINY, generator=torch.Generator().manual_seed(9))
    reference = gf.TensorSet(pixels, labels=[i % 4 for i in range(12)], name="train")
    check_probe(gf.RayCoverageProbe(reference=reference, n_reference=2, step=0.1))
    check_probe(gf.RayCoverageProbe(reference=reference, n_reference=2, step=0.1, classes="different"))


def test_without_a_reference_the_training_set_is_taken():
    network = half_space(torch.ones(SIZE), -SIZE / 2).build()
    network.training_set = gf.TensorSet(points(20), labels=[0, 1] * 10, name="train")
    loaded = LoadedEncoder.from_network(network, "toy")
    references = references_for("RayCoverageProbe", None, loaded)
    assert references.images.ids == network.training_set.load(SHAPE).ids


def test_neither_a_reference_nor_a_training_set():
    encoder = half_space(torch.ones(SIZE), -SIZE / 2)
    with pytest.raises(gf.BadInput, match="doesn't say what it was trained on: give the probe a reference="):
        gf.measure(gf.RayCoverageProbe(), encoder, gf.TensorSet(points(2), name="test"))


PROBES = [
    gf.RayCoverageProbe(n_reference=2),
    gf.RayCoverageProbe(n_reference=2, classes="different"),
    gf.TubeProbe(rays=2),
    gf.TrajectoryProbe(n_reference=2, points=3),
    gf.AlignmentProbe(vectors="difference"),
]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.label)
def test_references_of_other_classes_are_refused_in_one_line(probe: gf.Probe) -> None:
    probe = probe.evolve(reference=gf.TensorSet(points(5, 1), labels=[90] * 5, name="train"))
    with pytest.raises(
        gf.BadInput, match=r"no reference image of 'train'.*\(labels 90 to 90, classes 0 to 3\)"
    ) as error:
        gf.measure(probe, classifier(), labelled(2, 5, name="test"))
    assert "\n" not in str(error.value)


def test_one_class_only_has_no_different_ones() -> None:
    encoder = half_space(torch.ones(SIZE), -SIZE / 2)
    x = points(40, 3)
    inside = (x.flatten(1).sum(1) > SIZE / 2).tolist()
    zero, one = x[[i for i in range(40) if inside[i]]], x[[i for i in range(40) if not inside[i]]]
    probe = gf.RayCoverageProbe(
        reference=gf.TensorSet(points(3), labels=[0] * 3, name="train"), classes="different", n_reference=2, step=0.5
    )
    with pytest.raises(gf.BadInput, match=r"all reference images are of class 0, which encoder .* predicts for every"):
        gf.measure(probe, encoder, gf.TensorSet(zero, name="test"))
    found = gf.measure(probe, encoder, gf.TensorSet(torch.cat([zero[:1], one[:1]]), name="test"))
    assert found["rays"].values.tolist() == [0, 2]


LABELLED = [
    gf.RayCoverageProbe(reference=labelled(8, 1), n_reference=2, step=0.5),
    gf.TrajectoryProbe(reference=labelled(8, 1), n_reference=2, points=3),
    gf.AlignmentProbe(),
    gf.BoundsProbe(n_directions=2, step=1.0),
]


@pytest.mark.parametrize("probe", LABELLED, ids=lambda probe: probe.label)
def test_labels_that_are_all_no_classes_are_refused_and_single_ones_are_not(probe: gf.Probe) -> None:
    with pytest.raises(gf.BadInput, match=r"no test image has a class.*\(labels 4 to 50, classes 0 to 3\)"):
        gf.measure(probe, classifier(), gf.TensorSet(points(3, 5), labels=[50, -1, 4], name="test"))
    found = gf.measure(probe, classifier(), gf.TensorSet(points(2, 5), labels=[50, 0], name="test"))
    if "correct" in found:
        assert not found["correct"].values[0]
    if "loss_class" in found:
        assert 0 <= int(found["loss_class"][0]) < 4
        assert int(found["loss_class"][1]) == 0
