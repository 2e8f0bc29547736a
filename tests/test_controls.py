"""Random copies are told by identity: names, architectures and seeds play no part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import xarray as xr

import geoframe as gf
from geoframe.controls import networks_and_controls, with_controls
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.recipe import Training

SHAPE = (1, 8, 8)


def factory(**kwargs: Any) -> gf.FactoryEncoder:
    return gf.FactoryEncoder("mynets.py:net", kwargs=kwargs, input_shape=SHAPE)


def training(kwargs: Mapping[str, Any], **changes: Any) -> Training:
    return Training(model=factory(**kwargs), data=gf.Digits(split="train"), epochs=5, checkpoints=(1,), **changes)


RELU, GELU = training({"activation": "relu"}), training({"activation": "gelu"})


def test_networks_of_one_factory_get_their_own_copies():
    steps = [(RELU, "final"), (GELU, "final"), (GELU, "init"), (RELU, "init")]
    encoders = [TrainedEncoder(t, step=s, name=f"{n}") for n, (t, s) in enumerate(steps)]
    networks, controls = networks_and_controls(encoders)
    assert controls == ["3", "2", "", ""]
    assert networks == ["0", "1", "1", "0"]


def test_checkpoints_share_one_copy_also_as_epoch_0():
    for start in ("init", 0):
        encoders = [TrainedEncoder(RELU, step=step, name=f"at {step}") for step in (start, 1, "final")]
        networks, controls = networks_and_controls(encoders)
        assert controls == ["", f"at {start}", f"at {start}"]
        assert len(set(networks)) == 1


def test_a_study_without_the_copy_has_no_control_but_knows_the_network():
    encoders = [TrainedEncoder(RELU, step=1), TrainedEncoder(RELU), TrainedEncoder(GELU, step="init", name="other")]
    networks, controls = networks_and_controls(encoders)
    assert controls == ["", "", ""]
    assert networks[0] == networks[1] != networks[2]


def test_other_seeds_are_other_networks():
    encoders = [TrainedEncoder(training({"activation": "relu"}, seed=1)), TrainedEncoder(RELU, step="init")]
    assert networks_and_controls(encoders)[1] == ["", ""]


def test_a_checkpoint_file_and_the_bare_factory():
    trained = gf.CheckpointEncoder(factory(activation="gelu"), file="w.pt", name="trained")
    encoders = [trained, factory(activation="relu").evolve(name="r"), factory(activation="gelu").evolve(name="g")]
    assert networks_and_controls(encoders)[1] == ["g", "", ""]


def test_models_of_libraries():
    encoders = [gf.TorchvisionEncoder("resnet18", weights=w) for w in ("IMAGENET1K_V1", None)]
    assert networks_and_controls(encoders)[1] == ["resnet18-random", ""]


@attrs.frozen(kw_only=True)
class Odd(gf.Encoder):
    """An encoder that has no random copy to offer."""

    def randomised(self) -> gf.Encoder:
        raise ValueError("no")


def test_an_encoder_without_a_random_copy():
    assert networks_and_controls([Odd(name="a"), Odd(name="b", mean=0.5)]) == (["a", "b"], ["", ""])


def test_a_variable_of_that_name_is_left_alone():
    node = xr.Dataset({"control": ("encoder", [1.0])}, {"encoder": ["a"]})
    found = with_controls(node, [Odd(name="a")])
    assert found["control"].values.tolist() == [1.0]
    assert found["encoder_control"].values.tolist() == [""]
    assert found["network"].attrs["long_name"]
