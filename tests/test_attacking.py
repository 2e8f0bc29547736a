"""Attacks against closed forms of a linear classifier, and under what must not matter."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import ClassVar

import attrs
import pytest
import torch

import geoframe as gf
from geoframe.attacking import attack_image, foolbox, foolbox_model, minimal_perturbation
from geoframe.attacks import MINIMAL, PUBLISHED, Attack, Bounds
from geoframe.loaded import LoadedEncoder, state_digest
from tests.attack_nets import distances, images, linear
from tests.networks import SHAPE, SIZE, relu_net

pytest.importorskip("foolbox", reason="attacks need foolbox: pip install 'geoframe[attacks]'")


def network() -> gf.ModuleEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return gf.ModuleEncoder(relu_net(), head=torch.nn.Linear(8, 4), input_shape=SHAPE, name="net")


@pytest.mark.parametrize(("attack", "slack"), [(gf.DeepFool(), 1e-5), (gf.DDN(steps=300), 0.2), (MINIMAL[2], 1e-2)])
def test_the_nearest_boundary_of_a_linear_classifier(attack: gf.Attack, slack: float) -> None:
    encoder, x = linear(), images(4)
    held, expected = distances(encoder, x)
    loaded = encoder.load()
    for row in range(len(x)):
        found = minimal_perturbation(loaded, x[row : row + 1], int(held[row]), [attack])
        assert found.attack == attack.label
        assert 1 - 1e-5 <= found.distance / float(expected[row]) <= 1 + slack
        assert int(loaded.logits(found.image).argmax()) != int(held[row])


def test_the_nearest_of_several_attacks_is_taken() -> None:
    encoder, x = linear(), images(1)
    loaded, label = encoder.load(), int(distances(encoder, x)[0])
    alone = [minimal_perturbation(loaded, x, label, [attack]) for attack in MINIMAL]
    best = minimal_perturbation(loaded, x, label)
    assert best.distance == min(found.distance for found in alone)
    assert best.attack == min(alone, key=lambda found: found.distance).attack


def test_without_bounds_pixels_leave_the_box_and_with_them_they_stay() -> None:
    encoder = linear(classes=2)
    x = torch.full((1, *SHAPE), 0.02)
    held, expected = distances(encoder, x)
    loaded = encoder.load()
    free = minimal_perturbation(loaded, x, int(held), [gf.DeepFool()])
    assert free.distance == pytest.approx(float(expected), rel=1e-5)
    assert float(free.image.min()) < 0
    boxed = minimal_perturbation(loaded, x, int(held), [gf.DeepFool()], bounds=(0.0, 1.0))
    assert not boxed.distance <= free.distance * 1.001
    assert boxed.image is None or float(boxed.image.min()) >= 0


def test_what_has_another_class_already_and_what_no_attack_changes() -> None:
    encoder, x = linear(), images(1)
    held = int(distances(encoder, x)[0])
    loaded = encoder.load()
    moved = minimal_perturbation(loaded, x, (held + 1) % 4)
    assert (moved.distance, moved.attack) == (0.0, "")
    weak = minimal_perturbation(loaded, x, held, [gf.IFGSM(epsilon=1e-6, step=1e-6)], bounds=(0.0, 1.0))
    assert math.isnan(weak.distance)
    assert (weak.attack, weak.image) == ("", None)
    assert minimal_perturbation(loaded, x, -1).distance == minimal_perturbation(loaded, x, held).distance


@pytest.mark.parametrize("attack", PUBLISHED, ids=lambda attack: attack.label)
def test_the_papers_attacks_stay_in_the_box_and_within_epsilon(attack: gf.Attack) -> None:
    loaded = network().load()
    for row, x in enumerate(images(6, seed=3).split(1)):
        x = x if row % 2 else x.round()  # pixels on the border
        found = attack_image(loaded, x, row % 4, attack, seed=row)
        assert float(found.image.min()) >= 0
        assert float(found.image.max()) <= 1
        change = (found.image - x).double()
        assert (found.l2, found.linf) == (float(change.norm()), float(change.abs().max()))
        if isinstance(attack, gf.IFGSM):
            assert 0 < found.linf <= attack.epsilon + 1e-6
        with torch.no_grad():
            assert found.before == int(loaded.logits(x).argmax())
            assert found.after == int(loaded.logits(found.image).argmax())


def test_iterative_gradient_signs_of_a_linear_classifier() -> None:
    """Two classes: each step is ε-sized along the sign of the weights' difference, whatever the image."""
    encoder = linear(classes=2)
    x = torch.full((1, *SHAPE), 0.5)
    label = int(distances(encoder, x)[0])
    sign = (encoder.head.weight[1 - label] - encoder.head.weight[label]).detach().sign().view(1, *SHAPE)
    short = attack_image(encoder.load(), x, label, gf.IFGSM(steps=4))
    torch.testing.assert_close(short.image, x + 0.02 * sign)
    torch.testing.assert_close(attack_image(encoder.load(), x, label, gf.IFGSM()).image, x + 0.03 * sign)
    torch.testing.assert_close(attack_image(encoder.load(), x, label, gf.PGD()).image, x + 0.03 * sign)


