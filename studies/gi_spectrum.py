"""Neural Expansion, figures 2a and 2b and appendix C: what training does by singular-vector index."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training

STEPS = ("init", 1, "final")


def checkpoints(training: gf.Training, *steps: object) -> tuple[gf.TrainedEncoder, ...]:
    """One encoder a step."""
    return tuple(gf.TrainedEncoder(training, step=step) for step in steps)


class GiSpectrum(gf.Study):
    """Training lengthens intervals and linear ranges where singular values are small (Neural Expansion, fig. 2)."""

    name = "gi_spectrum"
    encoders = checkpoints(mnist_training("mlp", epochs=50, checkpoints=(1, 49)), "init", 1, 49, "final")
    probesets = (gf.TorchvisionSet("MNIST", n=100),)
    probes = (
        # §5.1's means of 7 and 11.5 can't come from A.4's cap of 3; its own isn't given
        gf.GIProbe(layer="pre", cap=20.0),
        gf.LinearityProbe(layer="pre"),
        gf.JacobianProbe(layer="pre"),
    )
    summaries = (gf.SpectrumSummary(), gf.SpectrumClaims())
    figures = (gf.SpectrumProfiles(),)
    presets = {
        "quick": {
            "encoders": checkpoints(digits_training("mlp", checkpoints=(1,)), *STEPS),
            "probesets": (gf.Digits(n=20),),
            "probes.gi.search": "exact",
        },
        "small": {  # 10 epochs instead of 50, a quarter of the basis, crossings exact instead of in steps
            "encoders": checkpoints(mnist_training("mlp", epochs=10, checkpoints=(1,)), *STEPS),
            "probesets": (gf.TorchvisionSet("MNIST", n=20),),
            "probes.gi.search": "exact",
            "probes.gi.n_directions": 196,
            "probes.linearity.n_directions": 98,
        },
    }
