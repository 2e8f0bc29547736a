"""Neural Expansion, figure 1 and §5.1.1: intervals over training, against test accuracy."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training
from geoframe.training.series import all_checkpoints, over_seeds

SEEDS = range(3)


def at_both_rates(epochs):
    """A.3 gives two learning rates, not which is §5.1's: the lower one is what leaves accuracy room to rise."""
    trainings = (
        mnist_training("mlp", epochs=epochs, checkpoints=range(1, epochs), lr=lr, variant=f"lr{lr:g}")
        for lr in (1e-2, 1e-3)
    )
    return all_checkpoints(*(run for training in trainings for run in over_seeds(training, SEEDS)))


class Expansion(gf.Study):
    """Intervals grow with test accuracy, most along singular vectors (Neural Expansion, fig. 1: r = 0.99)."""

    encoders = at_both_rates(epochs=30)
    probesets = (gf.TorchvisionSet("MNIST", n=100),)
    probes = (
        # §5.1's means of 7 and 11.5 can't come from A.4's cap of 3; its own isn't given
        gf.GIProbe(along="rsv", layer="pre", cap=20.0),
        gf.GIProbe(along="random", n_directions=100, cap=20.0, name="gi-random"),
    )
    summaries = (gf.ExpansionSummary(), gf.ExpansionClaims())
    figures = (gf.ExpansionCurves(),)
    presets = {
        "quick": {
            "encoders": all_checkpoints(*over_seeds(digits_training("mlp", checkpoints=(1, 2, 3, 5, 10, 20)), SEEDS)),
            "probesets": (gf.Digits(n=20),),
            "probes.*.search": "exact",
            "probes.*.n_directions": 24,
            "figures.expansion.note": "8×8 digits are learnt in a few epochs: later on, accuracy hardly moves.",
        },
        "small": {  # 10 epochs instead of 30, 24 directions of each kind on 12 images, crossings exact
            "encoders": at_both_rates(epochs=10),
            "probesets": (gf.TorchvisionSet("MNIST", n=12),),
            "probes.*.search": "exact",
            "probes.*.n_directions": 24,
        },
    }