def test_carlini_and_wagner_leave_an_image_that_they_find_nothing_for() -> None:
    encoder, x = linear(), images(1)
    label = int(distances(encoder, x)[0])
    weak = attack_image(encoder.load(), x, label, gf.CarliniWagner(c=1e-9, steps=20))
    assert torch.equal(weak.image, x)
    assert (weak.l2, weak.after) == (0.0, label)
    strong = attack_image(encoder.load(), x, label, gf.CarliniWagner(c=10, steps=200))
    assert strong.after != label
    assert strong.l2 > 0


def test_seeds_make_the_same_bits_and_torchs_generator_is_left_alone() -> None:
    loaded, x = network().load(), images(1)
    before = torch.random.get_rng_state()
    one, same, other = (attack_image(loaded, x, 0, gf.PGD(steps=3), seed=seed).image for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_label_that_is_no_class_is_the_predicted_one() -> None:
    loaded, x = network().load(), images(1)
    for label in (-1, 4):
        found = attack_image(loaded, x, label, gf.IFGSM())
        assert found.label == found.before


def test_passes_are_counted_and_the_encoder_stays_frozen() -> None:
    loaded = network().load()
    before = state_digest(loaded.network), state_digest(loaded.head)
    attack_image(loaded, images(1), 0, gf.IFGSM(steps=7))
    assert 3 * 7 <= loaded.passes <= 3 * 7 + 6  # a gradient counts for three; predictions before and after
    assert not any(p.requires_grad or p.grad is not None for p in loaded.network.parameters())
    assert (state_digest(loaded.network), state_digest(loaded.head)) == before


class Cut(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1).detach()


class Narrow(torch.nn.Module):
    """Defined up to 1 only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (1 - x.flatten(1)).sqrt()


@pytest.mark.parametrize("attack", [*PUBLISHED, *MINIMAL], ids=lambda attack: type(attack).__name__)
def test_an_encoder_without_gradient_is_refused_not_called_robust(attack: gf.Attack) -> None:
    loaded = gf.ModuleEncoder(Cut(), head=torch.nn.Linear(SIZE, 4), input_shape=SHAPE, name="cut").load()
    with pytest.raises(gf.EncoderRefused, match="'cut' has no reverse-mode derivative, which attacks go by"):
        attack_image(loaded, images(1), 0, attack)


def test_an_image_stays_where_an_attack_leaves_the_encoders_domain() -> None:
    loaded = gf.ModuleEncoder(Narrow(), head=torch.nn.Linear(SIZE, 4), input_shape=SHAPE, name="narrow").load()
    x, attack = torch.full((1, *SHAPE), 0.999), gf.PGD(epsilon=1.0, step=0.5)
    assert torch.equal(attack_image(loaded, x, -1, attack, bounds=None).image, x)
    assert math.isnan(minimal_perturbation(loaded, x, -1, [attack]).distance)


def test_packages_are_a_tuple() -> None:
    with pytest.raises(TypeError, match=r"write \('torchattacks',\)"):
        type("Mine", (gf.Attack,), {"packages": "torchattacks"})


def test_foolboxs_model_takes_raw_pixels_and_gradients_flow() -> None:
    encoder = linear()
    model = foolbox_model(encoder.load())
    x = images(2).requires_grad_(True)
    logits = model(x)
    torch.testing.assert_close(logits.detach(), encoder.load().logits(x.detach()).detach())
    logits[:, 0].sum().backward()
    torch.testing.assert_close(x.grad.flatten(1)[0], encoder.head.weight[0].detach() / 0.3)
    assert tuple(model.bounds) == (0.0, 1.0)
    assert tuple(foolbox_model(encoder.load(), None).bounds) == (-math.inf, math.inf)


def test_without_foolbox_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "foolbox", None)
    with pytest.raises(gf.MissingFile, match=r"pip install 'geoframe\[attacks\]'"):
        foolbox()
    with pytest.raises(gf.MissingFile, match=r"geoframe\[attacks\]"):
        gf.measure(gf.RayCoverageProbe(attack=gf.PGD()), network(), gf.TensorSet(images(1), labels=[0], name="x"))


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Darker(Attack):
    """An attack that needs no package, or one that isn't there."""

    def perturb(self, encoder: LoadedEncoder, x: torch.Tensor, label: int, bounds: Bounds) -> torch.Tensor:
        return x / 2


@attrs.frozen(kw_only=True, slots=False, eq=False)
class Absent(Darker):
    packages: ClassVar[tuple[str, ...]] = ("no_such_package.attacks",)


def test_attacks_need_the_packages_that_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "foolbox", None)
    data = gf.TensorSet(images(2), labels=[0, 0], name="x")
    probe = gf.RayCoverageProbe(attack=Darker(), reference=data, n_reference=1)
    found = gf.measure(probe, network(), data)
    assert (found["distance"] > 0).all()
    with pytest.raises(gf.MissingFile, match="no_such_package, not installed here: pip install no_such_package"):
        gf.measure(probe.evolve(attack=Absent()), network(), data)


