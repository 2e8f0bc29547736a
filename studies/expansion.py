"""Neural Expansion, figure 1 and §5.1.1: intervals over training, against test accuracy."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training
from geoframe.training.series import all_checkpoints, over_seeds

SEEDS = range(3)


class Expansion(gf.Study):
    """Intervals grow with test accuracy, most along singular vectors (Neural Expansion, fig. 1: r = 0.99)."""

    encoders = all_checkpoints(*over_seeds(mnist_training("mlp", epochs=30, checkpoints=range(1, 30)), SEEDS))
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
            "encoders": all_checkpoints(*over_seeds(mnist_training("mlp", epochs=10, checkpoints=range(1, 10)), SEEDS)),
            "probesets": (gf.TorchvisionSet("MNIST", n=12),),
            "probes.*.search": "exact",
            "probes.*.n_directions": 24,
        },
    }
