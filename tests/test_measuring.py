"""What the base does for every probe: batches, padding, seeds, labels, checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pytest
import torch
import xarray as xr

import geoframe as gf
from geoframe import measuring
from geoframe.errors import BadInput
from geoframe.probeset import Images
from geoframe.settings import Settings, choose_settings, resolve_device
from geoframe.spec import digest
from tests.networks import SHAPE, loaded, relu_net, some_images


@attrs.frozen(kw_only=True)
class FeatureNorm(gf.Probe):
    """Length of the feature vector."""

    version = "1"
    outputs = {"norm": gf.Output(dims=(), units="feature L2")}

    def measure(self, encoder: Any, batch: gf.Batch) -> Mapping[str, Any]:
        return {"norm": encoder.features(batch.images).norm(dim=1)}


@attrs.frozen(kw_only=True)
class Jittered(gf.Probe):
    """Needs randomness and an extra dimension."""

    draws: int = 3
    images_per_block = 4
    outputs = {"value": gf.Output(dims=("draw",)), "first": gf.Output(dtype="bool"), "word": gf.Output(dtype="str")}

    def coords(self) -> Mapping[str, Any]:
        return {"draw": [f"d{i}" for i in range(self.draws)]}

    def measure(self, encoder: Any, batch: gf.Batch) -> Mapping[str, Any]:
        noise = torch.stack([torch.rand(self.draws, generator=g) for g in batch.rng])
        return {
            "value": encoder.features(batch.images)[:, :1] + noise,
            "first": noise[:, 0] > 0.5,
            "word": [f"<{i}>" for i in batch.ids],
        }


@attrs.frozen(kw_only=True)
class Spread(gf.Probe):
    """Measures the set as a whole."""

    per = "set"
    outputs = {"spread": gf.Output(dims=("feature",))}

    def measure(self, encoder: Any, batch: gf.Batch) -> Mapping[str, Any]:
        return {"spread": encoder.features(batch.images).var(0)}


def measured(probe: gf.Probe, images: Images, micro_batch: int = 8) -> xr.Dataset:
    encoder = loaded(relu_net())
    chosen = Settings(**{**choose_settings(encoder).to_json(), "micro_batch": micro_batch})
    parts = [
        measuring.measure_block(probe, encoder, images, start, stop, chosen)
        for start, stop in measuring.blocks(probe, len(images))
    ]
    return measuring.concat_blocks(parts)


@attrs.frozen(kw_only=True)
class Dear(Jittered):
    """One image a call, each planned as many passes."""

    images_per_call = 1
    passes: float = 1.0

    def forward_passes(self) -> float:
        return self.passes


@pytest.mark.parametrize(
    ("passes", "want"), [(1, [4, 4, 2]), (20_000, [2] * 5), (1e6, [1] * 10), (0, [4, 4, 2]), (float("inf"), [1] * 10)]
)
def test_dear_images_are_stored_a_few_at_a_time(passes: float, want: list[int]) -> None:
    found = measuring.blocks(Dear(passes=passes), 10, loaded(relu_net()))
    assert [stop - start for start, stop in found] == want
    assert (found[0][0], found[-1][1]) == (0, 10)


def test_calls_as_large_as_a_batch_are_not_split_and_sets_never_are() -> None:
    encoder = loaded(relu_net())
    assert measuring.blocks(Jittered(), 10, encoder) == measuring.blocks(Jittered(), 10) == [(0, 4), (4, 8), (8, 10)]
    assert measuring.blocks(Spread(), 10, encoder) == [(0, 10)]


def test_results_do_not_depend_on_the_blocks() -> None:
    images = some_images(5)
    probe, encoder = Dear(), loaded(relu_net())
    chosen = choose_settings(encoder)
    whole = measuring.measure_block(probe, encoder, images, 0, 5, chosen)
    parts = [measuring.measure_block(probe, encoder, images, start, start + 1, chosen) for start in range(5)]
    xr.testing.assert_identical(measuring.concat_blocks(parts), whole)


def test_the_smallest_probe() -> None:
    images = some_images(5)
    found = measured(FeatureNorm(), images)
    assert found["norm"].dims == ("image",)
    assert found["norm"].attrs == {"long_name": "norm", "units": "feature L2"}
    want = relu_net()(images.pixels).norm(dim=1).detach().numpy()
    np.testing.assert_allclose(found["norm"], want, rtol=1e-6)


@pytest.mark.parametrize("micro_batch", [3, 4, 64])
def test_random_streams_do_not_depend_on_the_batch(micro_batch: int) -> None:
    images = some_images(10)
    one, other = measured(Jittered(), images), measured(Jittered(), images, micro_batch)
    np.testing.assert_allclose(one["value"], other["value"], rtol=1e-5)
    np.testing.assert_array_equal(one["first"], other["first"])
    assert one["draw"].values.tolist() == ["d0", "d1", "d2"]
    assert one["word"].values.tolist() == [f"<{i}>" for i in range(10)]
    assert len(np.unique(one["value"] - one["value"].isel(draw=0))) > 20
    assert not np.allclose(one["value"], measured(Jittered(seed=1), images)["value"])


def test_the_last_batch_is_padded_so_that_all_have_one_size() -> None:
    sizes = []

    class Watch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            sizes.append(len(x))
            return x.flatten(1)

    encoder = loaded(Watch())
    chosen = Settings(**{**choose_settings(encoder).to_json(), "micro_batch": 4})
    sizes.clear()
    measuring.measure_block(FeatureNorm(), encoder, some_images(6), 0, 6, chosen)
    assert sizes == [4, 4]


def test_a_probe_of_the_whole_set_sees_it_at_once() -> None:
    images = some_images(100)
    found = measured(Spread(), images)
    assert found["spread"].dims == ("feature",)
    want = relu_net()(images.pixels).var(0).detach().numpy()
    np.testing.assert_allclose(found["spread"], want, rtol=1e-4)


class Forgot(gf.Probe):
    outputs = {"x": gf.Output()}


class ForgotField(FeatureNorm):
    scale: float = 1.0


@pytest.mark.parametrize("probe", [Forgot, ForgotField])
def test_a_forgotten_decorator_is_refused_with_the_hint(probe: type[gf.Probe]) -> None:
    with pytest.raises(BadInput, match=r"put @attrs\.frozen"):
        probe()


@attrs.frozen(kw_only=True)
class Wrong(gf.Probe):
    """Returns what it didn't declare."""

    fault: str
    outputs = {"x": gf.Output(dims=("k",))}

    def measure(self, encoder: Any, batch: gf.Batch) -> Any:
        n = len(batch.ids)
        return {
            "name": {"y": torch.zeros(n, 2)},
            "dims": {"x": torch.zeros(n)},
            "length": {"x": torch.zeros(n + 1, 2)},
            "nothing": None,
            "coords": {"x": torch.zeros(n, 3)},
        }[self.fault]

    def coords(self) -> Mapping[str, Any]:
        return {"k": [0, 1]}


