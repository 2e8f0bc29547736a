"""Neural Expansion, §5.3.2, fig. 4a, Table 7 and I.1: rays of networks that were trained on random labels."""

import geoframe as gf
from geoframe.training.arms import labelled_arms
from geoframe.training.published import digits_training, mnist_training

TRAIN, TEST = gf.TorchvisionSet("MNIST", split="train"), gf.TorchvisionSet("MNIST")


class RandomLabelLearning(gf.Study):
    """Under random labels fewer rays are covered than under true ones, and some still are (Neural Expansion, I.1)."""

    name = "random_labels"
    match = "labelling"  # RANDOM-100 meets test images with random labels, the others those with true ones
    # I.1 doesn't say how long it trains; A.3's 30 epochs may not memorise 60,000 random labels, and then no verdict
    encoders = labelled_arms(mnist_training("mlp"), TRAIN, TEST)
    probesets = (gf.TrueLabels(TEST), gf.RandomLabels(TEST, 100))
    probes = (gf.RayCoverageProbe(n_reference=None),)
    summaries = (gf.CoverageSummary(different=""), gf.RandomLabelClaims())
    figures = (gf.CoverageByOutcome(),)
    presets = {
        "quick": {  # long enough to memorise
            "encoders": labelled_arms(digits_training("mlp", epochs=100), gf.Digits(split="train"), gf.Digits()),
            "probesets": (gf.TrueLabels(gf.Digits(n=300)), gf.RandomLabels(gf.Digits(n=300), 100)),
            "probes.coverage.n_reference": 20,
            "probes.coverage.step": 0.02,
        },
        "small": {  # 3,000 training images and 60 epochs at A.3's rate: that memorises
            "encoders": labelled_arms(mnist_training("mlp", epochs=60), gf.Subset(TRAIN, 3000), TEST),
            "probesets": (
                gf.TrueLabels(gf.TorchvisionSet("MNIST", n=300)),
                gf.RandomLabels(gf.TorchvisionSet("MNIST", n=300), 100),
            ),
            "probes.coverage.n_reference": 100,
        },
    }
