"""Probes of attacked images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.measuring import concat_blocks, measure_block
from geoframe.settings import choose_settings
from geoframe.testing import check_probe, tiny_images
from tests.attack_nets import distances, images, linear
from tests.networks import SHAPE, relu_net

pytest.importorskip("foolbox", reason="attacks need foolbox: pip install 'geoframe[attacks]'")


def classifier() -> gf.ModuleEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return gf.ModuleEncoder(relu_net(), head=torch.nn.Linear(8, 4), input_shape=SHAPE, name="net")


def labelled(n: int, seed: int, name: str) -> gf.TensorSet:
    return gf.TensorSet(images(n, seed), labels=[i % 4 for i in range(n)], name=name)


REFERENCE = labelled(24, 5, "train")


def test_older_keys_stay_without_an_attack() -> None:
    for probe in (gf.RayCoverageProbe(), gf.AlignmentProbe()):
        assert "attack" not in probe.identity()["fields"]
    attacked = gf.RayCoverageProbe(attack=gf.PGD())
    assert attacked.key not in (gf.RayCoverageProbe().key, gf.RayCoverageProbe(attack=gf.PGD(steps=5)).key)
    assert attacked.label == "coverage-pgd"
    assert gf.RayCoverageProbe(attack=gf.PGD(), classes="different").label == "coverage-different-pgd"
    assert gf.AlignmentProbe(vectors="attack", attack=gf.DDN()).label == "alignment-ddn"


def test_a_strong_attack_moves_the_image_to_another_class_and_its_pool() -> None:
    encoder, x = linear(), images(6)
    held, _ = distances(encoder, x)
    test = gf.TensorSet(x, labels=held.tolist(), name="test")
    probe = gf.RayCoverageProbe(reference=REFERENCE, n_reference=4, step=0.1, attack=gf.IFGSM(epsilon=0.4, step=0.1))
    found = gf.measure(probe, encoder, test, device="cpu")
    np.testing.assert_array_equal(found["predicted_before"], held)
    assert found["misclassified"].all()
    assert not found["correct"].any()
    assert (found["predicted"].values != held.numpy()).all()
    pools = np.array(REFERENCE.labels)[found["reference"].values]
    np.testing.assert_array_equal(pools, np.repeat(found["predicted"].values[:, None], 4, axis=1))
    assert (found["distance_inf"] <= 0.4 + 1e-6).all()
    assert found["distance"].attrs["units"] == "raw-pixel L2"


def test_an_attack_that_does_nothing_changes_nothing() -> None:
    test = labelled(4, 6, "test")
    still = gf.IFGSM(epsilon=0.0)
    clean, same = (
        gf.measure(gf.RayCoverageProbe(reference=REFERENCE, n_reference=5, step=0.1, attack=a), classifier(), test)
        for a in (None, still)
    )
    for name in clean.data_vars:
        np.testing.assert_array_equal(clean[name], same[name])
    assert (same["distance"] == 0).all()
    np.testing.assert_array_equal(same["misclassified"], ~same["correct"])


def test_neither_batches_nor_order_nor_company_matter() -> None:
    probe = gf.RayCoverageProbe(reference=REFERENCE, n_reference=5, step=0.1, attack=gf.PGD(steps=4))
    test, spec = labelled(5, 6, "test"), classifier()
    data = test.load(SHAPE)
    loaded = spec.load()
    settings = choose_settings(loaded)
    whole = measure_block(probe, loaded, data, 0, 5, settings)
    split = concat_blocks([measure_block(probe, loaded, data, i, j, settings) for i, j in ((0, 2), (2, 5))])
    order = [3, 0, 4]
    some = gf.TensorSet(
        data.pixels[order], labels=[data.labels[i] for i in order], ids=[data.ids[i] for i in order], name="some"
    )
    alone = measure_block(probe, spec.load(), some.load(SHAPE), 0, 3, settings)
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], split[name])
        np.testing.assert_array_equal(whole[name].values[order], alone[name])
    other = measure_block(probe.evolve(seed=1), loaded, data, 0, 5, settings)
    assert (other["distance"].values != whole["distance"].values).any()


def test_both_probes_attack_alike() -> None:
    test, attack = labelled(3, 6, "test"), gf.PGD(steps=4)
    one = gf.measure(gf.RayCoverageProbe(reference=REFERENCE, step=0.5, attack=attack), classifier(), test)
    two = gf.measure(gf.AlignmentProbe(vectors="attack", attack=attack), classifier(), test)
    for name in ("distance", "distance_inf", "misclassified", "predicted_before"):
        np.testing.assert_array_equal(one[name], two[name])


def test_the_way_of_a_sign_attack_on_orthogonal_features() -> None:
    """Features (a·x, b·x), a and b orthogonal, logits ±a·x: each pixel moves against the sign of a."""
    generator = torch.Generator().manual_seed(3)
    rows = torch.linalg.qr(torch.randn(36, 2, generator=generator))[0].T * torch.tensor([[1.0], [3.0]])
    body = torch.nn.Linear(36, 2, bias=False)
    head = torch.nn.Linear(2, 2)
    with torch.no_grad():
        body.weight.copy_(rows)
        head.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        head.bias.copy_(torch.tensor([10.0, -10.0]))
    x = images(3)
    encoder = gf.ModuleEncoder(torch.nn.Sequential(torch.nn.Flatten(), body), head=head, input_shape=SHAPE, name="two")
    test = gf.TensorSet(x, labels=[0] * 3, name="test")
    probe = gf.AlignmentProbe(vectors="attack", attack=gf.IFGSM(epsilon=0.1))
    found = gf.measure(probe, encoder, test)
    np.testing.assert_allclose(found["singular_value"], [[3.0, 1.0]] * 3, rtol=1e-5)
    sign = -rows[0].sign().double().numpy()
    moved = np.clip(x.flatten(1).double().numpy() + 0.05 * sign, 0, 1) - x.flatten(1).double().numpy()
    first, second = ((moved @ (row / row.norm()).double().numpy()) ** 2 / (moved**2).sum(1) for row in rows.flip(0))
    np.testing.assert_allclose(found["energy"][:, 0], np.stack([first, first + second], 1), rtol=1e-4)
    np.testing.assert_allclose(found["cosine"][:, 0], np.sqrt(first), rtol=1e-4)
    np.testing.assert_allclose(found["length"][:, 0], found["distance"])
    np.testing.assert_array_equal(found["loss_class"], 0)


def test_an_image_that_stays_has_no_direction() -> None:
    probe = gf.AlignmentProbe(vectors="attack", attack=gf.IFGSM(epsilon=0.0))
    found = gf.measure(probe, classifier(), labelled(2, 6, "test"))
    assert found["energy"].isnull().all()
    assert (found["length"] == 0).all()


def test_attack_and_vectors_go_together() -> None:
    for fields in ({"vectors": "attack"}, {"attack": gf.PGD()}):
        with pytest.raises(gf.BadInput, match='vectors="attack" and an attack go together'):
            gf.AlignmentProbe(**fields)
    with pytest.raises(gf.BadInput, match="RayCoverageProbe: attack='pgd' should be an attack"):
        gf.RayCoverageProbe(attack="pgd")


def test_planned_passes_and_the_contract() -> None:
    plain, moved = gf.RayCoverageProbe(n_reference=5), gf.RayCoverageProbe(n_reference=5, attack=gf.PGD())
    assert moved.planned_passes(SHAPE, None) - plain.planned_passes(SHAPE, None) == 90
    assert gf.RayCoverageProbe(attack=gf.CarliniWagner()).smoke().attack.steps == 10
    reference = tiny_images(8, seed=3)
    check_probe(gf.RayCoverageProbe(reference=reference, n_reference=2, step=0.5, attack=gf.PGD(steps=2)))
    check_probe(gf.AlignmentProbe(vectors="attack", attack=gf.PGD(steps=2)))


def test_progress_moves_by_what_was_planned() -> None:
    from geoframe.plan import Cell

    spec, test = classifier(), labelled(3, 6, "test")
    for probe in (
        gf.RayCoverageProbe(reference=REFERENCE, n_reference=3, step=0.25, attack=gf.CarliniWagner(steps=5)),
        gf.AlignmentProbe(vectors="attack", attack=gf.PGD(steps=3)),
    ):
        loaded, seen = spec.load(), []
        settings = choose_settings(loaded)
        loaded.on_pass = seen.append
        measure_block(probe, loaded, test.load(SHAPE), 0, 3, settings)
        assert sum(seen) == pytest.approx(Cell(spec, test, probe).passes())