@pytest.mark.parametrize("fault", ["name", "dims", "length", "nothing", "coords"])
def test_what_a_probe_returns_is_checked(fault: str) -> None:
    with pytest.raises(BadInput, match="Wrong") as caught:
        measured(Wrong(fault=fault), some_images(2))
    assert "\n" not in str(caught.value)


@attrs.frozen(kw_only=True)
class Needy(FeatureNorm):
    """Needs logits and labels."""

    needs = frozenset({"logits", "labels"})


def test_needs_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"Needy needs logits, but encoder 'toy' has no head"):
        measured(Needy(), some_images(2))
    encoder = loaded(relu_net(), head=torch.nn.Linear(8, 3))
    with pytest.raises(BadInput, match="Needy needs labels"):
        measuring.check_needs(Needy(), encoder, some_images(2))


def test_measure_restores_the_state_of_torch() -> None:
    before = torch.get_num_threads(), torch.is_grad_enabled(), torch.random.get_rng_state()
    measured(FeatureNorm(), some_images(2))
    assert before[:2] == (torch.get_num_threads(), torch.is_grad_enabled())
    assert torch.equal(before[2], torch.random.get_rng_state())


def test_settings_survive_json() -> None:
    chosen = choose_settings(loaded(relu_net()))
    assert Settings.from_json(chosen.to_json()) == chosen


def test_an_absent_device_is_one_line() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    for name in ("cuda", "cuda:3", "nonsense"):
        with pytest.raises(BadInput, match="can't be used here") as caught:
            resolve_device(name)
        assert "\n" not in str(caught.value)


def test_the_micro_batch_follows_the_cap_and_nothing_else() -> None:
    from geoframe.memory import choose_micro_batch

    encoder = loaded(torch.nn.Sequential(torch.nn.Conv2d(3, 64, 1), torch.nn.Flatten()), (3, 32, 32))
    small, large, default = (choose_micro_batch(encoder, cap)[0] for cap in (8 * 2**20, 16 * 2**20, None))
    assert large == pytest.approx(2 * small, rel=0.3)
    assert default == max(17, 24 * 2**20 // encoder.sample_bytes)  # on a CPU: what the cache holds, but not too few
    assert choose_micro_batch(encoder, 1)[0] == 3
    assert choose_micro_batch(encoder, 8 * 2**20)[0] == small


def test_what_is_not_a_spec_is_refused_with_what_to_wrap_it_in() -> None:
    images, encoder = gf.TensorSet(torch.rand(1, *SHAPE)), gf.ModuleEncoder(relu_net(), input_shape=SHAPE)
    with pytest.raises(BadInput, match=r"encoder is a Sequential, no Encoder: wrap a module in gf\.ModuleEncoder"):
        gf.measure(FeatureNorm(), relu_net(), images)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"images is a Tensor, no ProbeSet: wrap a tensor in gf\.TensorSet"):
        gf.measure(FeatureNorm(), encoder, torch.rand(1, *SHAPE))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"probe is the class FeatureNorm: did you forget the \(\)\?"):
        gf.measure(FeatureNorm, encoder, images)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="probe is a ModuleEncoder, no Probe: the order is"):
        gf.measure(encoder, FeatureNorm(), images)  # type: ignore[arg-type]


def test_attributes_are_for_people_and_lose_nothing() -> None:
    images = gf.TensorSet(torch.rand(70, *SHAPE), labels=range(70), name="toy")
    encoder = gf.ModuleEncoder(relu_net(), head=torch.nn.Linear(8, 3), input_shape=SHAPE, name="net")
    probe = gf.RayCoverageProbe(reference=images, n_reference=1, step=0.1, cap=1.5)
    found = gf.measure(probe, encoder, gf.TensorSet(torch.rand(2, *SHAPE), name="mine"), device="cpu")
    assert (found.attrs["encoder"], found.attrs["probeset"]) == ("net", "mine")
    stored = json.loads(found.attrs["probe"])["fields"]
    assert (stored["step"], stored["cap"]) == (0.1, 1.5)
    assert stored["reference"]["fields"]["labels"]["items"] == 70
    assert "0x1." not in found.attrs["probe"]
    assert len(found.attrs["probe"]) < 800
    assert probe.key == digest({"key_version": 1, **probe.identity()})
    assert probe.identity()["fields"]["cap"] == (1.5).hex()
