"""Neural Expansion, F.2 and Table 5: coverage over seeds and optimisers."""

import geoframe as gf
from geoframe.training.published import digits_training, mnist_training
from geoframe.training.series import all_checkpoints, over_optimisers, over_seeds


def models(training: gf.Training, seeds: int, lr: float | None = None) -> tuple[gf.Training, ...]:
    """SGD with some seeds, Adam and RMSprop with the first: not crossed. SGD's first seed stands in both groups."""
    return *over_seeds(training, range(seeds)), *over_optimisers(training, "adam", "rmsprop", lr=lr)


def mnist(architecture: str, seeds: int, epochs: int, *checkpoints: int) -> tuple[gf.Training, ...]:
    """F.2's learning rate on MNIST."""
    return models(mnist_training(architecture, epochs=epochs, lr=1e-3, checkpoints=checkpoints), seeds)


class Seeds(gf.Study):
    """Trained coverage hardly depends on the seed or the optimiser, untrained coverage does (Neural Expansion, F.2)."""

    encoders = all_checkpoints(*mnist("mlp", 5, 20, 1, 2, 5, 10), *mnist("cnn", 5, 20, 1, 2, 5, 10))
    probesets = (gf.TorchvisionSet("MNIST", n=50),)
    probes = (gf.RayCoverageProbe(n_reference=None),)
    summaries = (gf.SeedSummary(), gf.SeedClaims())
    figures = (gf.CoverageRuns(),)
    presets = {
        "quick": {  # SGD at 0.05, the others at 0.001
            "encoders": all_checkpoints(
                *models(digits_training("mlp", epochs=20, checkpoints=(1, 5)), 3, lr=1e-3),
                *models(digits_training("cnn", epochs=20, checkpoints=(1, 5)), 3, lr=1e-3),
            ),
            "probesets": (gf.Digits(n=50),),
            "probes.coverage.n_reference": 20,
            "probes.coverage.step": 0.02,
            "figures.coverage_runs.note": "8×8 digits; SGD learns at 0.05, Adam and RMSprop at 0.001.",
        },
        "small": {  # 4 epochs instead of 20, 3 seeds instead of 5, 30 rays an image instead of about 6000
            "encoders": all_checkpoints(*mnist("mlp", 3, 4, 1, 2), *mnist("cnn", 3, 4, 1, 2)),
            "probes.coverage.n_reference": 30,
        },
    }