class Attacked(gf.Study):
    """Rays to an attacked image."""

    encoders = (network(),)
    probesets = (gf.TensorSet(images(1), labels=[0], name="x"),)
    probes = (gf.RayCoverageProbe(attack=gf.PGD()),)


def test_without_foolbox_a_run_is_refused_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "foolbox", None)
    with pytest.raises(gf.MissingFile, match=r"foolbox, not installed here: pip install 'geoframe\[attacks\]'"):
        gf.run(Attacked, out=tmp_path / "out")
    assert not (tmp_path / "out/run.json").exists()


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (gf.PGD, "steps", 0),
        (gf.IFGSM, "epsilon", -0.1),
        (gf.IFGSM, "epsilon", 1.5),
        (gf.CarliniWagner, "c", 0),
        (gf.DDN, "gamma", "x"),
        (gf.DeepFool, "candidates", 1.5),
    ],
)
def test_refusals(kind: type[gf.Attack], field: str, value: object) -> None:
    with pytest.raises(gf.BadInput, match=f"{kind.__name__}: {field}="):
        kind(**{field: value})


def test_an_epsilon_of_255ths_is_refused_with_what_it_should_be() -> None:
    with pytest.raises(gf.BadInput, match=r"PGD: epsilon=8\.0 should be .* in raw \[0, 1\] pixels: 8/255 is 0\.0314"):
        gf.PGD(epsilon=8)


def test_specs_differ_by_their_fields() -> None:
    specs = [gf.PGD(), gf.IFGSM(steps=30), gf.PGD(epsilon=0.1), gf.CarliniWagner(), gf.CarliniWagner(steps=10)]
    assert len({spec.key for spec in specs}) == len(specs)
    assert gf.PGD(name="other").key == gf.PGD().key
    assert [attack.label for attack in PUBLISHED] == ["cw", "ifgsm", "pgd"]
