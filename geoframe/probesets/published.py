"""The CIFAR-10 sets of *Beyond Local Linearity* (A.2), evaluation and training, by the paper's names.

The paper gives sizes, splits and blurs; it gives no seeds. Seed 0 of the draws and the two seeds of the noise are ours.
"""

from __future__ import annotations

from geoframe.probeset import ProbeSet
from geoframe.probesets.blurred import Blurred
from geoframe.probesets.cifar import cifar10
from geoframe.probesets.crops import PhotoCrops
from geoframe.probesets.noise import NoiseImages, NoiseSet
from geoframe.probesets.relabelled import PermutedLabels
from geoframe.probesets.subset import Subset

NOISE_SEED = 0
"""Seed of noise32, which no network was trained on."""
RANDOM_DATA_SEED = 1
"""Seed of the training data of the random-data network."""


def cifar_evaluation_sets(
    *, n: int = 32, seed: int = 0, stand_in: bool = False, trained_on: int | None = None
) -> dict[str, ProbeSet]:
    """Return the six evaluation sets: cifar32, cifar32train, cifar32b1, cifar32b2, noise32 and noise32train.

    Parameters
    ----------
    n : int
        Images a set, the paper's 32; names follow (cifar8 …).
    seed : int
        Seed of the draws from the test and training splits.
    stand_in : bool
        See `cifar10`.
    trained_on : int or None
        Where networks were trained on so many images, the `n` of `cifar_training_sets`: cifar32train is drawn from
        those. None draws from the whole split.

    Returns
    -------
    dict
        Name to probe set, which bears the name too. The blurred sets blur the images of cifar32; noise32train holds the
        first 32 images of `cifar_training_sets()["random-data"]`, made anew from its seed, without labels.
    """
    train = cifar10("train", n=n, seed=seed, stand_in=stand_in)
    if trained_on is not None:
        train = Subset(_clean(trained_on, stand_in), n, seed=seed)
    return evaluation_sets(cifar10("test", n=n, seed=seed, stand_in=stand_in), train, "cifar", n)


def photo_evaluation_sets(*, n: int = 32) -> dict[str, ProbeSet]:
    """Return the like of `cifar_evaluation_sets` from `PhotoCrops`, for runs offline: photo32, photo32train …"""
    return evaluation_sets(PhotoCrops(n=n), PhotoCrops(split="train", n=n), "photo", n)


def evaluation_sets(test: ProbeSet, train: ProbeSet, name: str, n: int) -> dict[str, ProbeSet]:
    """Return test and training images, two blurs of the test images, and noise, new and trained on; `n` of each."""
    sets: dict[str, ProbeSet] = {
        f"{name}{n}": test,
        f"{name}{n}train": train,
        f"{name}{n}b1": Blurred(test, sigma=1),
        f"{name}{n}b2": Blurred(test, sigma=2),
        f"noise{n}": NoiseSet(n, seed=NOISE_SEED),
        f"noise{n}train": NoiseSet(n, seed=RANDOM_DATA_SEED),
    }
    return {label: probeset.evolve(name=label) for label, probeset in sets.items()}


def cifar_training_sets(*, n: int | None = None, seed: int = 0, stand_in: bool = False) -> dict[str, ProbeSet]:
    """Return the five training sets: clean, random-labels, random-data, blur1 and blur2.

    Parameters
    ----------
    n : int or None
        So many images, drawn: the same ones in all sets that hold images. None takes the whole split.
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
    return treated(_clean(n, stand_in), seed=seed)


def treated(clean: ProbeSet, *, seed: int = 0) -> dict[str, ProbeSet]:
    """Return a training set, and what the controls make of it: labels permuted, noise instead of images, two blurs.

    What is permuted, replaced or blurred is the set as it is given, so that label counts stay and `NoiseSet` makes the
    first training inputs of random-data anew.
    """
    return {
        "clean": clean,
        "random-labels": PermutedLabels(clean, seed=seed),
        "random-data": NoiseImages(clean, seed=RANDOM_DATA_SEED),
        "blur1": Blurred(clean, sigma=1),
        "blur2": Blurred(clean, sigma=2),
    }


def _clean(n: int | None, stand_in: bool) -> ProbeSet:
    whole = cifar10("train", stand_in=stand_in)
    return whole if n is None else Subset(whole, n)
