"""Neural Expansion, theorems 1 and 2 and equations 5 to 7: lower bounds of intervals, checked on every ray."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training, trained_and_random


class Bounds(gf.Study):
    """The bounds of theorems 1 and 2 and of eqs. 5–7 hold on every ray; how tight they are (Neural Expansion, §3)."""

    match = "dataset"
    encoders = trained_and_random(mnist_training("mlp", "MNIST"), mnist_training("cnn", "MNIST"))
    probesets = (gf.TorchvisionSet("MNIST", n=100),)
    probes = (gf.BoundsProbe(),)
    summaries = (gf.BoundsSummary(),)
    figures = (gf.BoundsScatter(),)
    presets = {
        "quick": {
            "encoders": trained_and_random(digits_training("mlp"), digits_training("cnn")),
            "probesets": (gf.Digits(n=10),),
            "probes.bounds.n_directions": 16,
        },
        "small": {  # 5 epochs instead of 30; the trainings are those of coverage.py
            "encoders": trained_and_random(
                mnist_training("mlp", "MNIST", epochs=5), mnist_training("cnn", "MNIST", epochs=5)
            ),
            "probesets": (gf.TorchvisionSet("MNIST", n=20),),
            "probes.bounds.n_directions": 16,
        },
    }
