"""The CIFAR-10 sets of *Beyond Local Linearity* (A.2), evaluation and training, by the paper's names.

The paper gives sizes, splits and blurs; it gives no seeds. Seed 0 of the draws and the two seeds of the noise are ours.
"""

from __future__ import annotations

from geoframe.probeset import ProbeSet
from geoframe.probesets.blurred import Blurred
from geoframe.probesets.cifar import cifar10
from geoframe.probesets.noise import NoiseImages, NoiseSet
from geoframe.probesets.relabelled import PermutedLabels

NOISE_SEED = 0
"""Seed of noise32, which no network was trained on."""
RANDOM_DATA_SEED = 1
"""Seed of the training data of the random-data network."""


def cifar_evaluation_sets(*, n: int = 32, seed: int = 0, stand_in: bool = False) -> dict[str, ProbeSet]:
    """Return the six evaluation sets: cifar32, cifar32train, cifar32b1, cifar32b2, noise32 and noise32train.

    Parameters
    ----------
    n : int
        Images a set, the paper's 32; names follow (cifar8 …).
    seed : int
        Seed of the draws from the test and training splits.
    stand_in : bool
        See `cifar10`.

    Returns
    -------
    dict
        Name to probe set, which bears the name too. The blurred sets blur the images of cifar32; noise32train holds the
        first 32 images of `cifar_training_sets()["random-data"]`, made anew from its seed, without labels.
    """
    test = cifar10("test", n=n, seed=seed, stand_in=stand_in)
    sets: dict[str, ProbeSet] = {
        f"cifar{n}": test,
        f"cifar{n}train": cifar10("train", n=n, seed=seed, stand_in=stand_in),
        f"cifar{n}b1": Blurred(test, sigma=1),
        f"cifar{n}b2": Blurred(test, sigma=2),
        f"noise{n}": NoiseSet(n, seed=NOISE_SEED),
        f"noise{n}train": NoiseSet(n, seed=RANDOM_DATA_SEED),
    }
    return {name: probeset.evolve(name=name) for name, probeset in sets.items()}


def cifar_training_sets(*, seed: int = 0, stand_in: bool = False) -> dict[str, ProbeSet]:
    """Return the five training sets: clean, random-labels, random-data, blur1 and blur2.

    Parameters
    ----------
    seed : int
        Seed of the permutation of the labels.
    stand_in : bool
        See `cifar10`.

    Returns
    -------
    dict
        Name to probe set. random-labels and random-data are trained on without augmentation; the blur acts once, before
        the augmentation.
    """
    clean = cifar10("train", stand_in=stand_in)
    return {
        "clean": clean,
        "random-labels": PermutedLabels(clean, seed=seed),
        "random-data": NoiseImages(clean, seed=RANDOM_DATA_SEED),
        "blur1": Blurred(clean, sigma=1),
        "blur2": Blurred(clean, sigma=2),
    }
