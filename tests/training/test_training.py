from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import geoframe as gf
from geoframe.training import loop
from geoframe.training.cache import TrainingCache, cache_root

pytest.importorskip("sklearn", reason="the digits come with scikit-learn")

MODEL = gf.FactoryEncoder(
    "geoframe.models.small:mlp",
    kwargs={"inputs": 64, "widths": (16, 8)},
    input_shape=(1, 8, 8),
    mean=0.5,
    std=0.5,
)


def recipe(**changes) -> gf.Training:
    fields = {"lr": 0.1, "batch": 32, "epochs": 2, "checkpoints": (1,), "test": gf.Digits(n=50)} | changes
    return gf.Training(model=MODEL, data=gf.Digits(split="train", n=300), **fields)


def weights(training: gf.Training, epoch: int) -> torch.Tensor:
    return torch.cat([v.flatten().double() for v in loop.weights_after(training, epoch).values()])


def counted(monkeypatch) -> list[str]:
    trained: list[str] = []
    real = loop.train

    def train(training, cache):
        trained.append(training.key)
        real(training, cache)

    monkeypatch.setattr(loop, "train", train)
    return trained


def test_it_learns_and_says_how_well(cache):
    training = recipe(epochs=20)
    encoder = gf.TrainedEncoder(training)
    encoder.build()
    log = TrainingCache(training).log()
    assert [row["epoch"] for row in log["checkpoints"]] == [1, 20]
    first, last = log["checkpoints"]
    assert last["loss"] < first["loss"]
    assert last["train_accuracy"] > 0.9
    assert last["test_accuracy"] > 0.75
    images = gf.Digits(n=50).load((1, 8, 8))
    found = encoder.load().logits(images.pixels).argmax(1)
    assert float((found == torch.tensor(images.labels)).double().mean()) == pytest.approx(last["test_accuracy"])
    assert cache_root() == cache
    assert not list(cache.rglob("*.partial"))


def test_equal_recipes_give_equal_bits(tmp_path, monkeypatch):
    first = weights(recipe(), 2)
    torch.manual_seed(123)  # the caller's generator plays no role
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "other"))
    assert torch.equal(first, weights(recipe(), 2))
    assert not torch.equal(first, weights(recipe(seed=1), 2))


def test_training_leaves_no_trace_in_the_callers_state():
    before = torch.get_rng_state()
    with torch.no_grad():
        weights(recipe(), 2)
        assert not torch.is_grad_enabled()
    assert torch.equal(before, torch.get_rng_state())


def test_the_cache_is_used_and_every_field_is_in_its_name(monkeypatch):
    trained = counted(monkeypatch)
    weights(recipe(), 2)
    weights(recipe(name="another name", test=None), 1)
    assert len(trained) == 1
    changed = [recipe(lr=0.2), recipe(batch=16), recipe(momentum=0.5), recipe(weight_decay=0.1), recipe(epochs=3)]
    changed += [recipe(checkpoints=()), recipe(seed=2), recipe().evolve(data=gf.Digits(split="train", n=200))]
    assert len({recipe().key, *(training.key for training in changed)}) == 1 + len(changed)


def test_a_lost_or_unnamed_checkpoint_is_made_again_with_the_same_bits(monkeypatch):
    training = recipe()
    first = weights(training, 2)
    cache = TrainingCache(training)
    cache.file(2).unlink()
    trained = counted(monkeypatch)
    assert torch.equal(weights(training, 2), first)
    log = cache.log()
    cache.write_log({**log, "checkpoints": log["checkpoints"][:1]})  # killed between the two writes
    assert torch.equal(weights(training, 2), first)
    assert len(trained) == 2


