"""Neural Expansion, I.4: images from elsewhere fall within a classifier's ray coverage, now and then."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training, trained_and_random


class Ood(gf.Study):
    """A tenth of the rays to grey CIFAR-10 images keep their class in an MNIST classifier (Neural Expansion, I.4)."""

    encoders = trained_and_random(mnist_training("mlp"))
    probesets = (
        gf.Subset(gf.TorchvisionSet("MNIST"), per_class=50),
        gf.Subset(gf.Resized(gf.cifar10()), per_class=50),  # grey, 28 × 28, whole
    )
    probes = (gf.RayCoverageProbe(n_reference=None),)
    summaries = (gf.CoverageSummary(different="", by_outcome=False), gf.OodClaims())
    figures = (gf.OodCoverage(),)
    presets = {
        "quick": {
            "encoders": trained_and_random(digits_training("mlp")),
            "probesets": (gf.Digits(n=200), gf.Resized(gf.PhotoCrops(n=200))),
            "probes.coverage.n_reference": 20,
            "probes.coverage.step": 0.02,
        },
        "small": {  # 5 epochs instead of 30, 30 rays instead of all 6000
            "encoders": trained_and_random(mnist_training("mlp", epochs=5)),
            "probesets": (
                gf.Subset(gf.TorchvisionSet("MNIST"), per_class=20),
                gf.Subset(gf.Resized(gf.cifar10(stand_in=True)), per_class=50),
            ),
            "probes.coverage.n_reference": 30,
        },
    }
