"""Neural Expansion, fig. 4b, 4c and Table 8: errors on rare classes go to frequent ones, and coverage stays high."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training


def long_tailed(training: gf.Training, *ratios: float) -> tuple[gf.TrainedEncoder, ...]:
    """Return the network of a recipe, trained on a part of its data for each imbalance."""
    tails = {f"lt{ratio:g}": gf.LongTail(training.data, ratio) for ratio in ratios}
    return tuple(gf.TrainedEncoder(training.evolve(data=data, variant=name)) for name, data in tails.items())


class LongTail(gf.Study):
    """Errors on rare classes go to frequent ones while coverage stays high (Neural Expansion, fig. 4b, 4c, I.2)."""

    name = "long_tail"
    match = "dataset"
    encoders = long_tailed(mnist_training("mlp"), 6.5, 78.6)  # MNIST-LT1 and MNIST-LT2
    probesets = (gf.TorchvisionSet("MNIST"),)
    probes = (gf.RayCoverageProbe(n_reference=None),)
    summaries = (gf.LongTailSummary(), gf.LongTailClaims())
    figures = (gf.LongTailFlows(), gf.LongTailCoverage())
    presets = {
        "quick": {
            "encoders": long_tailed(digits_training("mlp"), 6.5, 30),
            "probesets": (gf.Digits(),),
            "probes.coverage.n_reference": 20,
            "probes.coverage.step": 0.02,
        },
        "small": {  # 10 epochs instead of 30; every test image, since errors are few, but 10 rays instead of all
            "encoders": long_tailed(mnist_training("mlp", epochs=10), 6.5, 78.6),
            "probes.coverage.n_reference": 10,
            "probes.coverage.step": 0.02,
        },
    }
