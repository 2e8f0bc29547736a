"""Neural Expansion, fig. 3 and F.1: rays from training images of the predicted class keep that class."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training, trained_and_random


class Coverage(gf.Study):
    """Training covers rays of the same class and not those to other classes (Neural Expansion, fig. 3 and F.1)."""

    match = "dataset"
    encoders = trained_and_random(
        mnist_training("mlp", "MNIST"), mnist_training("cnn", "MNIST"), mnist_training("cnn", "FashionMNIST")
    )
    probesets = (gf.TorchvisionSet("MNIST", n=100), gf.TorchvisionSet("FashionMNIST", n=100))
    probes = (
        gf.RayCoverageProbe(n_reference=None),
        gf.RayCoverageProbe(n_reference=None, classes="different"),
    )
    summaries = (gf.CoverageSummary(), gf.CoverageTests())
    figures = (gf.CoverageDesign(), gf.CoverageByOutcome())
    presets = {
        "quick": {
            "encoders": trained_and_random(digits_training("mlp"), digits_training("cnn")),
            "probesets": (gf.Digits(n=300),),
            "probes.*.n_reference": 20,
            "probes.*.step": 0.02,
        },
        "small": {  # 5 epochs instead of 30, 30 rays a pool instead of all 6000
            "encoders": trained_and_random(
                mnist_training("mlp", "MNIST", epochs=5),
                mnist_training("cnn", "MNIST", epochs=5),
                mnist_training("mlp", "FashionMNIST", epochs=5),
                mnist_training("cnn", "FashionMNIST", epochs=5),
            ),
            "probes.*.n_reference": 30,
        },
    }