def test_two_processes_train_once(cache):
    code = (
        "import sys; from tests.training.test_training import recipe; import geoframe as gf\n"
        "gf.TrainedEncoder(recipe(epochs=20)).build()"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    (log,) = cache.rglob("training.json")
    assert len(json.loads(log.read_text())["checkpoints"]) == 2


def test_a_waiting_run_says_so(capsys):
    from filelock import FileLock

    training = recipe()
    cache = TrainingCache(training)
    cache.lock.parent.mkdir(parents=True)
    with FileLock(cache.lock):
        import threading

        thread = threading.Thread(target=weights, args=(training, 2))
        thread.start()
        thread.join(1.0)
        assert thread.is_alive()
    thread.join()
    assert "another run is at it; waiting" in capsys.readouterr().err


def test_the_steps_of_an_encoder():
    training = recipe()
    steps = {step: gf.TrainedEncoder(training, step=step) for step in ("init", 0, 1, 2, "final")}
    assert [e.label for e in steps.values()] == [
        "mlp-digits-random",
        "mlp-digits-random",
        "mlp-digits-epoch1",
        "mlp-digits",
        "mlp-digits",
    ]
    assert steps["init"].coords == {
        "architecture": "mlp",
        "training": "random",
        "dataset": "digits",
        "variant": "",
        "epoch": 0,
        "step": 0,
        "seed": 0,
    }
    assert steps["final"].coords["training"] == "digits"
    digests = {step: encoder.load().digest for step, encoder in steps.items()}
    assert digests["init"] == digests[0] != digests[1] != digests[2] == digests["final"]


def test_initial_weights_need_no_data_and_no_training(monkeypatch):
    monkeypatch.setattr(loop, "train", None)
    training = gf.Training(model=MODEL, data=gf.TorchvisionSet("MNIST", split="train", root="/nowhere"))
    encoder = gf.TrainedEncoder(training)
    assert encoder.randomised().label == encoder.label == "mlp-mnist"
    network = encoder.randomised().build()
    assert network.training_set is training.data
    assert isinstance(network.head, torch.nn.Linear)
    assert (network.mean, network.std) == (0.5, 0.5)


def test_the_digest_of_the_source_appears_once_it_is_trained():
    encoder = gf.TrainedEncoder(recipe())
    assert encoder.source_digest() is None
    encoder.build()
    assert encoder.source_digest()
    assert encoder.randomised().source_digest() is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimiser": "sdg"}, "no optimiser 'sdg'; did you mean 'sgd'"),
        ({"optimiser": None}, "no optimiser None"),
        ({"lr": 0.0}, "lr=0.0 should be a number above 0"),
        ({"lr": "fast"}, "lr='fast' should be a number above 0"),
        ({"lr": float("inf")}, "lr=inf should be a number above 0"),
        ({"weight_decay": None}, "weight_decay=None should be a number, 0 or more"),
        ({"batch": "all"}, "batch='all' should be a whole number, 1 or more"),
        ({"epochs": True}, "epochs=True should be a whole number"),
        ({"seed": 2**64}, "seed=.* should be a whole number of at most 64 bits"),
        ({"checkpoints": None}, r"checkpoints=None should be numbers of epochs, such as \(1, 10\)"),
        ({"checkpoints": ("last",)}, "checkpoints=.* should be numbers of epochs"),
        ({"test": "digits"}, "test='digits' should be a probe set of labelled images"),
        ({"batch": 0}, "batch"),
        ({"epochs": 0}, "epochs"),
        ({"checkpoints": (3,)}, "no checkpoint after epoch 3: training has epochs 1 to 2"),
        ({"momentum": -1}, "momentum"),
    ],
)
def test_bad_recipes(changes, message):
    with pytest.raises(gf.BadInput, match=message) as error:
        recipe(**changes)
    assert "\n" not in str(error.value)


def test_an_epoch_that_is_not_kept():
    with pytest.raises(gf.BadInput, match=r"keeps no epoch 5 \(it keeps 1, 2\)"):
        gf.TrainedEncoder(recipe(), step=5).build()
    with pytest.raises(gf.BadInput, match="'init', 'final' or the number of an epoch"):
        gf.TrainedEncoder(recipe(), step="last")


def test_data_without_labels():
    unlabelled = gf.TensorSet(torch.rand(4, 1, 8, 8), name="bare")
    with pytest.raises(gf.BadInput, match="'bare' has images without"):
        gf.TrainedEncoder(gf.Training(model=MODEL, data=unlabelled, epochs=1)).build()


def test_diverged_training_stops_and_says_so():
    with pytest.raises(gf.BadInput, match=r"diverged in epoch 1"):
        weights(recipe(lr=1e30), 2)


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "file"))
    with pytest.raises(gf.BadInput, match=r"can't write .*: Not a directory; set GEOFRAME_CACHE to another folder"):
        weights(recipe(), 2)


def test_a_full_disk_leaves_the_checkpoint_before_it(monkeypatch):
    training, opened = recipe(), Path.open

    def full(self, *args, **kwargs):
        file = opened(self, *args, **kwargs)
        if self.name.endswith("00002.pt.partial"):
            file.close()
            raise OSError(28, "No space left on device")
        return file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(gf.BadInput, match="No space left on device; free some space"):
            weights(training, 2)
    assert not list(TrainingCache(training).folder.glob("*.partial")), "the space is given back"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "train", None)
        assert len(weights(training, 1))
    assert len(weights(training, 2))


def test_progress_lines(monkeypatch, capsys):
    from geoframe.training import progress

    clock = iter([0.0, 1.0, 3.0, 4.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    shown = progress.TrainingProgress("mlp", 4, 10)
    for epoch in (1, 2, 3, 4):
        shown.epoch(epoch, 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "training mlp: epoch 2 of 4, loss 0.5, about 3.0 s left",
        "training mlp: epoch 4 of 4, loss 0.5",
    ]
